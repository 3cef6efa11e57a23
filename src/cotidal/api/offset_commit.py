"""OffsetCommit (key 8), versions 2-10.

Versions up to 4 may ask for an expiry of their own, KIP-320 leader epochs from 6 on, KIP-345 static
members from 7, KIP-848 members of the consumer protocol, and an error for a group that is not
there, from 9, KIP-516 topics by id in 10. A member that has not heard of its newest epoch may
commit what it has held since before (KIP-1251).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from cotidal.api.asked import Asked
from cotidal.api.coordination import Answered, Part
from cotidal.api.view import View
from cotidal.core.groups.asks import Commit, CommitOffsets, OffsetsCommitted
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from cotidal.messages.rpc.txn_offset_commit import TxnOffsetCommitRequestTopic
from cotidal.values import TopicPartition

AnyTopic: TypeAlias = OffsetCommitRequestTopic | TxnOffsetCommitRequestTopic

MEMBER_EPOCHS_SINCE: Final = 9
TOPIC_IDS_SINCE: Final = 10


def parts(request: OffsetCommitRequest, asked: Asked, view: View) -> tuple[Part | Answered, ...]:
    """Which topics are there, and what is committed for them: of the rest no coordinator hears."""
    names = [_name(topic, asked, view) for topic in request.topics]
    retention = request.retention_time_ms
    ask = CommitOffsets(
        group_id=request.group_id,
        generation=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        commits=commits(names, request.topics, view),
        retention_ms=retention if retention >= 0 else None,
        knows_epochs=asked.api_version >= MEMBER_EPOCHS_SINCE,
        without_group=(
            ErrorCode.GROUP_ID_NOT_FOUND
            if asked.api_version >= MEMBER_EPOCHS_SINCE
            else ErrorCode.ILLEGAL_GENERATION
        ),
    )
    known = Answered([name is not None for name in names])
    if not ask.commits:
        return (known, Answered(OffsetsCommitted(())))
    return (known, Part(request.group_id, ask))


def commits(names: list[str | None], topics: Iterable[AnyTopic], view: View) -> tuple[Commit, ...]:
    """What is committed for the topics that have a name here."""
    return tuple(
        Commit(
            TopicPartition(name, each.partition_index),
            each.committed_offset,
            each.committed_leader_epoch,
            each.committed_metadata or "",
            view.image.topics[name].topic_id,
        )
        for name, topic in zip(names, topics, strict=True)
        if name is not None
        for each in topic.partitions
    )


def errors(
    known: list[bool], topics: Iterable[AnyTopic], answer: object, *, missing: ErrorCode
) -> Iterator[ErrorCode]:
    """Of each partition, in the order of the request; ``missing``: of topics that are not known."""
    told = iter(answer.errors if isinstance(answer, OffsetsCommitted) else ())
    for is_known, topic in zip(known, topics, strict=True):
        for _ in topic.partitions:
            if isinstance(answer, Refusal):
                yield answer.error
            else:
                yield next(told) if is_known else missing


def _name(topic: OffsetCommitRequestTopic, asked: Asked, view: View) -> str | None:
    if asked.api_version >= TOPIC_IDS_SINCE:
        return view.image.topic_names.get(topic.topic_id)
    return topic.name if topic.name in view.image.topics else None


def response(
    request: OffsetCommitRequest, asked: Asked, answers: list[object]
) -> OffsetCommitResponse:
    known, answer = answers
    assert isinstance(known, list)
    by_id = asked.api_version >= TOPIC_IDS_SINCE
    missing = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    found = errors(known, request.topics, answer, missing=missing)
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
                tuple(
                    OffsetCommitResponsePartition(each.partition_index, next(found))
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )
