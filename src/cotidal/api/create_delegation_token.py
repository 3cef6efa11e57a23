"""CreateDelegationToken (key 38), versions 1-3.

Answered as Kafka does on a connection without authentication: not allowed (KIP-48). Whoever asks
for another (KIP-373, from 3 on) is told apart from the owner.

Not there: delegation tokens.
"""

from __future__ import annotations

from typing import Final

from cotidal.api.asked import Asked
from cotidal.api.view import View
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

NO_TIME: Final = -1
USER: Final = "User"
EVERYBODY: Final = "ANONYMOUS"
FOR_OTHERS_SINCE: Final = 3


def answer(
    request: CreateDelegationTokenRequest, asked: Asked, view: View
) -> CreateDelegationTokenResponse:
    for_others = asked.api_version >= FOR_OTHERS_SINCE
    named = request.owner_principal_name
    return CreateDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        principal_type=request.owner_principal_type or USER if named else USER,
        principal_name=named or EVERYBODY,
        token_requester_principal_type=USER if for_others else "",
        token_requester_principal_name=EVERYBODY if for_others else "",
        issue_timestamp_ms=NO_TIME,
        expiry_timestamp_ms=NO_TIME,
        max_timestamp_ms=NO_TIME,
    )
