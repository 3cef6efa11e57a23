"""FetchSnapshot (key 59), versions 0-1: a snapshot of the metadata log, piece by piece. KIP-630.

Asked by a replica whose log ends before the leader's begins; KIP-853 adds its directory and, in the
answer, where the leader is. A piece ends anywhere, also within a batch. Served at the controller's
listener, by the leader of the quorum; errors stand in the one partition: SNAPSHOT_NOT_FOUND,
POSITION_OUT_OF_RANGE, and those of its epoch and leadership.
"""

from __future__ import annotations

from typing import Final

from cotidal.core.quorum.dialogue import ChunkReply, FetchChunk, FetchedChunk, Hint
from cotidal.core.quorum.log_view import SnapshotId
from cotidal.core.quorum.voters import ReplicaKey
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotRequestPartitionSnapshot,
    FetchSnapshotRequestSnapshotId,
    FetchSnapshotRequestTopicSnapshot,
    FetchSnapshotResponse,
    FetchSnapshotResponsePartitionSnapshot,
    FetchSnapshotResponseSnapshotId,
    FetchSnapshotResponseTopicSnapshot,
    LeaderIdAndEpoch,
    NodeEndpoint,
)
from cotidal.values import LeaderEpoch, NodeId, Offset

VERSION: Final = 1
"""The one that we ask in."""
TOPIC: Final = "__cluster_metadata"


def request(question: FetchChunk, cluster_id: str) -> FetchSnapshotRequest:
    partition = FetchSnapshotRequestPartitionSnapshot(
        partition=0,
        current_leader_epoch=question.epoch,
        snapshot_id=FetchSnapshotRequestSnapshotId(*question.snapshot),
        position=question.position,
        replica_directory_id=question.replica.directory_id,
    )
    topic = FetchSnapshotRequestTopicSnapshot(TOPIC, (partition,))
    return FetchSnapshotRequest(cluster_id, question.replica.node_id, question.max_bytes, (topic,))


def question(message: FetchSnapshotRequest) -> FetchChunk:
    """The request names one partition: that has been looked at."""
    wanted = message.topics[0].partitions[0]
    return FetchChunk(
        replica=ReplicaKey(NodeId(message.replica_id), wanted.replica_directory_id),
        epoch=LeaderEpoch(wanted.current_leader_epoch),
        snapshot=_id(wanted.snapshot_id),
        position=wanted.position,
        max_bytes=message.max_bytes,
    )


def response(reply: ChunkReply, data: bytes | memoryview) -> FetchSnapshotResponse:
    hint = reply.hint
    partition = FetchSnapshotResponsePartitionSnapshot(
        partition_index=0,
        error_code=reply.error,
        snapshot_id=FetchSnapshotResponseSnapshotId(*reply.snapshot),
        current_leader=LeaderIdAndEpoch(hint.leader_id, hint.epoch),
        size=reply.size_bytes,
        position=reply.position,
        unaligned_records=data,
    )
    return FetchSnapshotResponse(
        topics=(FetchSnapshotResponseTopicSnapshot(TOPIC, (partition,)),),
        node_endpoints=tuple(
            NodeEndpoint(hint.leader_id, point.host, point.port) for point in hint.endpoints[:1]
        ),
    )


def reply(message: FetchSnapshotResponse, error: ErrorCode, hint: Hint) -> ChunkReply:
    """``error`` and ``hint``: of its one partition, as every answer of the quorum has them."""
    told = message.topics[0].partitions[0]
    data = told.unaligned_records
    return ChunkReply(
        error,
        hint,
        _id(told.snapshot_id),
        told.size,
        told.position,
        FetchedChunk(len(data), data) if error == ErrorCode.NONE else None,
    )


def _id(told: FetchSnapshotRequestSnapshotId | FetchSnapshotResponseSnapshotId) -> SnapshotId:
    return SnapshotId(Offset(told.end_offset), LeaderEpoch(told.epoch))
