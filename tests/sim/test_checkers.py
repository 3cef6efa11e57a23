"""The checkers see what they are there to see: each is shown a cluster that breaks its promise."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cotidal.sim.agenda import SECOND
from cotidal.sim.checkers.window import hosted_by, image_of, leads_quorum, quorum_of
from cotidal.sim.plan import PLANS
from cotidal.sim.process import Process
from cotidal.sim.run import Run
from cotidal.sim.workloads.history import Acked
from cotidal.values import LeaderEpoch, NodeId, Offset, TopicPartition

ORDERS = TopicPartition("orders", 0)


def leader_of(run: Run, partition: TopicPartition) -> Process:
    for process in run.world.running:
        if hosted_by(process)[partition].replica.leadership is not None:
            return process
    raise AssertionError("nobody leads it")


def break_high_watermark(run: Run) -> None:
    replica = hosted_by(leader_of(run, ORDERS))[ORDERS].replica
    replica.high_watermark = Offset(replica.end_offset + 100)


def turn_high_watermark_back(run: Run) -> None:
    replica = hosted_by(leader_of(run, ORDERS))[ORDERS].replica
    assert replica.high_watermark > 0
    replica.high_watermark = Offset(0)


def lead_twice(run: Run) -> None:
    leader = leader_of(run, ORDERS)
    replica = hosted_by(leader)[ORDERS].replica
    assert replica.leadership is not None
    seen = run.watch.ghost.partition(replica.topic_id, 0)
    seen.leaders[replica.leadership.epoch] = (NodeId(99), 1)
    seen.watermarks.clear()


def acknowledge_what_nobody_wrote(run: Run) -> None:
    run.history.on_acked(Acked(ORDERS, 0, 0xDEAD, -1, run.world.now))


def forget_a_replica(run: Run) -> None:
    leader = leader_of(run, ORDERS)
    for process in run.world.running:
        log = process.disk.log_of(ORDERS)
        if process is not leader and log is not None:
            run.watch.sweep()
            log.truncate_to(Offset(1))
            del run.watch.ghost.mirrors[process.node_id, ORDERS]
            run.watch.sweep()


def vote_again(run: Run) -> None:
    for process in run.world.running:
        quorum = quorum_of(process)
        key = (process.machine.config.directory_id, int(quorum.epoch))
        if quorum.voted is not None:
            run.watch.ghost.votes[key] = NodeId(99)
            return


def lead_the_quorum_twice(run: Run) -> None:
    for process in run.world.running:
        if leads_quorum(process):
            epoch = int(quorum_of(process).epoch)
            run.watch.ghost.quorum_leaders[epoch] = (NodeId(99), 1)


def tell_one_node_otherwise(run: Run) -> None:
    image_of(run.world.running[0]).configs[2, "orders"] = {"retention.ms": "1"}


def write_other_metadata(run: Run) -> None:
    run.watch.sweep()
    run.watch.ghost.metadata_canon[0] = (1, 0xDEAD)


def forget_committed_metadata(run: Run) -> None:
    for process in run.world.running:
        if not leads_quorum(process):
            process.disk.metadata.log.truncate_to(Offset(1))
            run.watch.ghost.metadata_mirrors.pop(process.node_id, None)
    run.watch.sweep()


def empty_an_isr(run: Run) -> None:
    topic = image_of(run.world.running[0]).topics["orders"]
    for process in run.world.running:
        topic = image_of(process).topics["orders"]
        topic.partitions[0] = topic.partitions[0]._replace(isr=())
    run.watch.ghost.applied = -1


def raise_epoch(run: Run) -> None:
    for process in run.world.running:
        run.watch.ghost.epochs[process.machine.config.directory_id] = LeaderEpoch(1 << 20)


@pytest.mark.parametrize(
    ("breaking", "promise"),
    [
        (break_high_watermark, "HIGH_WATERMARK_IN_LOG"),
        (turn_high_watermark_back, "HIGH_WATERMARK_MONOTONIC"),
        (lead_twice, "ONE_LEADER_PER_EPOCH"),
        (acknowledge_what_nobody_wrote, "LEADER_HOLDS_ACKED"),
        (forget_a_replica, "ELIGIBLE_HOLD_COMMITTED"),
        (vote_again, "VOTE_ONCE_PER_EPOCH"),
        (raise_epoch, "VOTE_ONCE_PER_EPOCH"),
        (lead_the_quorum_twice, "ONE_QUORUM_LEADER"),
        (tell_one_node_otherwise, "IMAGES_EQUAL"),
        (write_other_metadata, "METADATA_COMMITTED_KEPT"),
        (forget_committed_metadata, "MAJORITY_HOLDS_COMMITTED"),
        (empty_an_isr, "ISR_WELL_FORMED"),
    ],
)
def test_a_broken_promise_is_named(breaking: Callable[[Run], None], promise: str) -> None:
    run = Run(1, PLANS["calm"]._replace(seconds=4, admin_gap_ms=0))
    run.world.agenda.after(4 * SECOND, breaking, run)
    outcome = run.go()
    assert outcome.broken == promise, outcome.sentence
    assert outcome.trace
