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
from cotidal.sim.run import Run
from cotidal.sim.violation import Violation
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
