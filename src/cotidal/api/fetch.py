"""Fetch (key 1), versions 4-18.

KIP-227 sessions, KIP-320 leader epochs, KIP-392 preferred read replicas (from 11 on), KIP-516 topic
ids (from 13 on), KIP-595 diverging epochs, KIP-98 aborted transactions, KIP-951 who leads, in the
answer of who does not (from 16 on).

Not there: nothing of the protocol.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from cotidal.api.leaders import Leader
from cotidal.core.partition.epochs import EpochEnd
from cotidal.core.partition.follower import Question
from cotidal.errors import ErrorCode
from cotidal.messages.batch import NO_BATCHES, Batches, Stretch
from cotidal.messages.producers import AbortedTransaction
from cotidal.messages.rpc.fetch import AbortedTransaction as Aborted
from cotidal.messages.rpc.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ReplicaState,
)
from cotidal.values import NO_BROKER_EPOCH, BrokerEpoch, NodeId, Offset, Uuid

TOPIC_IDS_SINCE: Final = 13
REPLICA_STATE_SINCE: Final = 15
LEADERS_TOLD_SINCE: Final = 16
FOLLOWERS_SERVE_SINCE: Final = 11
"""A consumer that can be sent to a follower may ask one (KIP-392)."""
REPLICA_VERSION: Final = 17
"""In which nodes of a cluster fetch from each other."""

_new: Final = tuple.__new__
_NO_LEADER: Final = LeaderIdAndEpoch()
_NOTHING_ASTRAY: Final = PartitionData()[5:8]
"""No divergence, no other leader, no snapshot."""
_NOTHING_MORE: Final = FetchPartition()[6:]


def uses_topic_ids(version: int) -> bool:
    return version >= TOPIC_IDS_SINCE


def fetcher_id(request: FetchRequest, version: int) -> int:
    """The replica that fetches; -1 for a consumer."""
    if version >= REPLICA_STATE_SINCE:
        return request.replica_state.replica_id
    return request.replica_id


def fetcher_epoch(request: FetchRequest, version: int) -> BrokerEpoch:
    """The incarnation of the replica that fetches; -1 where it does not say."""
    if version >= REPLICA_STATE_SINCE:
        return BrokerEpoch(request.replica_state.replica_epoch)
    return NO_BROKER_EPOCH


def replica_request(
    asked: list[tuple[Uuid, int, Question]],
    forgotten: list[tuple[Uuid, int]],
    *,
    session_id: int,
    session_epoch: int,
    node_id: NodeId,
    broker_epoch: BrokerEpoch,
    max_wait_ms: int,
    min_bytes: int,
    max_bytes: int,
    partition_max_bytes: int,
) -> FetchRequest:
    """How a follower asks its leader, in REPLICA_VERSION."""
    by_topic: dict[Uuid, list[FetchPartition]] = {}
    for topic_id, partition, put in asked:
        by_topic.setdefault(topic_id, []).append(
            _new(FetchPartition, (partition, *put, partition_max_bytes, *_NOTHING_MORE))
        )
    left: dict[Uuid, list[int]] = {}
    for topic_id, partition in forgotten:
        left.setdefault(topic_id, []).append(partition)
    return FetchRequest(
        replica_state=ReplicaState(node_id, broker_epoch),
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_id=session_id,
        session_epoch=session_epoch,
        forgotten_topics_data=tuple(
            ForgottenTopic(topic_id=topic_id, partitions=tuple(partitions))
            for topic_id, partitions in left.items()
        ),
        topics=tuple(
            FetchTopic(topic_id=topic_id, partitions=tuple(partitions))
            for topic_id, partitions in by_topic.items()
        ),
    )


def refused(error: ErrorCode) -> FetchResponse:
    return FetchResponse(error_code=error)


def partition_refused(
    partition: int, error: ErrorCode, leader: Leader | None = None
) -> PartitionData:
    """``leader``: who would not have refused."""
    return PartitionData(
        partition_index=partition,
        error_code=error,
        high_watermark=-1,
        current_leader=_NO_LEADER if leader is None else LeaderIdAndEpoch(*leader[:2]),
        records=NO_BATCHES,
    )


def partition_read(
    partition: int,
    *,
    high_watermark: Offset,
    last_stable_offset: Offset,
    log_start_offset: Offset,
    data: bytes | memoryview | Stretch,
    aborted: tuple[AbortedTransaction, ...] | None = None,
) -> PartitionData:
    """``aborted``: what a read_committed consumer is to leave out; None for any other."""
    told = None
    if aborted is not None:
        told = tuple([Aborted(each.producer_id, each.first_offset) for each in aborted])
    records = _new(Batches, ((), data, None, False, ())) if data else NO_BATCHES
    marks = (high_watermark, last_stable_offset, log_start_offset)
    return _new(PartitionData, (partition, 0, *marks, *_NOTHING_ASTRAY, told, -1, records))


def partition_diverged(
    partition: int,
    *,
    end: EpochEnd,
    high_watermark: Offset,
    last_stable_offset: Offset,
    log_start_offset: Offset,
) -> PartitionData:
    return PartitionData(
        partition_index=partition,
        high_watermark=high_watermark,
        last_stable_offset=last_stable_offset,
        log_start_offset=log_start_offset,
        diverging_epoch=EpochEndOffset(epoch=end.epoch, end_offset=end.end_offset),
        records=NO_BATCHES,
    )


def partition_nearer(
    partition: int,
    *,
    node_id: NodeId,
    high_watermark: Offset,
    last_stable_offset: Offset,
    log_start_offset: Offset,
) -> PartitionData:
    """No records: they are to be read from that replica."""
    return PartitionData(
        partition_index=partition,
        high_watermark=high_watermark,
        last_stable_offset=last_stable_offset,
        log_start_offset=log_start_offset,
        preferred_read_replica=node_id,
        records=NO_BATCHES,
    )


def response(
    topics: list[tuple[str, Uuid, list[PartitionData]]],
    session_id: int,
    leaders: Collection[Leader] = (),
) -> FetchResponse:
    """``leaders``: all that are named in them."""
    responses = tuple(
        [
            _new(FetchableTopicResponse, (name, topic_id, tuple(partitions)))
            for name, topic_id, partitions in topics
        ]
    )
    points: tuple[NodeEndpoint, ...] = ()
    if leaders:
        points = tuple([NodeEndpoint(each.node_id, *each[2:]) for each in leaders])
    return _new(FetchResponse, (0, 0, session_id, responses, points))
