"""Leader side of one partition. Pure.

  HIGH_WATERMARK_MONOTONIC  the high watermark never moves back within an epoch and never passes
                            the end of the log
  ACKED_IS_KEPT             acks=all is answered only for records below the high watermark
  IDEMPOTENT_ONCE           a duplicate is answered with its original's offsets, and waits where its
                            original waits: it is never acknowledged before it

A batch is admitted (offsets given, producer state moved on), then written, then acknowledged:
acks=1 when it is written here, acks=all when the high watermark has passed it. Below
min.insync.replicas acks=all is refused before anything is written.

The high watermark is the least end among the replicas that must be waited for (isr.py), and stands
still below min.insync.replicas: eligible replicas outside the ISR may be elected then (KIP-966).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from cotidal.core.partition.effects import (
    CompleteAcks,
    EndMoved,
    LeadershipLost,
    PartitionEffect,
    ProposeIsr,
    RememberEpochs,
)
from cotidal.core.partition.high_watermark import committed_offset
from cotidal.core.partition.isr import (
    maximal_isr,
    may_join,
    must_wait_for,
    out_of_sync,
    propose,
)
from cotidal.core.partition.progress import NEVER, Progress
from cotidal.core.partition.replica import (
    Appointment,
    Leadership,
    Replica,
    aborted_up_to,
    move_high_watermark,
)
from cotidal.errors import ErrorCode, Refusal
from cotidal.invariants import HIGH_WATERMARK_IN_LOG, OFFSETS_CONTIGUOUS, ONE_LEADER_PER_EPOCH
from cotidal.messages.batch import Batches, BatchHeader, Marker, producer_refusal
from cotidal.values import (
    NO_EPOCH,
    NO_OFFSET,
    NO_TIMESTAMP,
    BrokerEpoch,
    LeaderEpoch,
    Millis,
    NodeId,
    Offset,
    PartitionEpoch,
    ProducerEpoch,
    ProducerId,
    WallMillis,
)

ACKS_ALL: Final = -1


class WriteRules(NamedTuple):
    """The topic's settings that decide whether a batch is taken."""

    max_message_bytes: int
    segment_bytes: int
    timestamp_after_max_ms: int
    stamps_time: bool


class Admitted(NamedTuple):
    """The batch has these offsets. ``write`` is False for a duplicate: it is in the log already."""

    base_offset: Offset
    next_offset: Offset
    write: bool
    timestamp: WallMillis = NO_TIMESTAMP
    """Of a duplicate's original; the log's answer tells it for a new batch."""


class FollowerFetched(NamedTuple):
    """A follower's fetch: it holds everything below ``offset``."""

    node_id: NodeId
    offset: Offset
    start_offset: Offset
    broker_epoch: BrokerEpoch


class IsrAnswered(NamedTuple):
    """The controller's answer to ProposeIsr."""

    asked: ProposeIsr
    """What it answers. A late answer to an earlier proposal says nothing about this one."""
    error: ErrorCode
    leader_epoch: LeaderEpoch = NO_EPOCH
    partition_epoch: PartitionEpoch = PartitionEpoch(-1)
    isr: tuple[NodeId, ...] = ()


_REVERT: Final = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED})
_WAIT_FOR_METADATA: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)


def become_leader(replica: Replica, told: Appointment, now: Millis) -> tuple[PartitionEffect, ...]:
    """Lead from the end of the log on. The epoch is entered before a record is written in it.

    Of a new leader's followers nothing is known until they fetch. Where the same leader goes on in
    the next epoch, it knows how far they are; only their clocks start again. Of a later one it
    knows nothing: somebody else may have led in between and had them cut what they told of here.
    """
    assert replica.opened, OFFSETS_CONTIGUOUS
    assert told.epoch >= replica.leader_epoch, ONE_LEADER_PER_EPOCH
    before = replica.leadership
    if before is not None and told.epoch > before.epoch + 1:
        before = None
    replica.following = None
    epoch_start = replica.next_offset  # what the disk is still writing is of an earlier epoch
    leadership = replica.leadership = Leadership(told, epoch_start=epoch_start)
    for node_id in told.replicas:
        if node_id == told.node_id:
            continue
        caught_up = now if node_id in told.isr else NEVER
        known = None if before is None else before.followers.get(node_id)
        if known is not None:
            known.restart_clock(caught_up=caught_up)
        leadership.followers[node_id] = known or Progress(caught_up=caught_up)
    remember: tuple[PartitionEffect, ...] = ()
    if replica.epochs.assign(told.epoch, start_offset=epoch_start):
        remember = (RememberEpochs(tuple(replica.epochs.entries)),)
    return (*remember, *advance_high_watermark(replica, now))


def on_partition_changed(
    replica: Replica, told: Appointment, now: Millis
) -> tuple[PartitionEffect, ...]:
    """The controller committed something else in the same leader epoch: it outranks a proposal."""
    leadership = replica.leadership
    assert leadership is not None
    assert told.epoch == leadership.epoch, ONE_LEADER_PER_EPOCH
    leadership.min_isr = told.effective_min_isr
    leadership.lag_max_ms = told.lag_max_ms
    leadership.active = told.active
    if told.partition_epoch >= leadership.partition_epoch:
        if told.partition_epoch > leadership.partition_epoch:
            leadership.proposal = None
        leadership.partition_epoch = told.partition_epoch
        leadership.isr = told.isr
        _assign_followers(leadership, told)
    return advance_high_watermark(replica, now)


def on_brokers_changed(
    replica: Replica, active: Mapping[NodeId, BrokerEpoch], now: Millis
) -> tuple[PartitionEffect, ...]:
    """Others may be in an ISR than before: nobody waits for one who may not any more."""
    leadership = replica.leadership
    if leadership is None:
        return ()
    leadership.active = active
    return advance_high_watermark(replica, now)


def on_follower_fetched(
    replica: Replica, fetched: FollowerFetched, now: Millis
) -> tuple[PartitionEffect, ...]:
    """Record how far a follower has got; return what that now allows.

    Only for a fetch that ``reading.admit_replica_fetch`` granted: a diverging follower has got
    nowhere (KAFKA-13141). Its answer carries the high watermark from before this.
    """
    leadership = replica.leadership
    assert leadership is not None
    progress = leadership.followers[fetched.node_id]
    progress.on_fetched(
        offset=fetched.offset,
        start_offset=fetched.start_offset,
        leader_end=replica.end_offset,
        broker_epoch=fetched.broker_epoch,
        now=now,
    )
    join: tuple[PartitionEffect, ...] = ()
    if may_join(replica, leadership, fetched.node_id, progress):
        join = (propose(leadership, (*leadership.isr, fetched.node_id)),)
    return (*join, *advance_high_watermark(replica, now))


def shrink_isr(replica: Replica, now: Millis) -> tuple[PartitionEffect, ...]:
    """Every half of replica.lag.time.max.ms: propose an ISR without those that fell behind."""
    leadership = replica.leadership
    if leadership is None or leadership.proposal is not None:
        return ()
    behind = out_of_sync(replica, leadership, now)
    if not behind:
        return ()
    kept = tuple(node_id for node_id in leadership.isr if node_id not in behind)
    return (propose(leadership, kept),)


def on_isr_answered(
    replica: Replica, answered: IsrAnswered, now: Millis
) -> tuple[PartitionEffect, ...]:
    """The controller's answer to a proposal.

    Refused for a member that may not join, or not attempted: back to what is committed. Refused
    because our knowledge is old: the proposal stands until metadata comes, for it may have been
    applied. Anything else: ask the same again, with the incarnations that were seen then; one that
    has come up since must first show how far it is.
    """
    leadership = replica.leadership
    if leadership is None or leadership.proposal != answered.asked:
        return ()
    if answered.error is ErrorCode.NONE:
        if (
            answered.leader_epoch == leadership.epoch
            and answered.partition_epoch >= leadership.partition_epoch
        ):
            leadership.isr = answered.isr
            leadership.partition_epoch = answered.partition_epoch
            leadership.proposal = None
        return advance_high_watermark(replica, now)
    if answered.error in _REVERT:
        leadership.proposal = None
        return advance_high_watermark(replica, now)
    if answered.error in _WAIT_FOR_METADATA:
        return ()
    return (answered.asked,)


def stop_leading(replica: Replica, reason: str) -> tuple[PartitionEffect, ...]:
    if replica.leadership is None:
        return ()
    replica.leadership = None
    return (LeadershipLost(reason),)


def admit_batch(
    replica: Replica,
    batches: Batches,
    *,
    acks: int,
    rules: WriteRules,
    wall: WallMillis,
    guard: int | None = None,
    by_coordinator: bool = False,
) -> Admitted | Refusal:
    """Give one batch its offsets, or say why not. Nothing changes when it is refused.

    ``guard``: what was taken before the coordinator confirmed the transaction (T6).
    ``by_coordinator``: this broker's own, which has no sequence to speak of and never comes twice.
    """
    leadership = replica.leadership
    if leadership is None:
        return _not_leader(replica)
    if acks == ACKS_ALL and len(leadership.isr) < leadership.min_isr:
        return _too_few(replica, leadership)
    refusal = producer_refusal(batches)
    if refusal is not None:
        return refusal
    header = batches.headers[0]
    refusal = _refused_by_rules(header.size_bytes, header.max_timestamp, rules, wall)
    if refusal is not None:
        return refusal
    base_offset = replica.next_offset
    if header.producer_id >= 0:
        producers = replica.producers
        verdict = producers.check_epoch(header) if by_coordinator else producers.check(header)
        if verdict is None:
            verdict = transaction_refusal(replica, header, guard)
        if verdict is not None:
            if isinstance(verdict, Refusal):
                return verdict
            after = Offset(verdict.last_offset + 1)
            return Admitted(verdict.base_offset, after, write=False, timestamp=verdict.timestamp)
        replica.producers.remember(header, base_offset=base_offset)
    next_offset = Offset(base_offset + header.last_offset_delta + 1)
    replica.next_offset = next_offset
    return tuple.__new__(Admitted, (base_offset, next_offset, True, NO_TIMESTAMP))


def needs_verification(replica: Replica, header: BatchHeader) -> bool:
    """T6: whether the coordinator must be asked before this batch is admitted."""
    return (
        header.is_transactional
        and not replica.producers.has_open(header.producer_id, header.producer_epoch)
        and replica.producers.check(header) is None
    )


def transaction_refusal(replica: Replica, header: BatchHeader, guard: int | None) -> Refusal | None:
    """T5, T6, of a batch that is not a duplicate."""
    transactions = replica.producers.transactions
    if transactions.is_open(header.producer_id):
        if not header.is_transactional:
            return Refusal(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {header.producer_id} has a transaction open in {replica.partition}, and"
                " the batch is not part of it",
            )
        if replica.producers.has_open(header.producer_id, header.producer_epoch):
            return None
        return Refusal(
            ErrorCode.NOT_ENOUGH_REPLICAS,  # which every client repeats
            f"the end of the last transaction of producer {header.producer_id} is not written in"
            f" {replica.partition} yet",
        )
    if not header.is_transactional:
        return None
    held = transactions.guarded(header.producer_id, guard)
    if held is None:
        return Refusal(
            ErrorCode.INVALID_TXN_STATE,
            f"the coordinator has not confirmed that {replica.partition} is part of the"
            f" transaction of producer {header.producer_id}",
        )
    if header.base_sequence > held.lowest_sequence:
        return Refusal(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id} sent sequence {header.base_sequence} before"
            f" {held.lowest_sequence}, which waits to be written",
        )
    return None


class MarkerAsk(NamedTuple):
    """A coordinator's end of a transaction (WriteTxnMarkers)."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    committed: bool
    coordinator_epoch: int
    raises_epoch: bool = False
    """Transaction version 2: the epoch is one above that of the transaction's records."""


def admit_marker(replica: Replica, ask: MarkerAsk, wall: WallMillis) -> Admitted | Refusal:
    """Give a marker its offset, or say why not (T3, T4). It is acknowledged as acks=all is."""
    leadership = replica.leadership
    if leadership is None:
        return _not_leader(replica)
    if len(leadership.isr) < leadership.min_isr:
        return _too_few(replica, leadership)
    verdict = replica.producers.check_marker(
        ask.producer_id,
        ask.producer_epoch,
        coordinator_epoch=ask.coordinator_epoch,
        raises_epoch=ask.raises_epoch,
    )
    if isinstance(verdict, Refusal):
        return verdict
    base_offset = replica.next_offset
    if not verdict:
        return Admitted(base_offset, base_offset, write=False)
    marker = Marker(base_offset, ask.committed, ask.coordinator_epoch)
    replica.producers.end_transaction(
        ask.producer_id, ask.producer_epoch, marker, wall, raises_epoch=ask.raises_epoch
    )
    replica.next_offset = Offset(base_offset + 1)
    return Admitted(base_offset, replica.next_offset, write=True)


def on_appended(replica: Replica, end_offset: Offset, now: Millis) -> tuple[PartitionEffect, ...]:
    """The log has written everything below ``end_offset``."""
    assert replica.end_offset <= end_offset <= replica.next_offset, OFFSETS_CONTIGUOUS
    replica.end_offset = end_offset
    aborted = aborted_up_to(replica, end_offset)
    return (EndMoved(end_offset), *aborted, *advance_high_watermark(replica, now))


def acks_outcome(replica: Replica, *, next_offset: Offset) -> Refusal | bool:
    """What an acks=all write is told that waits for ``next_offset``; False while it waits.

    It is committed when the high watermark has reached it. If the ISR has fallen below its minimum
    between that and this question, it is written but promised to nobody (20).
    """
    leadership = replica.leadership
    if leadership is None:
        return _not_leader(replica)
    if replica.high_watermark < next_offset:
        return False
    members = len(maximal_isr(leadership))
    if members >= leadership.min_isr:
        return True
    return Refusal(
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        f"written, but the ISR of {replica.partition} is now {members} of min {leadership.min_isr}",
    )


def advance_high_watermark(replica: Replica, now: Millis) -> tuple[PartitionEffect, ...]:
    leadership = replica.leadership
    if leadership is None or len(leadership.isr) < leadership.min_isr:
        return ()
    reached = committed_offset(
        leader_end=replica.end_offset,
        ends_waited_for=[
            progress.end_offset
            for node_id, progress in leadership.followers.items()
            if must_wait_for(replica, leadership, node_id, progress, now)
        ],
    )
    if reached <= replica.high_watermark:
        return ()
    assert reached <= replica.end_offset, HIGH_WATERMARK_IN_LOG
    return (*move_high_watermark(replica, reached), CompleteAcks(reached))


def _assign_followers(leadership: Leadership, told: Appointment) -> None:
    """Keep what is known of followers that stay; begin with nothing for new ones."""
    before = leadership.followers
    leadership.followers = {
        node_id: before.get(node_id) or Progress(caught_up=NEVER)
        for node_id in told.replicas
        if node_id != leadership.node_id
    }


def admit_delete(replica: Replica, offset: Offset) -> Offset | Refusal:
    """DeleteRecords: where the log may start from now on. -1 asks for the high watermark."""
    if replica.leadership is None:
        return _not_leader(replica)
    if offset == NO_OFFSET:
        return replica.high_watermark
    if not 0 <= offset <= replica.high_watermark:
        return Refusal(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"offset {offset} is above the high watermark {replica.high_watermark}",
        )
    return max(offset, replica.start_offset)


def low_watermark(replica: Replica) -> Offset:
    """The least start among the replicas whose brokers are active; of one that has not fetched in
    this leader's time it is not known, and -1."""
    leadership = replica.leadership
    if leadership is None:
        return replica.start_offset
    low = replica.start_offset
    for node_id, progress in leadership.followers.items():
        if node_id in leadership.active:
            low = min(low, progress.start_offset)
    return low


def _refused_by_rules(
    size_bytes: int, max_timestamp: WallMillis, rules: WriteRules, wall: WallMillis
) -> Refusal | None:
    if size_bytes > rules.max_message_bytes:
        return Refusal(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch of {size_bytes} bytes is above max.message.bytes={rules.max_message_bytes}",
        )
    if size_bytes > rules.segment_bytes:
        return Refusal(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"the batch of {size_bytes} bytes is above segment.bytes={rules.segment_bytes}",
        )
    if not rules.stamps_time and max_timestamp - wall > rules.timestamp_after_max_ms:
        return Refusal(
            ErrorCode.INVALID_TIMESTAMP,
            f"a record's timestamp {max_timestamp} is more than "
            f"message.timestamp.after.max.ms={rules.timestamp_after_max_ms} ahead of the clock",
        )
    return None


def _too_few(replica: Replica, leadership: Leadership) -> Refusal:
    return Refusal(
        ErrorCode.NOT_ENOUGH_REPLICAS,
        f"ISR {len(leadership.isr)} of min {leadership.min_isr} for {replica.partition}",
    )


def _not_leader(replica: Replica) -> Refusal:
    if replica.offline_reason is not None:
        return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, replica.offline_reason)
    return Refusal(
        ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker does not lead {replica.partition}"
    )
