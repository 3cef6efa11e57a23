"""OffsetFetch (key 9), versions 1-10.

No topics named: all that the group has (null, from 2 on). KIP-320 leader epochs from 5, KIP-447
stable offsets from 7: none that an open transaction may be about to replace (T21). KIP-709 several
groups from 8, KIP-848 members of the consumer protocol, whose epoch is checked, from 9, KIP-516
topics by id in 10. Up to 7 there is one group; version 1 has no error of its own for it.
"""

from __future__ import annotations

from typing import Final

from cotidal.api.asked import Asked
from cotidal.api.coordination import Answered, Part
from cotidal.api.view import View
from cotidal.core.groups.asks import FetchOffsets, OffsetsFetched
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.group import OffsetCommitValue
from cotidal.messages.rpc.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from cotidal.values import ZERO_UUID, TopicPartition, Uuid

GROUP_ERROR_SINCE: Final = 2
SEVERAL_GROUPS_SINCE: Final = 8
TOPIC_IDS_SINCE: Final = 10
NO_OFFSET: Final = OffsetCommitValue(offset=-1, leader_epoch=-1, metadata="")


def parts(request: OffsetFetchRequest, asked: Asked, view: View) -> tuple[Part | Answered, ...]:
    if asked.api_version < SEVERAL_GROUPS_SINCE:
        named = None
        if request.topics is not None:
            named = tuple(
                TopicPartition(topic.name, partition)
                for topic in request.topics
                for partition in topic.partition_indexes
            )
        ask = FetchOffsets(request.group_id, named, request.require_stable)
        return (Part(request.group_id, ask),)
    by_id = asked.api_version >= TOPIC_IDS_SINCE
    ids: dict[str, Uuid] = {}
    if by_id:
        ids = {topic.name: topic.topic_id for topic in view.image.topics.values()}
    stable = request.require_stable
    asks = (_group_part(group, by_id, view, stable=stable) for group in request.groups)
    return (Answered(ids), *asks)


def _group_part(group: OffsetFetchRequestGroup, by_id: bool, view: View, *, stable: bool) -> Part:
    asks = FetchOffsets(group.group_id, None, stable, group.member_id, group.member_epoch)
    if group.topics is None:
        return Part(group.group_id, asks)
    names = view.image.topic_names
    named = tuple(
        TopicPartition(names.get(topic.topic_id, "") if by_id else topic.name, partition)
        for topic in group.topics
        for partition in topic.partition_indexes
    )
    return Part(group.group_id, asks._replace(partitions=named))


def response(
    request: OffsetFetchRequest, asked: Asked, answers: list[object]
) -> OffsetFetchResponse:
    if asked.api_version < SEVERAL_GROUPS_SINCE:
        return _one_group(request, asked, answers[0])
    ids, *each = answers
    assert isinstance(ids, dict)
    by_id = asked.api_version >= TOPIC_IDS_SINCE
    return OffsetFetchResponse(
        groups=tuple(
            _group(group, answer, ids, by_id=by_id)
            for group, answer in zip(request.groups, each, strict=True)
        )
    )


def _one_group(request: OffsetFetchRequest, asked: Asked, answer: object) -> OffsetFetchResponse:
    if isinstance(answer, Refusal):
        if asked.api_version >= GROUP_ERROR_SINCE:
            return OffsetFetchResponse(error_code=answer.error)
        return OffsetFetchResponse(
            topics=tuple(
                OffsetFetchResponseTopic(
                    topic.name,
                    tuple(
                        OffsetFetchResponsePartition(partition, -1, -1, "", answer.error)
                        for partition in topic.partition_indexes
                    ),
                )
                for topic in request.topics or ()
            )
        )
    assert isinstance(answer, OffsetsFetched)
    topics: dict[str, list[OffsetFetchResponsePartition]] = {}
    for (name, partition), value in answer.offsets:
        found, error = _told(value)
        topics.setdefault(name, []).append(
            OffsetFetchResponsePartition(
                partition, found.offset, found.leader_epoch, found.metadata, error
            )
        )
    return OffsetFetchResponse(
        topics=tuple(OffsetFetchResponseTopic(name, tuple(own)) for name, own in topics.items())
    )


def _group(
    group: OffsetFetchRequestGroup, answer: object, ids: dict[str, Uuid], *, by_id: bool
) -> OffsetFetchResponseGroup:
    if isinstance(answer, Refusal):
        return OffsetFetchResponseGroup(group.group_id, (), answer.error)
    assert isinstance(answer, OffsetsFetched)
    if group.topics is None:
        names: dict[str, list[OffsetFetchResponsePartitions]] = {}
        for (name, partition), value in answer.offsets:
            if not by_id or name in ids:  # a topic that is no more has no id to be told by
                names.setdefault(name, []).append(_partition(partition, value))
        topics = [
            OffsetFetchResponseTopics(name, ids.get(name, ZERO_UUID), tuple(own))
            for name, own in names.items()
        ]
        return OffsetFetchResponseGroup(group.group_id, tuple(topics))
    values = iter(answer.offsets)
    topics = []
    for topic in group.topics:
        own = []
        for partition in topic.partition_indexes:
            (name, _), value = next(values)
            if not name:
                value = Refusal(ErrorCode.UNKNOWN_TOPIC_ID)
            own.append(_partition(partition, value))
        topics.append(OffsetFetchResponseTopics(topic.name, topic.topic_id, tuple(own)))
    return OffsetFetchResponseGroup(group.group_id, tuple(topics))


def _partition(
    partition: int, value: OffsetCommitValue | Refusal | None
) -> OffsetFetchResponsePartitions:
    found, error = _told(value)
    return OffsetFetchResponsePartitions(
        partition, found.offset, found.leader_epoch, found.metadata, error
    )


def _told(value: OffsetCommitValue | Refusal | None) -> tuple[OffsetCommitValue, ErrorCode]:
    if isinstance(value, Refusal):
        return NO_OFFSET, value.error
    return value or NO_OFFSET, ErrorCode.NONE
