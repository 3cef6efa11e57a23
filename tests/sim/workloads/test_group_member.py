"""Members of groups notice when a promise to them is broken."""

from __future__ import annotations

import pytest

from cotidal.errors import ErrorCode
from cotidal.invariants import MEMBERS_KEPT, REBALANCES_END
from cotidal.sim.agenda import SECOND
from cotidal.sim.checkers.liveness import missing
from cotidal.sim.plans import PLANS
from cotidal.sim.run import Run
from cotidal.sim.violation import Violation
from simulated import go_through


@pytest.fixture(scope="module")
def run() -> Run:
    """Members in their groups, before the first of them leaves."""
    run = Run(1, PLANS["groups"]._replace(faults={}, duties={}))
    go_through(run, run._set_up())
    run.world.run_for(2 * SECOND)
    assert all(member.settled for member in run.members)
    return run


def test_a_member_without_an_assignment_is_missed(run: Run) -> None:
    assert REBALANCES_END not in dict(missing(run.world, run.producers, run.members))
    run.members[0].settled = False
    assert REBALANCES_END in dict(missing(run.world, run.producers, run.members))
    run.members[0].settled = True


def test_a_member_that_is_forgotten_in_spite_of_its_heartbeats_says_so(run: Run) -> None:
    with pytest.raises(Violation) as broken:
        run.members[0]._on_error(ErrorCode.UNKNOWN_MEMBER_ID)
    assert broken.value.promise == MEMBERS_KEPT
