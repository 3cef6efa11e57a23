"""Heartbeat (key 12), versions 0-4. KIP-345 static members from 3 on."""

from __future__ import annotations

from cotidal.api.asked import Asked
from cotidal.api.coordination import Answered, Part, of_group
from cotidal.api.view import View
from cotidal.core.groups.asks import Beat
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.heartbeat import HeartbeatRequest, HeartbeatResponse


def parts(request: HeartbeatRequest, asked: Asked, view: View) -> tuple[Part | Answered, ...]:
    ask = Beat(
        group_id=request.group_id,
        generation=request.generation_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
    )
    return of_group(request.group_id, ask)


def response(request: HeartbeatRequest, asked: Asked, answers: list[object]) -> HeartbeatResponse:
    (answer,) = answers
    if not isinstance(answer, Refusal):
        return HeartbeatResponse()
    if answer.error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        # Nothing is known yet, and sessions begin when it is: the member may go on. Kafka's way.
        return HeartbeatResponse()
    return HeartbeatResponse(error_code=answer.error)
