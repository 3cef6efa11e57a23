"""SyncGroup (key 14), versions 0-5. KIP-345 static members from 3 on, KIP-559 the protocol in 5."""

from __future__ import annotations

from cotidal.api.asked import Asked
from cotidal.api.coordination import Answered, Part, of_a_group, of_group
from cotidal.api.view import View
from cotidal.core.groups.asks import Sync, Synced
from cotidal.errors import Refusal
from cotidal.messages.rpc.sync_group import SyncGroupRequest, SyncGroupResponse


def parts(request: SyncGroupRequest, asked: Asked, view: View) -> tuple[Part | Answered, ...]:
    ask = Sync(
        group_id=request.group_id,
        generation=request.generation_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocol=request.protocol_name,
        assignments=tuple((each.member_id, each.assignment) for each in request.assignments),
    )
    return of_group(request.group_id, ask)


def response(request: SyncGroupRequest, asked: Asked, answers: list[object]) -> SyncGroupResponse:
    (answer,) = answers
    if isinstance(answer, Refusal):
        return SyncGroupResponse(error_code=of_a_group(answer.error))
    assert isinstance(answer, Synced)
    return SyncGroupResponse(
        protocol_type=answer.protocol_type,
        protocol_name=answer.protocol,
        assignment=answer.assignment,
    )
