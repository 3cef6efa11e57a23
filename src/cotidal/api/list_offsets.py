"""ListOffsets (key 2), versions 1-11.

Timestamps with a meaning of their own: -1 latest, -2 earliest, -3 of the largest timestamp
(KIP-734), -4 earliest local, -5 latest tiered, -6 earliest not yet tiered (version 11). Nothing is
tiered here: the local log is the log, -5 and -6 answer that there is no such offset. A tool that
asks as replica -2 is told the ends of a follower's log too.
"""

from __future__ import annotations

from typing import Final

from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from cotidal.values import (
    NO_EPOCH,
    NO_TIMESTAMP,
    LeaderEpoch,
    NodeId,
    Offset,
    TopicPartition,
    WallMillis,
)

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6

DEBUGGER: Final = -2
"""As this replica a tool asks that looks into single replicas, whoever leads."""

_SPECIAL_SINCE: Final = {
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_LEADER_EPOCH_SINCE: Final = 4
_OFFSET_NOT_AVAILABLE_SINCE: Final = 5
REPLICA_VERSION: Final = 7
"""In which nodes of a cluster ask each other."""


def replica_request(
    partition: TopicPartition, timestamp: int, *, node_id: NodeId, leader_epoch: LeaderEpoch
) -> ListOffsetsRequest:
    """How a follower asks its leader for an end of its log."""
    asked = ListOffsetsPartition(partition.partition, leader_epoch, timestamp)
    return ListOffsetsRequest(
        replica_id=node_id, topics=(ListOffsetsTopic(partition.topic, (asked,)),)
    )


def refused_timestamp(timestamp: int, version: int) -> Refusal | None:
    """A negative timestamp that means nothing in this version."""
    if timestamp >= EARLIEST:
        return None
    since = _SPECIAL_SINCE.get(timestamp)
    if since is None or version < since:
        return Refusal(ErrorCode.UNSUPPORTED_VERSION)
    return None


def partition_refused(
    partition: int, refusal: Refusal, version: int
) -> ListOffsetsPartitionResponse:
    error = refusal.error
    if error == ErrorCode.OFFSET_NOT_AVAILABLE and version < _OFFSET_NOT_AVAILABLE_SINCE:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    return ListOffsetsPartitionResponse(partition_index=partition, error_code=error)


def partition_found(
    partition: int,
    *,
    offset: Offset,
    timestamp: WallMillis = NO_TIMESTAMP,
    leader_epoch: LeaderEpoch,
) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=partition, timestamp=timestamp, offset=offset, leader_epoch=leader_epoch
    )


def partition_without(partition: int) -> ListOffsetsPartitionResponse:
    """No record that new, or no such place."""
    return ListOffsetsPartitionResponse(partition_index=partition)


def response(
    request: ListOffsetsRequest,
    results: list[list[ListOffsetsPartitionResponse | None]],
    version: int,
) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=tuple(
            ListOffsetsTopicResponse(
                topic.name, tuple(_in_version(r, version) for r in partitions if r is not None)
            )
            for topic, partitions in zip(request.topics, results, strict=True)
        )
    )


def _in_version(result: ListOffsetsPartitionResponse, version: int) -> ListOffsetsPartitionResponse:
    return result if version >= _LEADER_EPOCH_SINCE else result._replace(leader_epoch=NO_EPOCH)
