"""CreateAcls (key 30), versions 1-3.

Answered as Kafka does without an authorizer: each with SECURITY_DISABLED.

Not there: ACLs.
"""

from __future__ import annotations

from cotidal.api.asked import Asked
from cotidal.api.describe_acls import NO_AUTHORIZER
from cotidal.api.view import View
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)


def answer(request: CreateAclsRequest, asked: Asked, view: View) -> CreateAclsResponse:
    refused = AclCreationResult(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    return CreateAclsResponse(results=(refused,) * len(request.creations))
