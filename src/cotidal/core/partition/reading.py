"""What a fetcher may read of a partition. Pure.

The checks stand in Kafka's order; the first that fails answers:

    leader epoch of the request behind ours (74), ahead of it (75); not leader (6);
    offset below log start (1), which beats divergence; diverged by last fetched epoch;
    offset past the end (1)

Consumers read below the high watermark, because what lies above may still be truncated;
read_committed ones below the last stable offset. An offset between the bound and the end is not an
error: there is just nothing to read yet.
"""

from __future__ import annotations

from typing import NamedTuple

from cotidal.core.partition.epochs import UNDEFINED, EpochEnd
from cotidal.core.partition.replica import Replica
from cotidal.errors import ErrorCode, Refusal
from cotidal.values import NO_EPOCH, LeaderEpoch, Offset

READ_COMMITTED = 1


class Granted(NamedTuple):
    """Records at or after the asked offset may be read, all below ``below``."""

    below: Offset


class Diverged(NamedTuple):
    """The fetcher's log and ours part here: it must truncate (KIP-595)."""

    end: EpochEnd


def admit_fetch(
    replica: Replica,
    *,
    offset: Offset,
    current_epoch: LeaderEpoch,
    last_fetched_epoch: LeaderEpoch,
    isolation_level: int,
) -> Granted | Diverged | Refusal:
    refusal = check_leader_epoch(replica, current_epoch)
    if refusal is not None:
        return refusal
    if offset < replica.start_offset:
        return _out_of_range(replica, offset)
    if last_fetched_epoch != NO_EPOCH:
        end = replica.epochs.end_of(last_fetched_epoch, log_end=replica.end_offset)
        if end == UNDEFINED:
            return _out_of_range(replica, offset)
        if end.epoch < last_fetched_epoch or end.end_offset < offset:
            return Diverged(end)
    if offset > replica.end_offset:
        return _out_of_range(replica, offset)
    if isolation_level == READ_COMMITTED:
        return Granted(replica.last_stable_offset)
    return Granted(replica.high_watermark)


def check_leader_epoch(replica: Replica, current_epoch: LeaderEpoch) -> Refusal | None:
    """The checks that every request to a leader begins with; -1 claims no epoch."""
    leadership = replica.leadership
    if leadership is not None and current_epoch != NO_EPOCH:
        if current_epoch < leadership.epoch:
            return Refusal(
                ErrorCode.FENCED_LEADER_EPOCH,
                f"{replica.partition} is led in epoch {leadership.epoch}, not {current_epoch}",
            )
        if current_epoch > leadership.epoch:
            return Refusal(
                ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"{replica.partition} is led here in epoch {leadership.epoch}; "
                f"{current_epoch} has not reached this broker",
            )
    if leadership is None:
        if replica.offline_reason is not None:
            return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, replica.offline_reason)
        return Refusal(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker does not lead {replica.partition}"
        )
    return None


def latest_offset(replica: Replica, *, isolation_level: int) -> Offset | Refusal:
    """ListOffsets LATEST. Unknown until the high watermark has reached this epoch (KIP-207)."""
    leadership = replica.leadership
    assert leadership is not None
    if replica.high_watermark < leadership.epoch_start:
        return Refusal(
            ErrorCode.OFFSET_NOT_AVAILABLE,
            f"the high watermark of {replica.partition} has not reached the start of epoch "
            f"{leadership.epoch} yet",
        )
    if isolation_level == READ_COMMITTED:
        return replica.last_stable_offset
    return replica.high_watermark


def _out_of_range(replica: Replica, offset: Offset) -> Refusal:
    return Refusal(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"offset {offset} is outside [{replica.start_offset}, {replica.end_offset}] "
        f"of {replica.partition}",
    )
