"""Leader side of one partition. Pure.

  HIGH_WATERMARK_MONOTONIC  the high watermark never moves back within an epoch and never passes
                            the end of the log
  ACKED_IS_KEPT             acks=all is answered only for records below the high watermark
  IDEMPOTENT_ONCE           a duplicate is answered with its original's offsets, and waits where its
                            original waits: it is never acknowledged before it

A batch is admitted (offsets given, producer state moved on), then written, then acknowledged:
acks=1 when it is written here, acks=all when the high watermark has passed it. Below
min.insync.replicas acks=all is refused before anything is written.

Followers, ISR proposals and their part in the high watermark join ``ends_waited_for`` below.
"""

from __future__ import annotations

from typing import NamedTuple

from cotidal.core.partition.effects import (
    CompleteAcks,
    EndMoved,
    LeadershipLost,
    PartitionEffect,
    Readable,
    RememberEpochs,
)
from cotidal.core.partition.high_watermark import committed_offset
from cotidal.core.partition.replica import Leadership, Replica
from cotidal.errors import ErrorCode, Refusal
from cotidal.invariants import HIGH_WATERMARK_IN_LOG, HIGH_WATERMARK_MONOTONIC, OFFSETS_CONTIGUOUS
from cotidal.messages.batch import Batches
from cotidal.values import NO_OFFSET, LeaderEpoch, NodeId, Offset, WallMillis

ACKS_ALL = -1


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
    timestamp: WallMillis = WallMillis(-1)
    """Of a duplicate's original; the log's answer tells it for a new batch."""


def become_leader(
    replica: Replica,
    *,
    epoch: LeaderEpoch,
    partition_epoch: int,
    isr: tuple[NodeId, ...],
    min_isr: int,
) -> tuple[PartitionEffect, ...]:
    """Lead from the end of the log on. The epoch is entered before a record is written in it."""
    replica.leadership = Leadership(
        epoch=epoch,
        epoch_start=replica.end_offset,
        partition_epoch=partition_epoch,
        isr=isr,
        min_isr=min_isr,
    )
    remember: tuple[PartitionEffect, ...] = ()
    if replica.epochs.assign(epoch, start_offset=replica.end_offset):
        remember = (RememberEpochs(tuple(replica.epochs.entries)),)
    return (*remember, *advance_high_watermark(replica))


def on_partition_changed(
    replica: Replica, *, partition_epoch: int, isr: tuple[NodeId, ...]
) -> tuple[PartitionEffect, ...]:
    """The controller committed another ISR in the same leader epoch."""
    leadership = replica.leadership
    assert leadership is not None
    leadership.partition_epoch = partition_epoch
    leadership.isr = isr
    return advance_high_watermark(replica)


def stop_leading(replica: Replica, reason: str) -> tuple[PartitionEffect, ...]:
    if replica.leadership is None:
        return ()
    replica.leadership = None
    return (LeadershipLost(reason),)


def admit_batch(
    replica: Replica, batches: Batches, *, acks: int, rules: WriteRules, wall: WallMillis
) -> Admitted | Refusal:
    """Give one batch its offsets, or say why not. Nothing changes when it is refused."""
    leadership = replica.leadership
    if leadership is None:
        return _not_leader(replica)
    if acks == ACKS_ALL and len(leadership.isr) < leadership.min_isr:
        return Refusal(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"ISR {len(leadership.isr)} of min {leadership.min_isr} for {replica.partition}",
        )
    if batches.fault is not None:
        return Refusal(ErrorCode.CORRUPT_MESSAGE, batches.fault)
    if len(batches.headers) != 1 or batches.cut:
        return Refusal(
            ErrorCode.INVALID_RECORD,
            f"a produce request carries exactly one whole batch per partition, "
            f"not {len(batches.headers)}{' and a cut one' if batches.cut else ''}",
        )
    header = batches.headers[0]
    refusal = _refused_by_rules(header.size_bytes, header.max_timestamp, rules, wall)
    if refusal is not None:
        return refusal
    if header.is_control:
        return Refusal(ErrorCode.INVALID_RECORD, "clients may not write control batches")
    if header.is_transactional:
        return Refusal(
            ErrorCode.INVALID_TXN_STATE, "transactions are not served yet: no transaction is open"
        )
    base_offset = replica.next_offset
    if header.producer_id >= 0:
        verdict = replica.producers.check(header)
        if verdict is not None:
            if isinstance(verdict, Refusal):
                return verdict
            after = Offset(verdict.last_offset + 1)
            return Admitted(verdict.base_offset, after, write=False, timestamp=verdict.timestamp)
        replica.producers.remember(header, base_offset=base_offset)
    next_offset = Offset(base_offset + header.last_offset_delta + 1)
    replica.next_offset = next_offset
    return Admitted(base_offset, next_offset, True)


def on_appended(replica: Replica, end_offset: Offset) -> tuple[PartitionEffect, ...]:
    """The log has written everything below ``end_offset``."""
    assert replica.end_offset <= end_offset <= replica.next_offset, OFFSETS_CONTIGUOUS
    replica.end_offset = end_offset
    return (EndMoved(end_offset), *advance_high_watermark(replica))


def advance_high_watermark(replica: Replica) -> tuple[PartitionEffect, ...]:
    leadership = replica.leadership
    if leadership is None or len(leadership.isr) < leadership.min_isr:
        return ()
    reached = committed_offset(leader_end=replica.end_offset, ends_waited_for=())
    if reached == replica.high_watermark:
        return ()
    assert reached > replica.high_watermark, HIGH_WATERMARK_MONOTONIC
    assert reached <= replica.end_offset, HIGH_WATERMARK_IN_LOG
    replica.high_watermark = reached
    return (Readable(reached, replica.last_stable_offset), CompleteAcks(reached))


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


def _not_leader(replica: Replica) -> Refusal:
    if replica.offline_reason is not None:
        return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, replica.offline_reason)
    return Refusal(
        ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker does not lead {replica.partition}"
    )
