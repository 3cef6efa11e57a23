"""What transactional processors did and were told, held against what read_committed readers see.

Every transaction copies some input records into every output partition. A result names its
transaction and its input, so that what is read tells the whole story:

  TXN_ATOMIC          of a transaction that is seen, everything is, in every output partition
  TXN_ABORTED_UNSEEN  nothing is seen of one whose commit nobody asked for, or whose abort was told;
                      what was seen once is there in the end
  TXN_DECIDED_ONCE    what was told committed is there in the end, what was told aborted is not
  TXN_FENCED          nothing is there of one that had not asked for its commit when its
                      transactional id got a new holder
  EXACTLY_ONCE        every input is in exactly one transaction that is seen: no commit of offsets
                      is lost, torn from its records, or done by somebody who had lost his place
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from cotidal.invariants import (
    EXACTLY_ONCE,
    TXN_ABORTED_UNSEEN,
    TXN_ATOMIC,
    TXN_DECIDED_ONCE,
    TXN_FENCED,
)
from cotidal.sim.violation import Violation
from cotidal.values import TopicPartition

COPIES: Final = "copies"
"""The topic of the results."""
COPIES_PARTITIONS: Final = 2


class Input(NamedTuple):
    partition: TopicPartition
    offset: int


class Fact:
    """One transaction, as its processor knows it."""

    __slots__ = ("commit_sent", "fenced", "inputs", "number", "told", "whose")

    def __init__(self, number: int, whose: str, inputs: tuple[Input, ...]) -> None:
        self.number = number
        self.whose = whose
        """The transactional id."""
        self.inputs = inputs
        self.commit_sent = False
        self.fenced = False
        self.told: bool | None = None
        """Committed, aborted, or nobody was told."""

    def __str__(self) -> str:
        return f"transaction {self.number} of {self.whose}"

    def value(self, one: Input) -> bytes:
        """The result of one input."""
        topic, partition = one.partition
        return b"%d %s %d %d" % (self.number, topic.encode(), partition, one.offset)


class TransactionLedger:
    def __init__(self) -> None:
        self._facts: list[Fact] = []
        self._seen: dict[int, None] = {}
        self.committed = 0
        self.aborted = 0

    def begin(self, whose: str, inputs: tuple[Input, ...]) -> Fact:
        fact = Fact(len(self._facts), whose, inputs)
        self._facts.append(fact)
        return fact

    def on_holder(self, whose: str) -> None:
        """InitProducerId was answered."""
        for fact in self._facts:
            if fact.whose == whose and not fact.commit_sent:
                fact.fenced = True

    def on_told(self, fact: Fact, *, committed: bool) -> None:
        if fact.told is not None and fact.told != committed:
            raise Violation(TXN_DECIDED_ONCE, f"{fact} was told commit and abort")
        fact.told = committed
        self.committed += committed
        self.aborted += not committed

    def on_seen(self, reader: str, value: bytes) -> tuple[int, Input]:
        """A read_committed reader is given a result."""
        number, topic, partition, offset = value.split()
        fact = self._facts[int(number)]
        self._seen[fact.number] = None
        if not fact.commit_sent:
            raise Violation(
                TXN_ABORTED_UNSEEN, f"{reader} sees {fact}, whose commit nobody has asked for"
            )
        if fact.told is False:
            raise Violation(TXN_ABORTED_UNSEEN, f"{reader} sees {fact}, which was aborted")
        return fact.number, Input(TopicPartition(topic.decode(), int(partition)), int(offset))

    def judge(
        self,
        found: Mapping[TopicPartition, Iterable[tuple[int, Input]]],
        ends: Mapping[TopicPartition, int],
    ) -> None:
        """All is over. ``found``: the results in each output partition; ``ends``: of the input."""
        places = {place: self._whole(place, results) for place, results in found.items()}
        visible = dict.fromkeys(number for numbers in places.values() for number in numbers)
        done: dict[Input, int] = {}
        for number in visible:
            for place, numbers in places.items():
                if number not in numbers:
                    raise Violation(TXN_ATOMIC, f"{self._facts[number]} is not seen in {place}")
            for one in self._facts[number].inputs:
                if one in done:
                    raise Violation(
                        EXACTLY_ONCE,
                        f"{one.partition}@{one.offset} is processed by {self._facts[done[one]]}"
                        f" and by {self._facts[number]}",
                    )
                done[one] = number
        for partition, end in ends.items():
            for offset in range(end):
                if Input(partition, offset) not in done:
                    raise Violation(EXACTLY_ONCE, f"{partition}@{offset} is never processed")
        for fact in self._facts:
            _look_at_fate(
                fact, is_visible=fact.number in visible, was_seen=fact.number in self._seen
            )

    def _whole(
        self, place: TopicPartition, results: Iterable[tuple[int, Input]]
    ) -> dict[int, list[Input]]:
        """The transactions in one output partition: each is there with all its inputs, once."""
        got: dict[int, list[Input]] = {}
        for number, one in results:
            got.setdefault(number, []).append(one)
        for number, inputs in got.items():
            fact = self._facts[number]
            if tuple(inputs) != fact.inputs:
                raise Violation(
                    TXN_ATOMIC, f"{place} has {inputs} of {fact}, which wrote {fact.inputs}"
                )
        return got


def _look_at_fate(fact: Fact, *, is_visible: bool, was_seen: bool) -> None:
    if fact.told is not None and fact.told != is_visible:
        told, is_ = ("committed", "not there") if fact.told else ("aborted", "there")
        raise Violation(TXN_DECIDED_ONCE, f"{fact} was told {told} and is {is_}")
    if fact.fenced and is_visible:
        raise Violation(
            TXN_FENCED, f"{fact} is there, though its id had a new holder before it ended"
        )
    if was_seen and not is_visible:
        raise Violation(TXN_ABORTED_UNSEEN, f"{fact} was seen once, and is not there in the end")
