"""Envelopes: what a broker passes on to the controller for its client. Pure. KIP-590.

Inside are the frames that client and broker exchange, without their length: the client's own header
and request, and the header and response for it. api/envelope.py is for those that stay closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from cotidal.errors import PeerError
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.envelope import EnvelopeRequest, EnvelopeResponse
from cotidal.node.effects import Respond
from cotidal.wire.codec import decode_request
from cotidal.wire.frames import read_request_header, response_buffers
from cotidal.wire.primitives import Buffer

ENVELOPE: Final = int(ApiKey.ENVELOPE)
VERSION: Final = 0

_LENGTH_BYTES: Final = 4
_NOT_PASSED_ON: Final = (ENVELOPE, int(ApiKey.FETCH))
"""No envelope in an envelope; and a Fetch is a replica's own."""


class Opened(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    """The client's own, for the answer."""
    client_id: str | None
    message: Any


def open_envelope(
    envelope: EnvelopeRequest, served: Mapping[int, tuple[int, int]]
) -> Opened | None:
    """What is in it; None if that is not served here."""
    frame = envelope.request_data
    try:
        key, version, correlation, client, position = read_request_header(frame)
        oldest, newest = served.get(key, (0, -1))
        if key in _NOT_PASSED_ON or not oldest <= version <= newest:
            return None
        return Opened(
            key, version, correlation, client, decode_request(key, version, frame, position)
        )
    except PeerError:
        return None


def sealed(effect: Respond, correlation_id: int) -> list[Buffer | bytearray]:
    """The answer in an envelope, as a whole frame. ``correlation_id``: the client's own."""
    answer = b"".join(
        response_buffers(effect.api_key, effect.api_version, correlation_id, effect.message)
    )
    envelope = EnvelopeResponse(response_data=answer[_LENGTH_BYTES:])
    return response_buffers(ENVELOPE, VERSION, effect.correlation_id, envelope)
