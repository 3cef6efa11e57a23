"""ListOffsets, OffsetForLeaderEpoch: questions about a log's ends and middle. Pure.

Ends are known to the core and answered at once; a look-up by time asks the disk (FindTime).
"""

from __future__ import annotations

from typing import NamedTuple

from cotidal.api import list_offsets as list_api
from cotidal.api import offset_for_leader_epoch as epoch_api
from cotidal.core.partition.reading import READ_COMMITTED, check_leader_epoch, latest_offset
from cotidal.core.partition.replica import Replica
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
)
from cotidal.messages.rpc.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from cotidal.node.connections import Slot
from cotidal.node.effects import FindTime
from cotidal.node.events import TimeFound
from cotidal.node.hosting import Hosted
from cotidal.node.redirects import not_here
from cotidal.node.state import NodeState
from cotidal.values import LeaderEpoch, Offset, TopicPartition, WallMillis


class PendingList:
    """A ListOffsets some of whose partitions wait for the disk."""

    __slots__ = ("missing", "request", "results", "slot")

    def __init__(self, slot: Slot, request: ListOffsetsRequest) -> None:
        self.slot = slot
        self.request = request
        self.missing = 0
        self.results: list[list[ListOffsetsPartitionResponse | None]] = []


class TimeWait(NamedTuple):
    """The place of one look-up by time in its ListOffsets."""

    pending: PendingList
    topic_position: int
    partition_position: int
    hosted: Hosted | None


def begin_list(state: NodeState, slot: Slot, request: ListOffsetsRequest) -> None:
    pending = PendingList(slot, request)
    for topic_position, topic in enumerate(request.topics):
        results: list[ListOffsetsPartitionResponse | None] = []
        pending.results.append(results)
        for position, asked in enumerate(topic.partitions):
            place = TopicPartition(topic.name, asked.partition_index)
            wait = TimeWait(pending, topic_position, position, state.hosted.get(place))
            results.append(_list_partition(state, place, asked, request, wait))
            pending.missing += results[-1] is None
    if not pending.missing:
        _answer_list(state, pending)


def _list_partition(
    state: NodeState,
    place: TopicPartition,
    asked: ListOffsetsPartition,
    request: ListOffsetsRequest,
    wait: TimeWait,
) -> ListOffsetsPartitionResponse | None:
    """The answer, or None when the disk must be asked."""
    version = wait.pending.slot.request.api_version
    index, hosted = asked.partition_index, wait.hosted
    refusal = list_api.refused_timestamp(asked.timestamp, version)
    if refusal is None and hosted is None:
        refusal = not_here(state, place)
    if refusal is None and hosted is not None:
        refusal = check_leader_epoch(
            hosted.replica,
            LeaderEpoch(asked.current_leader_epoch),
            leader_only=request.replica_id != list_api.DEBUGGER,
        )
    if refusal is not None or hosted is None:
        return list_api.partition_refused(index, refusal or Refusal(ErrorCode.NONE), version)
    replica = hosted.replica
    if asked.timestamp in (list_api.EARLIEST, list_api.EARLIEST_LOCAL):
        return _found(index, replica, replica.start_offset)
    if asked.timestamp in (list_api.LATEST_TIERED, list_api.EARLIEST_PENDING_UPLOAD):
        return list_api.partition_without(index)
    below = _bound(replica, request)
    if isinstance(below, Refusal):
        return list_api.partition_refused(index, below, version)
    if asked.timestamp == list_api.LATEST:
        return _found(index, replica, below)
    timestamp = None
    if asked.timestamp != list_api.MAX_TIMESTAMP:
        timestamp = WallMillis(asked.timestamp)
    token = state.next_read_token(wait)
    state.out.append(FindTime(token, replica.partition, timestamp, below))
    return None


def on_time_found(state: NodeState, event: TimeFound) -> None:
    wait = state.take_read(event.token, TimeWait)
    pending = wait.pending
    topic = pending.request.topics[wait.topic_position]
    index = topic.partitions[wait.partition_position].partition_index
    result = list_api.partition_without(index)
    reason = None if wait.hosted is None else wait.hosted.replica.offline_reason
    if reason is not None:
        failed = Refusal(ErrorCode.KAFKA_STORAGE_ERROR, reason)
        version = pending.slot.request.api_version
        result = list_api.partition_refused(index, failed, version)
    elif event.found is not None:
        result = list_api.partition_found(
            index,
            offset=event.found.offset,
            timestamp=event.found.timestamp,
            leader_epoch=event.found.leader_epoch,
        )
    pending.results[wait.topic_position][wait.partition_position] = result
    pending.missing -= 1
    if not pending.missing:
        _answer_list(state, pending)


def begin_epoch_ends(state: NodeState, slot: Slot, request: OffsetForLeaderEpochRequest) -> None:
    topics = []
    for topic in request.topics:
        ends = []
        for asked in topic.partitions:
            place = TopicPartition(topic.topic, asked.partition)
            hosted = state.hosted.get(place)
            replica = not_here(state, place) if hosted is None else hosted.replica
            ends.append(epoch_api.answer_partition(asked, replica))
        topics.append(OffsetForLeaderTopicResult(topic.topic, tuple(ends)))
    slot.connection.answer(slot, OffsetForLeaderEpochResponse(topics=tuple(topics)), state.out)


def _bound(replica: Replica, request: ListOffsetsRequest) -> Offset | Refusal:
    """Clients see up to the high watermark; replicas, and tools that ask as one, to the end."""
    if request.replica_id != -1:
        return replica.end_offset
    isolation_level = READ_COMMITTED if request.isolation_level == READ_COMMITTED else 0
    return latest_offset(replica, isolation_level=isolation_level)


def _found(index: int, replica: Replica, offset: Offset) -> ListOffsetsPartitionResponse:
    epoch = replica.epochs.epoch_at(offset)
    return list_api.partition_found(index, offset=offset, leader_epoch=epoch)


def _answer_list(state: NodeState, pending: PendingList) -> None:
    slot = pending.slot
    version = slot.request.api_version
    answer = list_api.response(pending.request, pending.results, version)
    slot.connection.answer(slot, answer, state.out)
