"""Any request, refused with any error, in the form of its own API and version. Pure.

Every part of the request (a partition, a topic, a group) is told the error; an answer that has room
for one error only says it once. For an API that is not known here by its parts nor by such a room,
give a whole response.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from cotidal.api import fetch as fetching
from cotidal.api import produce as producing
from cotidal.errors import MESSAGES, ErrorCode, Refusal
from cotidal.messages.rpc import (
    add_partitions_to_txn,
    fetch,
    find_coordinator,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    txn_offset_commit,
)

_ONE_KEY_UNTIL = 3
_ONE_GROUP_UNTIL = 7
_ONE_TRANSACTION_UNTIL = 3
_WHOLE_FETCH_SINCE = 7


def refused(request: Any, version: int, error: ErrorCode) -> object:
    """TypeError where it cannot be said."""
    match request:
        case produce.ProduceRequest():
            return _produce(request, error)
        case fetch.FetchRequest():
            return _fetch(request, version, error)
        case list_offsets.ListOffsetsRequest(topics=asked):
            return list_offsets.ListOffsetsResponse(
                topics=tuple(
                    list_offsets.ListOffsetsTopicResponse(
                        topic.name,
                        tuple(
                            list_offsets.ListOffsetsPartitionResponse(each.partition_index, error)
                            for each in topic.partitions
                        ),
                    )
                    for topic in asked
                )
            )
        case metadata.MetadataRequest(topics=named):
            return metadata.MetadataResponse(
                topics=tuple(
                    metadata.MetadataResponseTopic(error, topic.name or "", topic.topic_id)
                    for topic in named or ()
                )
            )
        case find_coordinator.FindCoordinatorRequest():
            return _find_coordinator(request, version, error)
        case offset_for_leader_epoch.OffsetForLeaderEpochRequest(topics=epochs):
            return offset_for_leader_epoch.OffsetForLeaderEpochResponse(
                topics=tuple(
                    offset_for_leader_epoch.OffsetForLeaderTopicResult(
                        topic.topic,
                        tuple(
                            offset_for_leader_epoch.EpochEndOffset(error, each.partition)
                            for each in topic.partitions
                        ),
                    )
                    for topic in epochs
                )
            )
        case _:
            return _of_coordinator(request, version, error)


def _of_coordinator(request: Any, version: int, error: ErrorCode) -> object:
    match request:
        case offset_commit.OffsetCommitRequest(topics=commits):
            return offset_commit.OffsetCommitResponse(
                topics=tuple(
                    offset_commit.OffsetCommitResponseTopic(
                        topic.name,
                        topic.topic_id,
                        tuple(
                            offset_commit.OffsetCommitResponsePartition(each.partition_index, error)
                            for each in topic.partitions
                        ),
                    )
                    for topic in commits
                )
            )
        case txn_offset_commit.TxnOffsetCommitRequest(topics=pending):
            return txn_offset_commit.TxnOffsetCommitResponse(
                topics=tuple(
                    txn_offset_commit.TxnOffsetCommitResponseTopic(
                        topic.name,
                        tuple(
                            txn_offset_commit.TxnOffsetCommitResponsePartition(
                                each.partition_index, error
                            )
                            for each in topic.partitions
                        ),
                    )
                    for topic in pending
                )
            )
        case offset_fetch.OffsetFetchRequest() if version > _ONE_GROUP_UNTIL:
            return offset_fetch.OffsetFetchResponse(
                groups=tuple(
                    offset_fetch.OffsetFetchResponseGroup(group.group_id, (), error)
                    for group in request.groups
                )
            )
        case add_partitions_to_txn.AddPartitionsToTxnRequest():
            if version > _ONE_TRANSACTION_UNTIL:
                return add_partitions_to_txn.AddPartitionsToTxnResponse(error_code=error)
            return add_partitions_to_txn.AddPartitionsToTxnResponse(
                results_by_topic_v3_and_below=tuple(
                    add_partitions_to_txn.AddPartitionsToTxnTopicResult(
                        topic.name,
                        tuple(
                            add_partitions_to_txn.AddPartitionsToTxnPartitionResult(number, error)
                            for number in topic.partitions
                        ),
                    )
                    for topic in request.v3_and_below_topics
                )
            )
        case _:
            return _whole(request, error)


def _produce(request: produce.ProduceRequest, error: ErrorCode) -> object:
    refusal = Refusal(error)
    return producing.response(
        [
            (
                topic.name,
                topic.topic_id,
                [
                    producing.partition_refused(each.partition_index, refusal)
                    for each in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


def _fetch(request: fetch.FetchRequest, version: int, error: ErrorCode) -> object:
    if not request.topics and version >= _WHOLE_FETCH_SINCE:
        return fetching.refused(error)  # the partitions are those of its session
    return fetching.response(
        [
            (
                topic.topic,
                topic.topic_id,
                [fetching.partition_refused(each.partition, error) for each in topic.partitions],
            )
            for topic in request.topics
        ],
        session_id=0,
    )


def _find_coordinator(
    request: find_coordinator.FindCoordinatorRequest, version: int, error: ErrorCode
) -> object:
    why = MESSAGES[error]
    if version <= _ONE_KEY_UNTIL:
        said = why if version else ""
        return find_coordinator.FindCoordinatorResponse(0, error, said, -1, "", -1)
    return find_coordinator.FindCoordinatorResponse(
        coordinators=tuple(
            find_coordinator.Coordinator(key, -1, "", -1, error, why)
            for key in request.coordinator_keys
        )
    )


def _whole(request: Any, error: ErrorCode) -> object:
    name = type(request).__name__.removesuffix("Request")
    response = getattr(import_module(type(request).__module__), f"{name}Response")
    if "error_code" not in response._fields:
        raise TypeError(f"{name} has no error for the whole: reply with a {name}Response")
    return response(error_code=error)
