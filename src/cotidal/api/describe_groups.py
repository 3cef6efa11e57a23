"""DescribeGroups (key 15), versions 0-6.

KIP-430 authorized operations from 3 on, KIP-345 static members from 4, KIP-1043 an error for a
group that is not there in 6; in older versions such a group is described as dead.
"""

from __future__ import annotations

from typing import Final

from cotidal.api.asked import Asked
from cotidal.api.coordination import Answered, Part
from cotidal.api.operations import GROUP_OPERATIONS, NOT_ASKED
from cotidal.api.view import View
from cotidal.core.groups.asks import DescribeGroup, GroupDescribed
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

OPERATIONS_SINCE: Final = 3
NOT_FOUND_SINCE: Final = 6
DEAD: Final = "Dead"


def parts(request: DescribeGroupsRequest, asked: Asked, view: View) -> tuple[Part | Answered, ...]:
    return tuple(Part(name, DescribeGroup(name)) for name in request.groups)


def response(
    request: DescribeGroupsRequest, asked: Asked, answers: list[object]
) -> DescribeGroupsResponse:
    operations = NOT_ASKED
    if asked.api_version >= OPERATIONS_SINCE and request.include_authorized_operations:
        operations = GROUP_OPERATIONS
    return DescribeGroupsResponse(
        groups=tuple(
            _described(name, answer, asked)._replace(authorized_operations=operations)
            for name, answer in zip(request.groups, answers, strict=True)
        )
    )


def _described(name: str, answer: object, asked: Asked) -> DescribedGroup:
    if isinstance(answer, Refusal):
        missing = answer.error is ErrorCode.GROUP_ID_NOT_FOUND
        has_error = asked.api_version >= NOT_FOUND_SINCE
        return DescribedGroup(
            error_code=ErrorCode.NONE if missing and not has_error else answer.error,
            error_message=answer.text if has_error else None,
            group_id=name,
            group_state=DEAD if missing else "",
        )
    assert isinstance(answer, GroupDescribed)
    return DescribedGroup(
        group_id=name,
        group_state=answer.state,
        protocol_type=answer.protocol_type,
        protocol_data=answer.protocol,
        members=tuple(DescribedGroupMember(*member) for member in answer.members),
    )
