"""JoinGroup (key 11), versions 0-9.

KIP-62 rebalance time-out from 1 on (version 0: the session's), KIP-345 static members from 5,
KIP-394 an id is given before a member joins from 4, KIP-559 protocol type in the answer from 7,
KIP-800 a reason from 8, KIP-814 a leader that need not assign from 9. A member of a group that
others have upgraded to the consumer protocol (KIP-848) goes on with this one.
"""

from __future__ import annotations

from typing import Final

from cotidal.api.asked import Asked
from cotidal.api.coordination import Answered, Part, of_a_group, of_group
from cotidal.api.view import View
from cotidal.core.groups.asks import Join, Joined, JoinRefused, Protocol
from cotidal.errors import Refusal
from cotidal.messages.rpc.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)

REBALANCE_TIMEOUT_SINCE: Final = 1
MEMBER_ID_REQUIRED_SINCE: Final = 4
NULL_PROTOCOL_SINCE: Final = 7
SKIP_ASSIGNMENT_SINCE: Final = 9
NO_GENERATION: Final = -1


def parts(request: JoinGroupRequest, asked: Asked, view: View) -> tuple[Part | Answered, ...]:
    version = asked.api_version
    ask = Join(
        group_id=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=asked.client_id or "",
        client_host=f"/{asked.client_host}",
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=(
            request.rebalance_timeout_ms
            if version >= REBALANCE_TIMEOUT_SINCE
            else request.session_timeout_ms
        ),
        protocol_type=request.protocol_type,
        protocols=tuple(Protocol(each.name, each.metadata) for each in request.protocols),
        takes_member_id=version >= MEMBER_ID_REQUIRED_SINCE,
        may_skip_assignment=version >= SKIP_ASSIGNMENT_SINCE,
    )
    return of_group(request.group_id, ask)


def response(request: JoinGroupRequest, asked: Asked, answers: list[object]) -> JoinGroupResponse:
    (answer,) = answers
    no_protocol = None if asked.api_version >= NULL_PROTOCOL_SINCE else ""
    if isinstance(answer, Refusal):
        answer = JoinRefused(of_a_group(answer.error), request.member_id)
    if isinstance(answer, JoinRefused):
        return JoinGroupResponse(
            error_code=answer.error,
            generation_id=NO_GENERATION,
            protocol_name=no_protocol,
            member_id=answer.member_id,
        )
    assert isinstance(answer, Joined)
    return JoinGroupResponse(
        generation_id=answer.generation,
        protocol_type=answer.protocol_type,
        protocol_name=no_protocol if answer.protocol is None else answer.protocol,
        leader=answer.leader,
        skip_assignment=answer.skip_assignment,
        member_id=answer.member_id,
        members=tuple(JoinGroupResponseMember(*member) for member in answer.members),
    )
