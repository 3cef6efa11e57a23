"""What a fetcher may read of a partition. Pure.

The checks stand in Kafka's order; the first that fails answers:

    leader epoch of the request behind ours (74), ahead of it (75); not leader (6);
    a follower that is not assigned (75);
    offset below log start (1), which beats divergence; diverged by last fetched epoch;
    offset past the end (1); a follower of an earlier incarnation (6)

An offset past our end that comes with an epoch is a divergence, not (1): it tells the follower to
cut by epoch, and (1) would make it cut to our end (KIP-101).

Replicas read to the end. Consumers read below the high watermark, because what lies above may still
be truncated; read_committed ones below the last stable offset. An offset between the bound and the
end is not an error: there is just nothing to read yet.
"""

from __future__ import annotations

from typing import NamedTuple

from cotidal.core.partition.epochs import UNDEFINED, EpochEnd
from cotidal.core.partition.replica import Replica
from cotidal.errors import ErrorCode, Refusal
from cotidal.values import NO_BROKER_EPOCH, NO_EPOCH, BrokerEpoch, LeaderEpoch, NodeId, Offset

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
    followers_serve: bool = False,
) -> Granted | Diverged | Refusal:
    """A consumer's fetch. From version 11 on (``followers_serve``) a follower answers it too, up
    to its own high watermark (KIP-392). An offset that a follower has not got to is not available
    there: what is out of range its leader says."""
    if followers_serve and replica.following is not None and replica.opened:
        refusal = _refused_epoch(replica, current_epoch)
        if refusal is None and offset > replica.end_offset:
            refusal = Refusal(
                ErrorCode.OFFSET_NOT_AVAILABLE,
                f"this follower has {replica.partition} up to {replica.end_offset} only",
            )
    else:
        refusal = check_leader_epoch(replica, current_epoch)
    if refusal is not None:
        return refusal
    verdict = _refused_position(replica, offset, last_fetched_epoch)
    if verdict is not None:
        return verdict
    if isolation_level == READ_COMMITTED:
        return Granted(replica.last_stable_offset)
    return Granted(replica.high_watermark)


def admit_replica_fetch(
    replica: Replica,
    *,
    node_id: NodeId,
    broker_epoch: BrokerEpoch,
    offset: Offset,
    current_epoch: LeaderEpoch,
    last_fetched_epoch: LeaderEpoch,
) -> Granted | Diverged | Refusal:
    """A follower's fetch: it reads to the end. Only one that is granted says how far it has got.

    A follower that is not assigned here may know of an assignment that we do not: like an epoch
    ahead of ours (75). One of an earlier incarnation than the registered one may have lost what it
    claims to hold (6); a fetch that names no incarnation (-1) is not held to one.
    """
    refusal = check_leader_epoch(replica, current_epoch)
    if refusal is not None:
        return refusal
    leadership = replica.leadership
    assert leadership is not None
    if node_id not in leadership.followers:
        return Refusal(
            ErrorCode.UNKNOWN_LEADER_EPOCH,
            f"broker {node_id} is not a replica of {replica.partition} as far as is known here",
        )
    verdict = _refused_position(replica, offset, last_fetched_epoch)
    if verdict is not None:
        return verdict
    known = leadership.active.get(node_id, NO_BROKER_EPOCH)
    if NO_BROKER_EPOCH < broker_epoch < known:
        return Refusal(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"broker {node_id} is registered with epoch {known}, not {broker_epoch}",
        )
    return Granted(replica.end_offset)


def check_leader_epoch(
    replica: Replica, current_epoch: LeaderEpoch, *, leader_only: bool = True
) -> Refusal | None:
    """The checks that every request to a leader begins with; -1 claims no epoch."""
    if replica.offline_reason is not None:
        return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, replica.offline_reason)
    refusal = _refused_epoch(replica, current_epoch)
    if refusal is None and replica.leadership is None and (leader_only or not replica.opened):
        return Refusal(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker does not lead {replica.partition}"
        )
    return refusal


def _refused_epoch(replica: Replica, current_epoch: LeaderEpoch) -> Refusal | None:
    """Leader or follower: who knows more, the fetcher or this broker?"""
    known = replica.leader_epoch
    if current_epoch == known or NO_EPOCH in (known, current_epoch):
        return None
    if current_epoch < known:
        return Refusal(
            ErrorCode.FENCED_LEADER_EPOCH,
            f"{replica.partition} is led in epoch {known}, not {current_epoch}",
        )
    return Refusal(
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        f"{replica.partition} is in epoch {known} here; "
        f"{current_epoch} has not reached this broker",
    )


def _refused_position(
    replica: Replica, offset: Offset, last_fetched_epoch: LeaderEpoch
) -> Diverged | Refusal | None:
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
    return None


def latest_offset(replica: Replica, *, isolation_level: int) -> Offset | Refusal:
    """ListOffsets LATEST for a client. Unknown until the high watermark has reached what this
    leader found when it took over: until then it may be behind what was told before (KIP-207). For
    a replica it is the end of the log."""
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
