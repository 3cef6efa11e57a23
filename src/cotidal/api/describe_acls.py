"""DescribeAcls (key 29), versions 1-3.

Answered as Kafka does without an authorizer: SECURITY_DISABLED.

Not there: ACLs.
"""

from __future__ import annotations

from typing import Final

from cotidal.api.asked import Asked
from cotidal.api.view import View
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.describe_acls import DescribeAclsRequest, DescribeAclsResponse

NO_AUTHORIZER: Final = "there is no authorizer here: everybody may do everything"


def answer(request: DescribeAclsRequest, asked: Asked, view: View) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
