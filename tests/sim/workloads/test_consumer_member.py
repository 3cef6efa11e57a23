"""Members of the consumer protocol notice when a promise to them is broken."""

from __future__ import annotations

import pytest

from cotidal.errors import ErrorCode
from cotidal.invariants import EPOCHS_ORDERED, MEMBERS_KEPT, REBALANCES_END
from cotidal.sim.agenda import SECOND
from cotidal.sim.checkers.liveness import missing
from cotidal.sim.checkers.machines import MachineChecker
from cotidal.sim.checkers.window import consumer_groups_of
from cotidal.sim.plans import PLANS
from cotidal.sim.probes import TAKEN_LATE
from cotidal.sim.run import Run
from cotidal.sim.violation import Violation
from cotidal.sim.workloads.consumer_member import ConsumerMember, Lookup
from cotidal.values import TopicPartition, Uuid
from simulated import go_through


@pytest.fixture(scope="module")
def run() -> Run:
    """Members in their groups, before the first of them leaves."""
    run = Run(1, PLANS["consumers"]._replace(faults={}, duties={}))
    go_through(run, run._set_up())
    for member in run.members:
        member.restless = False
    run.world.run_for(4 * SECOND)
    assert all(member.settled for member in run.members)
    return run


def test_they_share_their_partitions_and_commit(run: Run) -> None:
    assert REBALANCES_END not in dict(missing(run.world, run.producers, run.members))
    assert run.groups.commits > 20
    held = [each for member in run.members for each in member.held]
    assert len(held) == 2 * len(set(held)) == 2 * len(run.admin.partitions), "once in each group"


def test_a_partition_that_nobody_has_is_missed(run: Run) -> None:
    some = next(member for member in run.members if member.held)
    had = some._claimed  # type: ignore[attr-defined]
    some._claimed = ()  # type: ignore[attr-defined]
    assert REBALANCES_END in dict(missing(run.world, run.producers, run.members))
    some._claimed = had  # type: ignore[attr-defined]


def test_a_member_that_is_forgotten_in_spite_of_its_heartbeats_says_so(run: Run) -> None:
    with pytest.raises(Violation) as broken:
        run.members[0]._on_error(ErrorCode.UNKNOWN_MEMBER_ID)
    assert broken.value.promise == MEMBERS_KEPT


def test_groups_are_asked_what_they_promise(run: Run) -> None:
    process, group = next(
        (process, group) for process in run.world.running for group in consumer_groups_of(process)
    )
    now = process.machine.clock.monotonic(run.world.now)
    MachineChecker().sweep(process, now)
    group.target_epoch += 1
    with pytest.raises(AssertionError, match=EPOCHS_ORDERED):
        MachineChecker().sweep(process, now)
    group.target_epoch -= 1


def orders(*numbers: int) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition("orders", number) for number in numbers)


def test_whoever_looks_up_what_is_new_remembers_what_it_is_told_of_still() -> None:
    looked_up = Lookup(told=orders(1, 2, 3), new=orders(2, 3))
    looked_up.hear(orders(1, 2, 3, 4))
    assert looked_up.new == orders(2, 3)
    assert not looked_up.owes, "more is nothing to give up"
    looked_up.hear(orders(1, 3))
    assert looked_up.new == orders(3)
    assert looked_up.owes
    looked_up.hear(orders(1, 2))
    assert looked_up.new == (), "what was taken away once is not the same when it comes back"


@pytest.fixture
def late() -> ConsumerMember:
    """A member of an empty world, with one partition."""
    run = Run(1, PLANS["late-members"])
    run._add_member(ConsumerMember, "n0", orders(0, 1, 2, 3))
    (member,) = run.members
    assert isinstance(member, ConsumerMember)
    member._claim(orders(0))
    return member


def test_until_it_has_looked_up_what_is_new_it_says_all_that_it_has(late: ConsumerMember) -> None:
    late._generation, late._says_all, late.topic_ids = 7, False, {"orders": Uuid(bytes(16))}
    assert late._said().subscribed_topic_names is None
    assert late._waits_for(orders(0, 1, 2))
    assert late._said().subscribed_topic_names == ("orders",)
    assert [each.partitions for each in late._said().topic_partitions or ()] == [(0,)]


def test_it_takes_late_all_that_it_was_told_first(late: ConsumerMember) -> None:
    assert late._waits_for(orders(0, 1, 2))
    assert late._waits_for(orders(0, 1)), "not yet"
    assert late._lookup is not None
    late._lookup.end()
    assert not late._waits_for(orders(0, 1))
    assert late.held == orders(0, 1, 2)
    assert late._probes.seen == {TAKEN_LATE: 1}


def test_what_nobody_gives_it_any_more_it_does_not_take(late: ConsumerMember) -> None:
    assert late._waits_for(orders(0, 1, 2))
    assert not late._waits_for(orders(0, 3))
    assert late.held == orders(0)
    assert not late._waits_for(orders(0)), "nothing is new"


def test_one_that_is_quick_waits_for_nothing(late: ConsumerMember) -> None:
    late.lookup_us = 0
    assert not late._waits_for(orders(0, 1, 2))
