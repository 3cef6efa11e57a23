"""ConsumerGroupHeartbeat (key 68), versions 0-1. KIP-848: members of the consumer protocol.

One request for all: joining (epoch 0), going on, leaving (-1, or -2 for a static member that may
come back). From 1 on members choose their ids themselves, and may subscribe by regular expression
(RE2's syntax, without ``\\b`` and ``\\p``).
"""

from __future__ import annotations

from typing import Final

from cotidal.api.asked import Asked
from cotidal.api.coordination import Answered, Part, of_a_group, of_group
from cotidal.api.view import View
from cotidal.core.groups.asks import ConsumerBeat, ConsumerBeaten
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from cotidal.values import by_topic

OWN_IDS_SINCE: Final = 1
JOINING: Final = 0


def parts(
    request: ConsumerGroupHeartbeatRequest, asked: Asked, view: View
) -> tuple[Part | Answered, ...]:
    refused = _refuse(request, asked)
    if refused is not None:
        return (Answered(Refusal(ErrorCode.INVALID_REQUEST, refused)),)
    told = request.topic_partitions
    ask = ConsumerBeat(
        group_id=request.group_id,
        member_id=request.member_id,
        epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        client_id=asked.client_id or "",
        client_host=asked.client_host,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topics=request.subscribed_topic_names,
        regex=request.subscribed_topic_regex,
        assignor=request.server_assignor,
        owned=None
        if told is None
        else tuple((topic.topic_id, each) for topic in told for each in topic.partitions),
    )
    return of_group(request.group_id, ask)


def _refuse(request: ConsumerGroupHeartbeatRequest, asked: Asked) -> str | None:
    """Names that may not be empty."""
    if not request.group_id:
        return "GroupId may not be empty"
    if not request.member_id and (asked.api_version >= OWN_IDS_SINCE or request.member_epoch):
        return "MemberId may not be empty"
    if request.instance_id == "":
        return "InstanceId may not be empty"
    return "RackId may not be empty" if request.rack_id == "" else None


def response(
    request: ConsumerGroupHeartbeatRequest, asked: Asked, answers: list[object]
) -> ConsumerGroupHeartbeatResponse:
    (answer,) = answers
    if isinstance(answer, Refusal):
        return ConsumerGroupHeartbeatResponse(
            error_code=of_a_group(answer.error), error_message=answer.text or None
        )
    assert isinstance(answer, ConsumerBeaten)
    return ConsumerGroupHeartbeatResponse(
        member_id=answer.member_id,
        member_epoch=answer.epoch,
        heartbeat_interval_ms=answer.heartbeat_interval_ms,
        assignment=None
        if answer.assignment is None
        else Assignment(
            tuple(
                ConsumerGroupHeartbeatResponseTopicPartitions(*topic)
                for topic in by_topic(answer.assignment).items()
            )
        ),
    )
