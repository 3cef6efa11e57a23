"""Frames on a connection: four bytes of length, a header, a body. Pure.

A request header is (API key, version, correlation id, client id), and tagged fields where that
version of the API is flexible; a response header is the correlation id, and tagged fields
likewise, except ApiVersions: its response header never has them, because a client reads it before
it knows what the broker speaks.

What is not here: order of answers, sessions, what to do with an unsupported version. The header of
an ApiVersions request of any version can be read, so that it can be answered in version 0.
"""

from __future__ import annotations

import struct
from struct import Struct
from typing import Any, Final, NamedTuple

from cotidal.errors import MalformedFrame, UnsupportedRequest
from cotidal.messages.rpc.apis import APIS, ApiKey
from cotidal.wire.codec import encode_request, encode_response
from cotidal.wire.primitives import Buffer, cut_short, skip_tags

SMALL_FRAME_BYTES: Final = 4096
"""Frames up to this are cut out as bytes; larger ones as views of what was read."""

SMALL_PIECE_BYTES: Final = 4096
"""Pieces below this are gathered, so that a peer that dribbles bytes costs their number only."""

_unpack_length: Final = Struct(">i").unpack_from
_unpack_request: Final = Struct(">hhih").unpack_from
_unpack_correlation: Final = Struct(">i").unpack_from
_pack_request: Final = Struct(">ihhih").pack
_pack_response: Final = Struct(">ii").pack
_pack_flexible_response: Final = Struct(">iix").pack
_set_length: Final = Struct(">i").pack_into
_new: Final = tuple.__new__
"""Makes a NamedTuple in half the time that calling its class takes."""

_FLEXIBLE_FROM: Final = {key: api.flexible_from for key, api in APIS.items()}
_FLEXIBLE_RESPONSE_FROM: Final = _FLEXIBLE_FROM | {int(ApiKey.API_VERSIONS): 1 << 15}


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_position: int
    """Where the body begins in the frame."""


class FrameReader:
    """Cuts a byte stream into frames, without their length prefix.

    Holds at most the bytes of one unfinished frame: a claimed length allocates nothing. Work and
    memory are linear in the bytes fed, however they are cut.
    """

    __slots__ = ("_held", "_max", "_pieces", "_wanted")

    def __init__(self, max_frame_bytes: int) -> None:
        self._max = max_frame_bytes
        self._pieces: list[bytes | bytearray] = []
        self._held = 0
        """Bytes in the pieces."""
        self._wanted = 4
        """Bytes that the unfinished frame needs, prefix included; 4 while its length is unknown."""

    @property
    def pending_bytes(self) -> int:
        return self._held

    def feed(self, data: bytes) -> list[Buffer]:
        """All frames that are complete with these bytes, which must not change afterwards."""
        frames: list[Buffer] = []
        pos = self._finish_pending(data, frames) if self._held else 0
        size = len(data)
        while size - pos >= 4:
            (length,) = _unpack_length(data, pos)
            if not 0 <= length <= self._max:
                raise length_refused(length, self._max)
            end = pos + 4 + length
            if end > size:
                self._wanted = 4 + length
                break
            if length <= SMALL_FRAME_BYTES:
                frames.append(data[pos + 4 : end])
            else:
                frames.append(memoryview(data)[pos + 4 : end])
            pos = end
        if pos < size:
            self._keep(data[pos:] if pos else data)
        return frames

    def _finish_pending(self, data: bytes, frames: list[Buffer]) -> int:
        """Complete the unfinished frame if the data suffices; the position after what it took."""
        taken = 0
        if self._wanted == 4 and self._held < 4:
            taken = min(4 - self._held, len(data))
            self._keep(data[:taken])
            if self._held < 4:
                return taken
        if self._wanted == 4:
            (length,) = _unpack_length(b"".join(self._pieces))
            if not 0 <= length <= self._max:
                raise length_refused(length, self._max)
            self._wanted = 4 + length
        missing = self._wanted - self._held
        if len(data) - taken < missing:
            self._keep(data[taken:] if taken else data)
            return len(data)
        self._pieces.append(data[taken : taken + missing])
        frames.append(memoryview(b"".join(self._pieces))[4:])
        self._pieces = []
        self._held = 0
        self._wanted = 4
        return taken + missing

    def _keep(self, data: bytes) -> None:
        if not data:
            return
        self._held += len(data)
        if len(data) >= SMALL_PIECE_BYTES:
            self._pieces.append(data)
            return
        last = self._pieces[-1] if self._pieces else None
        if isinstance(last, bytearray):
            last += data
        else:
            self._pieces.append(bytearray(data))


def length_refused(length: int, max_frame_bytes: int) -> MalformedFrame:
    if length < 0:
        return MalformedFrame(f"a frame claims a negative length of {length}")
    return MalformedFrame(f"a frame claims {length} bytes, more than the {max_frame_bytes} allowed")


def read_request_header(frame: Buffer) -> RequestHeader:
    """The header; UnsupportedRequest for an unknown API key, whose header has no known form."""
    try:
        api_key, api_version, correlation_id, length = _unpack_request(frame, 0)
        flexible_from = _FLEXIBLE_FROM.get(api_key)
        if flexible_from is None:
            raise UnsupportedRequest(f"there is no API with key {api_key}")
        pos = 10
        client_id: str | None = None
        if length >= 0:
            pos += length
            if pos > len(frame):
                raise cut_short("the client id", length, len(frame) - 10)
            client_id = str(frame[10:pos], "utf-8")
        if api_version >= flexible_from:
            pos = skip_tags(frame, pos) if frame[pos] else pos + 1
    except (IndexError, struct.error):
        raise MalformedFrame(f"a frame of {len(frame)} bytes ends within its header") from None
    except UnicodeDecodeError:
        raise MalformedFrame("the client id is not UTF-8") from None
    return _new(RequestHeader, (api_key, api_version, correlation_id, client_id, pos))


def read_response_header(frame: Buffer, api_key: int, version: int) -> tuple[int, int]:
    """The correlation id, and where the body begins."""
    try:
        (correlation_id,) = _unpack_correlation(frame, 0)
        pos = 4
        if version >= _FLEXIBLE_RESPONSE_FROM[api_key]:
            pos = skip_tags(frame, pos)
    except (IndexError, struct.error):
        raise MalformedFrame(f"a frame of {len(frame)} bytes ends within its header") from None
    return correlation_id, pos


def response_buffers(
    api_key: int, version: int, correlation_id: int, response: Any
) -> list[Buffer | bytearray]:
    """The whole frame, length included, as buffers to be sent one after another."""
    if version >= _FLEXIBLE_RESPONSE_FROM[api_key]:
        out = bytearray(_pack_flexible_response(0, correlation_id))
    else:
        out = bytearray(_pack_response(0, correlation_id))
    return _with_length(out, encode_response(api_key, version, response, out))


def request_buffers(
    api_key: int, version: int, correlation_id: int, client_id: str | None, request: Any
) -> list[Buffer | bytearray]:
    """The whole frame, length included, as buffers to be sent one after another."""
    raw = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(raw)
    out = bytearray(_pack_request(0, api_key, version, correlation_id, length))
    out += raw
    if version >= _FLEXIBLE_FROM[api_key]:
        out.append(0)
    return _with_length(out, encode_request(api_key, version, request, out))


def _with_length(first: bytearray, buffers: list[Buffer | bytearray]) -> list[Buffer | bytearray]:
    size = len(first) if len(buffers) == 1 else sum(map(len, buffers))
    _set_length(first, 0, size - 4)
    return buffers
