"""DeleteGroups (key 42), versions 0-2. KIP-229. Only an empty group can be deleted."""

from __future__ import annotations

from cotidal.api.asked import Asked
from cotidal.api.coordination import Answered, Part
from cotidal.api.view import View
from cotidal.core.groups.asks import DeleteGroup
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


def parts(request: DeleteGroupsRequest, asked: Asked, view: View) -> tuple[Part | Answered, ...]:
    return tuple(Part(name, DeleteGroup(name)) for name in _named(request))


def _named(request: DeleteGroupsRequest) -> dict[str, None]:
    """Each once."""
    return dict.fromkeys(request.groups_names)


def response(
    request: DeleteGroupsRequest, asked: Asked, answers: list[object]
) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=tuple(
            DeletableGroupResult(
                name, answer.error if isinstance(answer, Refusal) else ErrorCode.NONE
            )
            for name, answer in zip(_named(request), answers, strict=True)
        )
    )
