"""The checkers see what they are there to see: each is shown a cluster that breaks its promise."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cotidal import invariants
from cotidal.log.metadata_store import METADATA_PARTITION
from cotidal.messages.records.metadata import BrokerRegistrationChangeRecord
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from cotidal.node.effects import Respond
from cotidal.node.events import Ticked
from cotidal.sim.agenda import SECOND
from cotidal.sim.checkers.window import hosted_by, image_of, leads_quorum, quorum_of
from cotidal.sim.plans import PLANS
from cotidal.sim.process import Process
from cotidal.sim.run import Run
from cotidal.sim.violation import Violation, promise_name
from cotidal.sim.workloads.history import Acked
from cotidal.values import EpochEntry, LeaderEpoch, NodeId, Offset, WallMillis
from simulated import ORDERS, calm_run, controller_of, leader_of


def follower_of(run: Run) -> Process:
    leader = leader_of(run, ORDERS)
    return next(process for process in run.world.running if process is not leader)


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


def follow_an_older_epoch(run: Run) -> None:
    following = hosted_by(follower_of(run))[ORDERS].replica.following
    assert following is not None
    following.epoch = LeaderEpoch(following.epoch - 1)


def register_with_an_older_epoch(run: Run) -> None:
    node_id = follower_of(run).node_id
    run.watch.ghost.broker_epochs[node_id] = 1 << 40
    run.world.kill(node_id)
    run.world.start(node_id)


def count_fewer_than_the_controller(run: Run) -> None:
    leadership = hosted_by(leader_of(run, ORDERS))[ORDERS].replica.leadership
    assert leadership is not None
    leadership.isr = leadership.isr[:2]
    run.world.run_for(SECOND)


def advance_past_a_follower(run: Run) -> None:
    replica = hosted_by(leader_of(run, ORDERS))[ORDERS].replica
    assert replica.leadership is not None
    past = replica.end_offset + 1
    run.watch._steps._look_at_advance(ORDERS, replica.topic_id, past, replica.leadership)


def advance_past_who_is_about_to_join(run: Run) -> None:
    """The controller does not have it in the ISR yet; the leader has proposed it."""
    replica = hosted_by(leader_of(run, ORDERS))[ORDERS].replica
    assert replica.leadership is not None
    topic = run.watch.ghost.image.topics[ORDERS.topic]
    told = topic.partitions[ORDERS.partition]
    alone = told._replace(isr=(told.leader,))
    topic.partitions[ORDERS.partition] = alone
    process = run.world.machines[replica.leadership.isr[-1]].process
    assert process is not None
    log = process.disk.log_of(ORDERS)
    assert log is not None
    log.truncate_to(Offset(1))
    run.watch._steps._look_at_advance(
        ORDERS, replica.topic_id, replica.high_watermark, replica.leadership
    )


def hold_the_high_watermark_back(run: Run) -> None:
    leader = leader_of(run, ORDERS)
    replica = hosted_by(leader)[ORDERS].replica
    assert replica.leadership is not None
    replica.high_watermark = Offset(0)
    run.watch._steps._look_for_delay(leader, replica, replica.leadership)


def acknowledge_what_is_not_written(run: Run) -> None:
    leader = leader_of(run, ORDERS)
    end = hosted_by(leader)[ORDERS].replica.end_offset
    told = PartitionProduceResponse(partition_index=0, base_offset=end)
    message = ProduceResponse((TopicProduceResponse("orders", partition_responses=(told,)),))
    respond = Respond(1, ApiKey.PRODUCE, 9, 1, message)
    run.watch._acks.look(leader, Ticked(WallMillis(0)), (respond,))


def join_without_what_is_committed(run: Run) -> None:
    process = follower_of(run)
    replica = hosted_by(process)[ORDERS].replica
    seen = run.watch.ghost.partition(replica.topic_id, ORDERS.partition)
    seen.true_high_watermark = replica.end_offset + 1
    told = run.watch.ghost.told(ORDERS)
    assert told is not None
    before = told._replace(isr=tuple(node for node in told.isr if node != process.node_id))
    run.watch._logs.on_partition_changed(ORDERS, before, told)


def join_before_fetching(run: Run) -> None:
    leader = leader_of(run, ORDERS)
    node_id = follower_of(run).node_id
    replica = hosted_by(leader)[ORDERS].replica

    class Forgetful(dict[int, tuple[int, int]]):
        def get(self, key: int, otherwise: object = None) -> tuple[int, int] | None:  # type: ignore[override]
            return None

    run.watch.ghost.partition(replica.topic_id, 0).fetched = Forgetful()
    run.world.kill(node_id)
    run.world.run_for(SECOND)
    run.world.start(node_id)
    run.world.run_for(5 * SECOND)


def acknowledge_what_nobody_wrote(run: Run) -> None:
    run.history.on_acked(Acked(ORDERS, 0, 0xDEAD, -1, run.world.now))


def lose_what_was_acknowledged(run: Run) -> None:
    for process in run.world.running:
        run.world.kill(process.node_id)
    run.watch.sweep()
    run.history.on_acked(Acked(ORDERS, 1 << 20, 0xDEAD, -1, run.world.now))


def read_something_else(run: Run) -> None:
    offset, seen = next(iter(run.history.consumed[ORDERS].items()))
    run.history.on_consumed(ORDERS, offset=offset, next_offset=seen.next_offset, crc=seen.crc ^ 1)


def hold_something_else(run: Run) -> None:
    run.watch.sweep()
    writers = run.watch.ghost.partition(
        hosted_by(leader_of(run, ORDERS))[ORDERS].replica.topic_id, 0
    ).writers
    place, (crc, *before) = next(iter(writers.items()))
    writers[place] = (crc ^ 1, *before)  # type: ignore[assignment]
    run.watch.ghost.mirrors.clear()


def forget_a_replica(run: Run) -> None:
    run.watch.sweep()
    process = follower_of(run)
    log = process.disk.log_of(ORDERS)
    assert log is not None
    log.truncate_to(Offset(1))
    run.watch.ghost.mirrors[process.node_id, ORDERS].cut(1)
    run.watch._logs._look_at_eligible()


def cut_what_is_committed(run: Run) -> None:
    follower_of(run).disk.on_cut(ORDERS, Offset(0))


def cut_committed_metadata(run: Run) -> None:
    controller_of(run).disk.on_cut(METADATA_PARTITION, Offset(0))


def cache_another_epoch(run: Run) -> None:
    entries = hosted_by(follower_of(run))[ORDERS].replica.epochs.entries
    entries[-1] = EpochEntry(LeaderEpoch(entries[-1].epoch + 7), entries[-1].start_offset)


def write_a_batch_twice(run: Run) -> None:
    run.watch.sweep()
    mirror = run.watch.ghost.mirrors[leader_of(run, ORDERS).node_id, ORDERS]
    known = next(held for held in mirror.batches if held.producer is not None)
    mirror._add(known._replace(base_offset=mirror.end, next_offset=mirror.end + 1))


def leave_a_gap(run: Run) -> None:
    run.watch.sweep()
    mirror = run.watch.ghost.mirrors[leader_of(run, ORDERS).node_id, ORDERS]
    mirror._add(mirror.batches[-1]._replace(base_offset=mirror.end + 1, producer=None))


def vote_again(run: Run) -> None:
    for process in run.world.running:
        quorum = quorum_of(process)
        key = (process.machine.config.directory_id, int(quorum.epoch))
        if quorum.voted is not None:
            run.watch.ghost.votes[key] = NodeId(99)
            return


def raise_epoch(run: Run) -> None:
    for process in run.world.running:
        run.watch.ghost.epochs[process.machine.config.directory_id] = LeaderEpoch(1 << 20)


def lead_the_quorum_twice(run: Run) -> None:
    epoch = int(quorum_of(controller_of(run)).epoch)
    run.watch.ghost.quorum_leaders[epoch] = (NodeId(99), 1)


def lead_the_quorum_without_what_is_committed(run: Run) -> None:
    run.watch.ghost.committed_by = {0: 1 << 40}


def commit_less_than_before(run: Run) -> None:
    epoch = int(quorum_of(controller_of(run)).epoch)
    run.watch.ghost.committed_by[epoch] += 1_000


def start_without_a_snapshot(run: Run) -> None:
    log = controller_of(run).disk.metadata.log
    log.advance_start(Offset(3), run.world.running[0].wall())
    run.watch.sweep()


def tell_one_node_otherwise(run: Run) -> None:
    image_of(run.world.running[0]).configs[2, "orders"] = {"retention.ms": "1"}


def tell_all_nodes_otherwise(run: Run) -> None:
    for process in run.world.running:
        image_of(process).configs[2, "orders"] = {"retention.ms": "1"}


def write_other_metadata(run: Run) -> None:
    run.watch.audit()
    run.watch.ghost.metadata_canon[0] = (1, 0xDEAD)
    run.watch.audit()


def forget_committed_metadata(run: Run) -> None:
    for process in run.world.running:
        if not leads_quorum(process):
            process.disk.metadata.log.truncate_to(Offset(1))
            run.watch.ghost.metadata_mirrors.pop(process.node_id, None)
    run.watch.sweep()


def empty_an_isr(run: Run) -> None:
    partitions = run.watch.ghost.image.topics["orders"].partitions
    partitions[0] = partitions[0]._replace(isr=())
    run.watch.audit()


def keep_an_elr_beside_a_full_isr(run: Run) -> None:
    partitions = run.watch.ghost.image.topics["orders"].partitions
    told = partitions[0]
    last = next(node for node in reversed(told.isr) if node != told.leader)
    kept = tuple(node for node in told.isr if node != last)
    partitions[0] = told._replace(isr=kept, elr=(last,))
    run.watch.audit()


def fence_for_nothing(run: Run) -> None:
    run.world.run_for(6 * SECOND)
    node_id = follower_of(run).node_id
    broker = run.watch.ghost.image.brokers[node_id]
    run.watch.metadata._take_other(
        BrokerRegistrationChangeRecord(broker_id=node_id, broker_epoch=broker.epoch, fenced=1)
    )


def answer_out_of_order(run: Run) -> None:
    run.admin.check_order(2, 1)


def wait_where_nobody_leads(run: Run) -> None:
    """A write that a leader has parked now waits at a follower."""
    leading = hosted_by(leader_of(run, ORDERS))[ORDERS].until_committed
    following = hosted_by(follower_of(run))[ORDERS].until_committed
    while not leading:
        run.world.run_for(100)
    following.add(leading.take_all()[0])
    run.watch.sweep()


BROKEN = [
    (break_high_watermark, "HIGH_WATERMARK_IN_LOG"),
    (turn_high_watermark_back, "HIGH_WATERMARK_MONOTONIC"),
    (lead_twice, "ONE_LEADER_PER_EPOCH"),
    (follow_an_older_epoch, "ONE_LEADER_PER_EPOCH"),
    (register_with_an_older_epoch, "ONE_LEADER_PER_EPOCH"),
    (count_fewer_than_the_controller, "MAXIMAL_ISR_COVERS"),
    (advance_past_a_follower, "HIGH_WATERMARK_WAITS"),
    (advance_past_who_is_about_to_join, "HIGH_WATERMARK_WAITS"),
    (hold_the_high_watermark_back, "ONLY_ELIGIBLE_HOLD_BACK"),
    (acknowledge_what_is_not_written, "WRITTEN_BEFORE_TOLD"),
    (join_without_what_is_committed, "ELIGIBLE_HOLD_COMMITTED"),
    (join_before_fetching, "JOINS_AFTER_FETCH"),
    (acknowledge_what_nobody_wrote, "LEADER_HOLDS_ACKED"),
    (lose_what_was_acknowledged, "ACKED_IS_KEPT"),
    (read_something_else, "CONSUMED_NEVER_CHANGES"),
    (hold_something_else, "LOG_PREFIXES_MATCH"),
    (forget_a_replica, "ELIGIBLE_HOLD_COMMITTED"),
    (cut_what_is_committed, "ELIGIBLE_NEVER_CUT"),
    (cut_committed_metadata, "COMMITTED_NEVER_CUT"),
    (cache_another_epoch, "EPOCHS_MATCH_LOG"),
    (write_a_batch_twice, "IDEMPOTENT_ONCE"),
    (leave_a_gap, "OFFSETS_CONTIGUOUS"),
    (vote_again, "VOTE_ONCE_PER_EPOCH"),
    (raise_epoch, "VOTE_ONCE_PER_EPOCH"),
    (lead_the_quorum_twice, "ONE_QUORUM_LEADER"),
    (lead_the_quorum_without_what_is_committed, "QUORUM_LEADER_HOLDS_COMMITTED"),
    (commit_less_than_before, "METADATA_ASCENDS"),
    (start_without_a_snapshot, "SNAPSHOT_AT_LOG_START"),
    (tell_one_node_otherwise, "IMAGES_EQUAL"),
    (tell_all_nodes_otherwise, "IMAGES_EQUAL"),
    (write_other_metadata, "METADATA_COMMITTED_KEPT"),
    (forget_committed_metadata, "MAJORITY_HOLDS_COMMITTED"),
    (empty_an_isr, "ISR_WELL_FORMED"),
    (keep_an_elr_beside_a_full_isr, "ISR_WELL_FORMED"),
    (fence_for_nothing, "FENCED_FOR_A_REASON"),
    (answer_out_of_order, "REPLIES_IN_ORDER"),
    (wait_where_nobody_leads, "LEADERS_ALONE_WAIT"),
]


def break_and_look(run: Run, breaking: Callable[[Run], None]) -> None:
    breaking(run)
    run.world.run_for(SECOND)
    run.watch.sweep()


@pytest.mark.parametrize(
    ("breaking", "promise"),
    [
        pytest.param(*each, marks=[pytest.mark.plain] if each[0] is join_before_fetching else [])
        for each in BROKEN
    ],
)
def test_a_broken_promise_is_named(breaking: Callable[[Run], None], promise: str) -> None:
    run = calm_run()
    with pytest.raises(Violation) as caught:
        break_and_look(run, breaking)
    assert caught.value.name == promise, caught.value.sentence


def test_a_broker_that_was_paused_is_fenced_for_a_reason() -> None:
    run = calm_run()
    process = next(each for each in run.world.running if each is not controller_of(run))
    process.pause()
    run.world.run_for(8 * SECOND)
    assert run.watch.ghost.image.brokers[process.node_id].fenced


def test_a_cluster_in_which_nothing_is_wrong_breaks_nothing() -> None:
    run = calm_run()
    run.watch.audit()
    run.world.run_for(SECOND)
    run.watch.audit()


def test_what_is_kept_step_by_step_is_what_an_audit_finds() -> None:
    """A mirror that lies is found out: sweep and audit are two ways to one view."""
    run = calm_run()
    run.watch.sweep()
    mirror = next(iter(run.watch.ghost.mirrors.values()))
    mirror.batches[0] = mirror.batches[0]._replace(crc=mirror.batches[0].crc ^ 1)
    with pytest.raises(AssertionError, match="is not what the log holds"):
        run.watch.audit()


def test_a_run_that_breaks_a_promise_tells_its_story() -> None:
    run = Run(1, PLANS["calm"]._replace(seconds=4, admin_gap_ms=0))
    run.world.agenda.after(4 * SECOND, break_high_watermark, run)
    outcome = run.go()
    assert outcome.broken == "HIGH_WATERMARK_IN_LOG", outcome.sentence
    assert outcome.trace


LIVENESS = {
    "LEADER_APPEARS",
    "PRODUCE_IS_ANSWERED",
    "REPLICAS_CONVERGE",
    "ISR_HEALS",
    "PROPOSALS_RESOLVE",
    "METADATA_CONVERGES",
    "BROKERS_REGISTER",
    "BROKERS_UNFENCE",
    "REASSIGNMENT_ENDS",
    "QUORUM_LEADER_APPEARS",
    "STABLE_OFFSET_FOLLOWS",
    "DELETED_LOGS_GO",
}
"""Shown broken in test_liveness.py."""

ELSEWHERE = {
    "BOUNDS_KEPT",  # test_lives.py
    "LIVES_REPEAT",  # test_lives.py
    "REFUSED_BY_NAME",  # workloads/test_visitor.py
    "SOMEBODY_IS_NAMED",  # workloads/test_visitor.py
    "COMMITS_KEPT",  # workloads/test_group_ledger.py
    "GENERATIONS_ASCEND",  # workloads/test_group_ledger.py
    "MEMBERS_KEPT",  # workloads/test_group_member.py
    "ONE_OWNER",  # workloads/test_group_ledger.py
    "REBALANCES_END",  # workloads/test_group_member.py
    "EXACTLY_ONCE",  # workloads/test_transaction_ledger.py
    "LSO_MONOTONIC",  # workloads/test_committed_reader.py
    "TXN_ABORTED_UNSEEN",  # workloads/test_transaction_ledger.py, test_committed_reader.py
    "TXN_ATOMIC",  # workloads/test_transaction_ledger.py
    "TXN_DECIDED_ONCE",  # workloads/test_transaction_ledger.py
    "TXN_ENDS",  # workloads/test_processor.py
    "TXN_FENCED",  # workloads/test_transaction_ledger.py
    "EPOCHS_ORDERED",  # workloads/test_consumer_member.py
    "ELECTED_FROM_ELIGIBLE",  # test_metadata.py
    "SNAPSHOT_IS_COMMITTED",  # test_snapshots.py
    "READS_REACH_THE_END",  # test_run.py
    "SESSIONS_SERVE_WHAT_IS_WANTED",  # workloads/test_fetch_session.py
    "TOPICS_STAY_APART",  # workloads/test_scribbler.py
}
"""Shown broken in other files."""

ASSERTED = {
    "DURABLE_BEFORE_TOLD",
    "EPOCHS_ASCEND",
    "EPOCHS_ORDERED",
    "LEADER_HOLDS_ITS_EPOCH",
    "ONE_CHANGE_OF_VOTERS",
    "REPLAY_CANNOT_FAIL",
}
"""Assertions of the machines themselves: they end a run wherever they fail."""


def test_every_promise_is_looked_after() -> None:
    named = {name for name in vars(invariants) if name.isupper()}
    fired = {promise for _, promise in BROKEN}
    assert fired | LIVENESS | ELSEWHERE | ASSERTED == named
    assert promise_name("no promise") == "FAULT"
