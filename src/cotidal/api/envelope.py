"""Envelope (key 58), version 0.

A broker of another make passes a client's request on to the controller in an envelope, and gets the
answer in one. KIP-590. Envelopes are opened and sealed where bytes are read and written
(broker/envelopes.py): a node sees what is in them. One that holds nothing that is served here comes
to the node as it is, and is sent back with UNSUPPORTED_VERSION, which its sender tells the client.

Not there: the principal and the address of the client, which nobody asks for without authorization.
"""

from __future__ import annotations

from cotidal.api.asked import Asked
from cotidal.api.view import View
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.envelope import EnvelopeRequest, EnvelopeResponse


def answer(request: EnvelopeRequest, asked: Asked, view: View) -> EnvelopeResponse:
    return EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
