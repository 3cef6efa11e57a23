"""What is missing from a healed cluster is said, for every promise of progress."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cotidal.core.partition.effects import IsrMember, ProposeIsr
from cotidal.core.partition.replica import Replica
from cotidal.sim.agenda import SECOND
from cotidal.sim.checkers.liveness import missing
from cotidal.sim.checkers.window import hosted_by, image_of, state_of
from cotidal.sim.run import Run
from cotidal.sim.violation import promise_name
from cotidal.values import NO_NODE, BrokerEpoch, NodeId, Offset
from simulated import ORDERS, calm_run, controller_of, leader_of


def settled_run() -> Run:
    run = calm_run()
    for producer in run.producers:
        producer.stop()
    run.world.run_for(2 * SECOND)
    return run


def change_partition(run: Run, **fields: object) -> None:
    partitions = image_of(controller_of(run)).topics["orders"].partitions
    partitions[0] = partitions[0]._replace(**fields)  # type: ignore[arg-type]


def change_broker(run: Run, **fields: object) -> None:
    brokers = image_of(controller_of(run)).brokers
    brokers[NodeId(1)] = brokers[NodeId(1)]._replace(**fields)  # type: ignore[arg-type]


def lose_the_quorum(run: Run) -> None:
    run.world.kill(controller_of(run).node_id)


def lag_in_metadata(run: Run) -> None:
    state = state_of(next(p for p in run.world.running if p is not controller_of(run)))
    state.quorum.applied = Offset(state.quorum.applied - 1)


def close_the_listener(run: Run) -> None:
    run.world.running[0].serving = False


def fence(run: Run) -> None:
    change_broker(run, fenced=True)


def register_another(run: Run) -> None:
    change_broker(run, epoch=BrokerEpoch(1 << 40))


def unregister(run: Run) -> None:
    del image_of(controller_of(run)).brokers[NodeId(1)]


def lose_the_leader(run: Run) -> None:
    change_partition(run, leader=NO_NODE)


def go_on_reassigning(run: Run) -> None:
    change_partition(run, adding=(NodeId(3),))


def shrink(run: Run) -> None:
    change_partition(run, isr=(NodeId(1),))


def hold_the_high_watermark(run: Run) -> None:
    replica = hosted_by(leader_of(run, ORDERS))[ORDERS].replica
    replica.high_watermark = Offset(replica.end_offset - 1)


def propose_for_ever(run: Run) -> None:
    leadership = hosted_by(leader_of(run, ORDERS))[ORDERS].replica.leadership
    assert leadership is not None
    members = tuple(IsrMember(node_id, BrokerEpoch(-1)) for node_id in leadership.isr)
    leadership.proposal = ProposeIsr(members, leadership.epoch, leadership.partition_epoch)


def fall_behind(run: Run) -> None:
    leader = leader_of(run, ORDERS)
    follower = next(process for process in run.world.running if process is not leader)
    replica = hosted_by(follower)[ORDERS].replica
    replica.end_offset = Offset(replica.end_offset - 1)


def wait_for_an_answer(run: Run) -> None:
    producer = run.producers[0]
    line = producer._lines[ORDERS]
    line.pending.append(producer._make(ORDERS, line))


def forget_a_log(run: Run) -> None:
    del hosted_by(next(p for p in run.world.running if p is not leader_of(run, ORDERS)))[ORDERS]


BROKEN = [
    (lose_the_quorum, "QUORUM_LEADER_APPEARS"),
    (lag_in_metadata, "METADATA_CONVERGES"),
    (close_the_listener, "BROKERS_UNFENCE"),
    (fence, "BROKERS_UNFENCE"),
    (register_another, "BROKERS_REGISTER"),
    (unregister, "BROKERS_REGISTER"),
    (lose_the_leader, "LEADER_APPEARS"),
    (go_on_reassigning, "REASSIGNMENT_ENDS"),
    (shrink, "ISR_HEALS"),
    (hold_the_high_watermark, "ISR_HEALS"),
    (propose_for_ever, "PROPOSALS_RESOLVE"),
    (fall_behind, "REPLICAS_CONVERGE"),
    (wait_for_an_answer, "PRODUCE_IS_ANSWERED"),
    (forget_a_log, "DELETED_LOGS_GO"),
]


@pytest.mark.parametrize(("breaking", "promise"), BROKEN)
def test_what_is_missing_is_said(breaking: Callable[[Run], None], promise: str) -> None:
    run = settled_run()
    assert list(missing(run.world, run.producers)) == []
    breaking(run)
    found = [promise_name(text) for text, _ in missing(run.world, run.producers)]
    assert promise in found


@pytest.mark.plain
def test_a_stable_offset_that_stays_behind_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    run = settled_run()
    monkeypatch.setattr(Replica, "last_stable_offset", property(lambda _: Offset(0)))
    found = [promise_name(text) for text, _ in missing(run.world, run.producers)]
    assert "STABLE_OFFSET_FOLLOWS" in found
