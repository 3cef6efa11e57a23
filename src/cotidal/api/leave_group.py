"""LeaveGroup (key 13), versions 0-5.

KIP-345 several members, also by instance id alone, from 3 on; KIP-800 a reason in 5. Older versions
name one member, and have one error for it.
"""

from __future__ import annotations

from typing import Final

from cotidal.api.asked import Asked
from cotidal.api.coordination import Answered, Part, of_group
from cotidal.api.view import View
from cotidal.core.groups.asks import Leave, Leaver, Left
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)

SEVERAL_SINCE: Final = 3


def parts(request: LeaveGroupRequest, asked: Asked, view: View) -> tuple[Part | Answered, ...]:
    leavers: tuple[Leaver, ...] = (Leaver(request.member_id, None),)
    if asked.api_version >= SEVERAL_SINCE:
        leavers = tuple(Leaver(each.member_id, each.group_instance_id) for each in request.members)
    return of_group(request.group_id, Leave(request.group_id, leavers))


def response(request: LeaveGroupRequest, asked: Asked, answers: list[object]) -> LeaveGroupResponse:
    (answer,) = answers
    if isinstance(answer, Refusal) and answer.error is ErrorCode.UNKNOWN_MEMBER_ID:
        several = asked.api_version >= SEVERAL_SINCE
        answer = Left((answer.error,) * (len(request.members) if several else 1))
    if isinstance(answer, Refusal):
        return LeaveGroupResponse(error_code=answer.error)
    assert isinstance(answer, Left)
    if asked.api_version < SEVERAL_SINCE:
        return LeaveGroupResponse(error_code=answer.errors[0])
    return LeaveGroupResponse(
        members=tuple(
            MemberResponse(member.member_id, member.group_instance_id, error)
            for member, error in zip(request.members, answer.errors, strict=True)
        )
    )
