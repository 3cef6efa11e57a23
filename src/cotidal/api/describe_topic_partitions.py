"""DescribeTopicPartitions (key 75), version 0. KIP-966.

Topics come in the order of their names, partitions in theirs, at most
``max.request.partition.size.limit`` of them; the cursor of the answer says where to go on. Without
topics in the request: all of them. There is no field for an error of the whole request: a cursor
that makes no sense is told on each topic that was named.

Not there: nothing of the protocol.
"""

from __future__ import annotations

from collections.abc import Mapping

from cotidal.api.asked import Asked
from cotidal.api.metadata import LISTENER_ERRORS_SINCE, describe_partition
from cotidal.api.operations import TOPIC_OPERATIONS
from cotidal.api.reachability import reachable
from cotidal.api.view import View
from cotidal.core.cluster.decide.topics import INTERNAL_TOPICS, refuse_name
from cotidal.core.cluster.image import Endpoint, Partition
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from cotidal.settings import effective
from cotidal.values import NodeId


def answer(
    request: DescribeTopicPartitionsRequest, asked: Asked, view: View
) -> DescribeTopicPartitionsResponse:
    if not _cursor_makes_sense(request):
        return _refused(request)
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    first_topic = request.cursor.topic_name if request.cursor else ""
    room = _limit(request, view)
    reached = reachable(view, asked.listener)
    for name in _names(request, view):
        if name < first_topic:
            continue
        topic = view.image.topics.get(name)
        if topic is None:
            topics.append(_unknown(name))
            continue
        start = request.cursor.partition_index if request.cursor and name == first_topic else 0
        numbers = [number for number in sorted(topic.partitions) if number >= start]
        if room == 0 and numbers:
            return _response(topics, DescribeTopicPartitionsResponseCursor(name, numbers[0]))
        topics.append(
            DescribeTopicPartitionsResponseTopic(
                name=name,
                topic_id=topic.topic_id,
                is_internal=name in INTERNAL_TOPICS,
                partitions=tuple(
                    _partition(view, reached, number, topic.partitions[number])
                    for number in numbers[:room]
                ),
                topic_authorized_operations=TOPIC_OPERATIONS,
            )
        )
        if len(numbers) > room:
            return _response(topics, DescribeTopicPartitionsResponseCursor(name, numbers[room]))
        room -= len(numbers)
    return _response(topics, None)


def _names(request: DescribeTopicPartitionsRequest, view: View) -> list[str]:
    if not request.topics:
        return sorted(view.image.topics)
    return sorted({topic.name for topic in request.topics})


def _limit(request: DescribeTopicPartitionsRequest, view: View) -> int:
    most = effective("max.request.partition.size.limit", static=view.settings).value
    assert isinstance(most, int)
    return max(min(most, request.response_partition_limit), 1)


def _cursor_makes_sense(request: DescribeTopicPartitionsRequest) -> bool:
    cursor = request.cursor
    if cursor is None:
        return True
    named = not request.topics or any(topic.name == cursor.topic_name for topic in request.topics)
    return named and cursor.partition_index >= 0


def _partition(
    view: View, reached: Mapping[NodeId, Endpoint], number: int, partition: Partition
) -> DescribeTopicPartitionsResponsePartition:
    # Versions count anew here: ask for what Metadata has said since its version 6.
    seen = describe_partition(view, reached, number, partition, LISTENER_ERRORS_SINCE)
    return DescribeTopicPartitionsResponsePartition(
        error_code=seen.error_code,
        partition_index=number,
        leader_id=seen.leader_id,
        leader_epoch=seen.leader_epoch,
        replica_nodes=seen.replica_nodes,
        isr_nodes=seen.isr_nodes,
        eligible_leader_replicas=partition.elr,
        last_known_elr=partition.last_known_elr,
        offline_replicas=seen.offline_replicas,
    )


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    refusal = refuse_name(name)
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if refusal is None else refusal.error
    return DescribeTopicPartitionsResponseTopic(error_code=error, name=name)


def _refused(request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    return _response(
        [
            DescribeTopicPartitionsResponseTopic(
                error_code=ErrorCode.INVALID_REQUEST, name=topic.name
            )
            for topic in request.topics
        ],
        None,
    )


def _response(
    topics: list[DescribeTopicPartitionsResponseTopic],
    cursor: DescribeTopicPartitionsResponseCursor | None,
) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(topics=tuple(topics), next_cursor=cursor)
