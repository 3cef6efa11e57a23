"""DescribeDelegationToken (key 41), versions 1-3.

Answered as Kafka does on a connection without authentication: not allowed (KIP-48).

Not there: delegation tokens.
"""

from __future__ import annotations

from cotidal.api.asked import Asked
from cotidal.api.view import View
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


def answer(
    request: DescribeDelegationTokenRequest, asked: Asked, view: View
) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    )
