"""What is amiss with transactions is seen in what readers find, and named."""

from __future__ import annotations

import pytest

from cotidal.invariants import (
    EXACTLY_ONCE,
    TXN_ABORTED_UNSEEN,
    TXN_ATOMIC,
    TXN_DECIDED_ONCE,
    TXN_FENCED,
)
from cotidal.sim.violation import Violation
from cotidal.sim.workloads.transaction_ledger import Fact, Input, TransactionLedger
from cotidal.values import TopicPartition

ORDERS = TopicPartition("orders", 0)
OUTPUTS = (TopicPartition("copies", 0), TopicPartition("copies", 1))
INPUTS = tuple(Input(ORDERS, offset) for offset in range(4))


class Told:
    """A ledger, and what its readers find in the end."""

    def __init__(self) -> None:
        self.ledger = TransactionLedger()
        self.found: dict[TopicPartition, list[tuple[int, Input]]] = {each: [] for each in OUTPUTS}

    def begin(self, *inputs: Input, whose: str = "a", asks: bool = True) -> Fact:
        fact = self.ledger.begin(whose, inputs)
        fact.commit_sent = asks
        return fact

    def show(self, fact: Fact, *outputs: TopicPartition) -> None:
        for output in outputs or OUTPUTS:
            for one in fact.inputs:
                self.found[output].append(self.ledger.on_seen("r", fact.value(one)))

    def judge(self, end: int) -> None:
        self.ledger.judge(self.found, {ORDERS: end})


def broken(told: Told, end: int) -> str:
    with pytest.raises(Violation) as caught:
        told.judge(end)
    return caught.value.promise


def test_all_that_is_processed_once_is_well() -> None:
    told = Told()
    first, given_up = told.begin(*INPUTS[:2]), told.begin(*INPUTS[2:])
    aborted, last = told.begin(*INPUTS[2:], asks=False), told.begin(*INPUTS[2:])
    told.ledger.on_told(first, committed=True)
    told.ledger.on_told(aborted, committed=False)
    told.show(first)
    told.show(last)
    told.judge(4)
    assert given_up.told is None
    assert (told.ledger.committed, told.ledger.aborted) == (1, 1)


def test_an_input_that_is_processed_twice_or_never_is_noticed() -> None:
    told = Told()
    told.show(told.begin(*INPUTS[:2]))
    assert broken(told, 3) is EXACTLY_ONCE
    told.show(told.begin(*INPUTS[1:3]))
    assert broken(told, 3) is EXACTLY_ONCE


def test_a_transaction_that_is_torn_is_noticed() -> None:
    told = Told()
    told.show(told.begin(*INPUTS[:2]), OUTPUTS[0])
    assert broken(told, 2) is TXN_ATOMIC
    told = Told()
    fact = told.begin(*INPUTS[:2])
    told.show(fact)
    told.found[OUTPUTS[1]].pop()
    assert broken(told, 2) is TXN_ATOMIC
    told.show(fact, OUTPUTS[1])
    assert broken(told, 2) is TXN_ATOMIC


def test_what_was_told_is_what_is_there() -> None:
    told = Told()
    fact = told.begin(INPUTS[0])
    told.ledger.on_told(fact, committed=True)
    told.show(told.begin(INPUTS[0]))
    assert broken(told, 1) is TXN_DECIDED_ONCE
    with pytest.raises(Violation) as caught:
        told.ledger.on_told(fact, committed=False)
    assert caught.value.promise is TXN_DECIDED_ONCE


def test_what_an_earlier_holder_had_not_ended_comes_to_nothing() -> None:
    told = Told()
    fact, other = told.begin(INPUTS[0], asks=False), told.begin(INPUTS[1], whose="b")
    told.ledger.on_holder("a")
    fact.commit_sent = True
    told.show(fact)
    told.show(other)
    assert broken(told, 2) is TXN_FENCED


@pytest.mark.parametrize("asks", [False, True])
def test_nobody_is_given_what_is_open_or_aborted(asks: bool) -> None:
    told = Told()
    fact = told.begin(INPUTS[0], asks=asks)
    fact.told = False if asks else None
    with pytest.raises(Violation) as caught:
        told.show(fact)
    assert caught.value.promise is TXN_ABORTED_UNSEEN


def test_what_was_seen_once_is_there_in_the_end() -> None:
    told = Told()
    told.ledger.on_seen("r", told.begin(INPUTS[0]).value(INPUTS[0]))
    told.show(told.begin(INPUTS[0]))
    assert broken(told, 1) is TXN_ABORTED_UNSEEN
