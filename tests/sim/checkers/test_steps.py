"""A replica is looked at again as soon as anything is different that a look would judge."""

from __future__ import annotations

import pytest

from cotidal.core.partition.effects import ProposeIsr
from cotidal.core.partition.replica import Replica
from cotidal.sim.agenda import SECOND
from cotidal.sim.checkers.steps import _standing
from cotidal.sim.checkers.window import hosted_by
from cotidal.sim.run import Run
from cotidal.values import LeaderEpoch, NodeId, Offset, PartitionEpoch
from simulated import ORDERS, calm_run, leader_of

APPLIED = 7
OFFSETS = ("start_offset", "high_watermark", "end_offset", "next_offset")


def replica_at_rest(run: Run, *, leads: bool) -> Replica:
    """Of a partition to which nobody writes any more."""
    for producer in run.producers:
        producer.stop()
    run.world.run_for(5 * SECOND)
    leader = leader_of(run, ORDERS)
    others = (each for each in run.world.running if each is not leader)
    process = leader if leads else next(others)
    return hosted_by(process)[ORDERS].replica


@pytest.mark.parametrize("leads", [True, False])
def test_offsets_that_move_are_looked_at(leads: bool) -> None:
    replica = replica_at_rest(calm_run(), leads=leads)
    before = _standing(replica, APPLIED)
    assert before is not None
    assert before == _standing(replica, APPLIED)
    for name in OFFSETS:
        known = getattr(replica, name)
        setattr(replica, name, Offset(known + 1))
        assert _standing(replica, APPLIED) != before, name
        setattr(replica, name, known)
    replica.producers.transactions.first_unstable = Offset(0)
    assert _standing(replica, APPLIED) != before


def test_a_follower_in_another_epoch_is_looked_at() -> None:
    replica = replica_at_rest(calm_run(), leads=False)
    before = _standing(replica, APPLIED)
    assert replica.following is not None
    replica.following.epoch = LeaderEpoch(replica.following.epoch - 1)
    assert _standing(replica, APPLIED) != before


def test_a_leader_is_looked_at_when_those_who_count_change() -> None:
    replica = replica_at_rest(calm_run(), leads=True)
    before = _standing(replica, APPLIED)
    assert _standing(replica, APPLIED + 1) != before, "the controller may have said more"
    leader = replica.leadership
    assert leader is not None
    leader.isr = (*leader.isr, NodeId(99))
    assert _standing(replica, APPLIED) != before
    leader.isr = leader.isr[:-1]
    assert _standing(replica, APPLIED) == before
    leader.min_isr += 1
    assert _standing(replica, APPLIED) != before
    leader.min_isr -= 1
    leader.proposal = ProposeIsr((), leader.epoch, PartitionEpoch(0))
    assert _standing(replica, APPLIED) != before


def test_a_leader_that_waits_for_followers_is_looked_at_every_time() -> None:
    replica = replica_at_rest(calm_run(), leads=True)
    replica.end_offset = Offset(replica.end_offset + 1)
    assert _standing(replica, APPLIED) is None
