"""ListGroups (key 16), versions 0-5. KIP-518 states from 4 on, KIP-848 types in 5.

Every broker lists the groups that it coordinates. States and types are asked for in any case.
"""

from __future__ import annotations

from cotidal.api.asked import Asked
from cotidal.api.coordination import Answered, Part
from cotidal.api.view import View
from cotidal.core.groups.asks import GroupsListed, ListGroups
from cotidal.errors import Refusal
from cotidal.messages.rpc.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)


def parts(request: ListGroupsRequest, asked: Asked, view: View) -> tuple[Part | Answered, ...]:
    return (Part(None, ListGroups()),)


def response(request: ListGroupsRequest, asked: Asked, answers: list[object]) -> ListGroupsResponse:
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    listed: list[ListedGroup] = []
    for answer in answers:
        if isinstance(answer, Refusal):
            return ListGroupsResponse(error_code=answer.error)
        assert isinstance(answer, GroupsListed)
        for group in answer.groups:
            wanted = not states or group.state.lower() in states
            if wanted and (not types or group.kind in types):
                listed.append(
                    ListedGroup(group.group_id, group.protocol_type, group.state, group.kind)
                )
    return ListGroupsResponse(groups=tuple(listed))
