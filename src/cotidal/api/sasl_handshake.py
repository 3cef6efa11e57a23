"""SaslHandshake (key 17), versions 0-1.

Answered as Kafka does on a listener without SASL: ILLEGAL_SASL_STATE, and no mechanism.

Not there: SASL.
"""

from __future__ import annotations

from cotidal.api.asked import Asked
from cotidal.api.view import View
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def answer(request: SaslHandshakeRequest, asked: Asked, view: View) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
