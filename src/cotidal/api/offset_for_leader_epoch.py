"""OffsetForLeaderEpoch (key 23), versions 2-4: where an epoch ended (KIP-101, KIP-320)."""

from __future__ import annotations

from cotidal.core.partition.reading import check_leader_epoch
from cotidal.core.partition.replica import Replica
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.offset_for_leader_epoch import EpochEndOffset, OffsetForLeaderPartition
from cotidal.values import LeaderEpoch


def answer_partition(asked: OffsetForLeaderPartition, replica: Replica | None) -> EpochEndOffset:
    if replica is None:
        return EpochEndOffset(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, asked.partition)
    refusal = check_leader_epoch(replica, LeaderEpoch(asked.current_leader_epoch))
    if refusal is not None:
        return EpochEndOffset(refusal.error, asked.partition)
    end = replica.epochs.end_of(LeaderEpoch(asked.leader_epoch), log_end=replica.end_offset)
    return EpochEndOffset(0, asked.partition, end.epoch, end.end_offset)
