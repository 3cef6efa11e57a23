"""Each promise about groups, kept and broken."""

from __future__ import annotations

import pytest

from cotidal.invariants import COMMITS_KEPT, GENERATIONS_ASCEND, ONE_OWNER
from cotidal.sim.violation import Violation, promise_name
from cotidal.sim.workloads.group_ledger import KEPT_US, GroupLedger
from cotidal.values import TopicPartition

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def ledger() -> GroupLedger:
    return GroupLedger(may_lose=False)


def broken(raised: pytest.ExceptionInfo[Violation]) -> str:
    return raised.value.name


def test_a_partition_has_one_owner_in_a_generation(ledger: GroupLedger) -> None:
    ledger.on_assigned("g", 1, "a", (P0,))
    ledger.on_assigned("g", 1, "a", (P0,))
    ledger.on_assigned("g", 1, "b", (P1,))
    ledger.on_assigned("h", 1, "b", (P0,))
    ledger.on_assigned("g", 2, "b", (P0,))
    with pytest.raises(Violation) as raised:
        ledger.on_assigned("g", 1, "c", (P1,))
    assert broken(raised) == promise_name(ONE_OWNER)


def test_generations_of_a_member_ascend(ledger: GroupLedger) -> None:
    ledger.on_assigned("g", 2, "a", (P0,))
    with pytest.raises(Violation) as raised:
        ledger.on_assigned("g", 1, "a", (P1,))
    assert broken(raised) == promise_name(GENERATIONS_ASCEND)


def test_a_commit_that_was_acknowledged_before_a_fetch_is_found_by_it(ledger: GroupLedger) -> None:
    ledger.on_committed("g", P0, 5)
    ledger.on_committed("g", P0, 4)
    asked = ledger.highest("g", P0)
    ledger.on_committed("g", P0, 6)
    ledger.on_fetched("g", P0, 5, asked)
    with pytest.raises(Violation) as raised:
        ledger.on_fetched("g", P0, 4, asked)
    assert broken(raised) == promise_name(COMMITS_KEPT)


def test_where_records_may_be_lost_nothing_is_held_against_a_group() -> None:
    ledger = GroupLedger(may_lose=True)
    ledger.on_assigned("g", 1, "a", (P0,))
    ledger.on_assigned("g", 1, "b", (P0,))
    ledger.on_fetched("g", P0, 1, 2)
    assert ledger.assignments == 2


def test_nobody_is_given_what_another_one_has_and_heartbeats_for(ledger: GroupLedger) -> None:
    ledger.on_held("g", "a", (P0, P1), 0)
    ledger.on_beaten("g", "a", 1_000_000)
    ledger.on_held("other", "b", (P0,), 1_100_000)
    with pytest.raises(Violation) as raised:
        ledger.on_held("g", "b", (P0,), 1_100_000)
    assert broken(raised) == promise_name(ONE_OWNER)
    ledger.on_held("g", "a", (P1,), 1_200_000)
    ledger.on_held("g", "b", (P0,), 1_200_000)


def test_whoever_was_not_heard_for_long_may_have_lost_what_it_has(ledger: GroupLedger) -> None:
    ledger.on_held("g", "a", (P0,), 0)
    ledger.on_beaten("g", "a", 0)
    ledger.on_held("g", "b", (P0,), KEPT_US)
    ledger.on_held("g", "c", (P0,), KEPT_US)  # b was never heard


def test_only_the_coordinator_of_a_group_speaks_for_it() -> None:
    ledger = GroupLedger(may_lose=False, coordinator={"g": ("node2", 9092)}.get)
    assert ledger.is_coordinator("g", ("node2", 9092))
    assert not ledger.is_coordinator("g", ("node1", 9092))
    assert not ledger.is_coordinator("h", ("node1", 9092))
