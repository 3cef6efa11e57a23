"""SaslAuthenticate (key 36), versions 0-2.

Answered as Kafka does on a listener without SASL: ILLEGAL_SASL_STATE.

Not there: SASL.
"""

from __future__ import annotations

from cotidal.api.asked import Asked
from cotidal.api.view import View
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)


def answer(request: SaslAuthenticateRequest, asked: Asked, view: View) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="this listener speaks without SASL: connect with security.protocol=PLAINTEXT",
    )
