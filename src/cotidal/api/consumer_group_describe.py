"""ConsumerGroupDescribe (key 69), versions 0-1. KIP-848; KIP-1099 what each member speaks in 1.

Groups of the consumer protocol, with what each member has and is to have. Others are not found.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cotidal.api.asked import Asked
from cotidal.api.coordination import Answered, Part
from cotidal.api.operations import GROUP_OPERATIONS, NOT_ASKED
from cotidal.api.view import View
from cotidal.core.groups.asks import ConsumersDescribed, DescribeConsumers, DescribedConsumer
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from cotidal.values import Uuid, by_topic

SPEAKS_CLASSIC: Final = 0
SPEAKS_CONSUMER: Final = 1


def parts(
    request: ConsumerGroupDescribeRequest, asked: Asked, view: View
) -> tuple[Part | Answered, ...]:
    """Names of topics as they are now, then each group."""
    unnamed = Answered(Refusal(ErrorCode.INVALID_GROUP_ID, "a group needs a name"))
    asks = (Part(name, DescribeConsumers(name)) if name else unnamed for name in request.group_ids)
    return (Answered(dict(view.image.topic_names)), *asks)


def response(
    request: ConsumerGroupDescribeRequest, asked: Asked, answers: list[object]
) -> ConsumerGroupDescribeResponse:
    names, *each = answers
    assert isinstance(names, dict)
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    return ConsumerGroupDescribeResponse(
        groups=tuple(
            _described(group_id, answer, names)._replace(authorized_operations=operations)
            for group_id, answer in zip(request.group_ids, each, strict=True)
        )
    )


def _described(group_id: str, answer: object, names: dict[Uuid, str]) -> DescribedGroup:
    if isinstance(answer, Refusal):
        return DescribedGroup(
            error_code=answer.error, error_message=answer.text or None, group_id=group_id
        )
    assert isinstance(answer, ConsumersDescribed)
    return DescribedGroup(
        group_id=group_id,
        group_state=answer.state,
        group_epoch=answer.epoch,
        assignment_epoch=answer.target_epoch,
        assignor_name=answer.assignor,
        members=tuple(_member(member, names) for member in answer.members),
    )


def _member(member: DescribedConsumer, names: dict[Uuid, str]) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.topics,
        subscribed_topic_regex=member.regex,
        assignment=_assignment(member.assignment, names),
        target_assignment=_assignment(member.target, names),
        member_type=SPEAKS_CLASSIC if member.is_classic else SPEAKS_CONSUMER,
    )


def _assignment(partitions: Iterable[tuple[Uuid, int]], names: dict[Uuid, str]) -> Assignment:
    """Of topics that are still there."""
    return Assignment(
        tuple(
            TopicPartitions(topic_id, names[topic_id], own)
            for topic_id, own in by_topic(partitions).items()
            if topic_id in names
        )
    )
