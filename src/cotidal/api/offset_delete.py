"""OffsetDelete (key 47), version 0. KIP-496.

A group of consumers keeps the offsets of the topics that it subscribes to; any other group must be
empty.
"""

from __future__ import annotations

from cotidal.api.asked import Asked
from cotidal.api.coordination import Answered, Part, of_group
from cotidal.api.view import View
from cotidal.core.groups.asks import DeleteOffsets, OffsetsDeleted
from cotidal.errors import Refusal
from cotidal.messages.rpc.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from cotidal.values import TopicPartition


def parts(request: OffsetDeleteRequest, asked: Asked, view: View) -> tuple[Part | Answered, ...]:
    partitions = tuple(
        TopicPartition(topic.name, each.partition_index)
        for topic in request.topics
        for each in topic.partitions
    )
    return of_group(request.group_id, DeleteOffsets(request.group_id, partitions))


def response(
    request: OffsetDeleteRequest, asked: Asked, answers: list[object]
) -> OffsetDeleteResponse:
    (answer,) = answers
    if isinstance(answer, Refusal):
        return OffsetDeleteResponse(error_code=answer.error)
    assert isinstance(answer, OffsetsDeleted)
    errors = iter(answer.errors)
    return OffsetDeleteResponse(
        topics=tuple(
            OffsetDeleteResponseTopic(
                topic.name,
                tuple(
                    OffsetDeleteResponsePartition(each.partition_index, next(errors))
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )
