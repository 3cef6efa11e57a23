"""OffsetForLeaderEpoch (key 23), versions 2-4: where an epoch ended (KIP-101, KIP-320)."""

from __future__ import annotations

from cotidal.core.partition.reading import check_leader_epoch
from cotidal.core.partition.replica import Replica
from cotidal.errors import Refusal
from cotidal.messages.rpc.offset_for_leader_epoch import EpochEndOffset, OffsetForLeaderPartition
from cotidal.values import LeaderEpoch


def answer_partition(asked: OffsetForLeaderPartition, replica: Replica | Refusal) -> EpochEndOffset:
    """``replica``: the one that is here, or why there is none."""
    if isinstance(replica, Refusal):
        return EpochEndOffset(replica.error, asked.partition)
    refusal = check_leader_epoch(replica, LeaderEpoch(asked.current_leader_epoch))
    if refusal is not None:
        return EpochEndOffset(refusal.error, asked.partition)
    end = replica.epochs.end_of(LeaderEpoch(asked.leader_epoch), log_end=replica.end_offset)
    return EpochEndOffset(0, asked.partition, end.epoch, end.end_offset)
