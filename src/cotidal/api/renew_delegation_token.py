"""RenewDelegationToken (key 39), versions 1-2.

Answered as Kafka does on a connection without authentication: not allowed (KIP-48).

Not there: delegation tokens.
"""

from __future__ import annotations

from cotidal.api.asked import Asked
from cotidal.api.create_delegation_token import NO_TIME
from cotidal.api.view import View
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


def answer(
    request: RenewDelegationTokenRequest, asked: Asked, view: View
) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=NO_TIME
    )
