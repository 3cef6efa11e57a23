"""DeleteAcls (key 31), versions 1-3.

Answered as Kafka does without an authorizer: each filter with SECURITY_DISABLED.

Not there: ACLs.
"""

from __future__ import annotations

from cotidal.api.asked import Asked
from cotidal.api.describe_acls import NO_AUTHORIZER
from cotidal.api.view import View
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


def answer(request: DeleteAclsRequest, asked: Asked, view: View) -> DeleteAclsResponse:
    refused = DeleteAclsFilterResult(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    return DeleteAclsResponse(filter_results=(refused,) * len(request.filters))
