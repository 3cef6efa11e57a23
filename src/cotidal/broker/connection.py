"""One client's connection: bytes -> requests, replies -> bytes.

Every complete frame of a read goes to the node together, as one event. Bytes that cannot be read
close this connection and no other. A connection is not read from while any of these holds:

  OUTPUT   the client does not take its replies: more than OUTPUT_HIGH_WATER_BYTES are unsent
  NODE     the node said so: too many of its requests wait for an answer
  MEMORY   all connections together hold too much, and the frame of another one has got further
  BACKLOG  requests wait behind a Fetch

Requests behind an unanswered Fetch stay here undecoded. The node would keep them waiting anyhow
(REPLIES_IN_ORDER); but a client that sends thousands of fetches and reads no reply would have all
of their bytes read from disk. This way at most one answer of that size is held for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Final, cast

from cotidal.broker.driver import wall_millis
from cotidal.broker.envelopes import ENVELOPE, open_envelope
from cotidal.broker.outlet import Outlet, Piece, has_parcels
from cotidal.errors import MalformedFrame, PeerError, UnsupportedRequest
from cotidal.log.failure import Gone
from cotidal.node.events import ConnectionId, ConnectionLost, Received, Request
from cotidal.wire.codec import decode_request
from cotidal.wire.frames import read_request_header
from cotidal.wire.receiving import FrameReceiver

if TYPE_CHECKING:
    from cotidal.broker.server import Gate, Server

OUTPUT: Final = 1
NODE: Final = 2
MEMORY: Final = 4
BACKLOG: Final = 8

PRODUCE: Final = 0
FETCH: Final = 1
API_VERSIONS: Final = 18

Frame = bytes | memoryview

_new: Final = tuple.__new__
"""Makes a NamedTuple in half the time that calling its class takes."""


class Connection(asyncio.BufferedProtocol):
    __slots__ = (
        "_backlog",
        "_fetching",
        "_gate",
        "_outlet",
        "_paused_for",
        "_receiver",
        "_server",
        "active_at",
        "begun",
        "closing",
        "envelopes",
        "held_bytes",
        "id",
        "output",
        "peer",
        "transport",
        "unsent_bytes",
    )

    transport: asyncio.Transport

    def __init__(self, server: Server, gate: Gate, id: ConnectionId) -> None:
        self.id = id
        self.peer = ""
        self.output: list[Piece] = []
        """Replies of this turn."""
        self.held_bytes = 0
        """Of a frame that has begun to arrive."""
        self.active_at = 0.0
        self.begun: deque[float] = deque()
        """When each request was read that will have an answer and does not have it yet."""
        self.unsent_bytes = 0
        """At the last sweep; a change is a sign of life."""
        self.closing = False
        self.envelopes: dict[int, int] = {}
        """Requests that came in one: its correlation id, and that of the request inside."""
        self._server = server
        self._gate = gate
        self._receiver = FrameReceiver(server.bounds.frame_bytes_max, server.scratch)
        self._backlog: deque[Frame] = deque()
        self._fetching = False
        self._paused_for = 0

    # The transport's calls, in the order of a connection's life

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        address = transport.get_extra_info("peername")
        self.peer = str(address[0]) if address else "?"
        self._outlet = Outlet(self.transport)
        self._server.on_connected(self, self._gate)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._receiver.space()

    def buffer_updated(self, nbytes: int) -> None:
        server = self._server
        server.counters.bytes_in += nbytes
        self.active_at = server.time()
        try:
            frames = self._receiver.received(nbytes)
        except MalformedFrame as wrong:
            self._refuse(wrong)
            return
        if frames:
            if self._fetching or self._backlog:
                self._backlog.extend(frames)
                self.pause(BACKLOG)
            else:
                self._hand_over(frames)
        held = self._receiver.pending_bytes
        if held != self.held_bytes:
            self.hold(held)

    def pause_writing(self) -> None:
        self.pause(OUTPUT)

    def resume_writing(self) -> None:
        if self._outlet.busy and not self._send():
            return
        if self.closing:
            self.transport.close()
        self.resume(OUTPUT)

    def connection_lost(self, error: Exception | None) -> None:
        self.closing = True
        self._backlog.clear()
        self.output.clear()
        self._outlet.drop()
        self.hold(0)
        self._server.on_lost(self, ConnectionLost(self.id))

    # Requests

    def _hand_over(self, frames: list[Frame]) -> None:
        """Give the node every request of these frames, up to and including the first Fetch."""
        requests: list[Request] = []
        counts = self._server.counters.requests
        served = self._gate.served
        wrong: PeerError | None = None
        now = perf_counter()
        try:
            for place, frame in enumerate(frames, 1):
                key, version, correlation, client, position = read_request_header(frame)
                versions = served.get(key)
                if versions is not None and versions[0] <= version <= versions[1]:
                    message = decode_request(key, version, frame, position)
                elif key == API_VERSIONS:
                    message = None  # answered in version 0, so that the client can choose another
                else:
                    raise UnsupportedRequest(
                        f"it asked for version {version} of API {key}, which is not served here"
                    )
                if key == ENVELOPE:
                    inside = open_envelope(message, served)
                    if inside is not None:
                        self.envelopes[correlation] = inside.correlation_id
                        key, version, _, client, message = inside
                requests.append(_new(Request, (key, version, correlation, client, message)))
                counts[key] = counts.get(key, 0) + 1
                if key != PRODUCE or message.acks:
                    self.begun.append(now)
                if key == FETCH:
                    self._fetching = True
                    if place < len(frames):
                        self._backlog.extend(frames[place:])
                        self.pause(BACKLOG)
                    break
        except PeerError as error:
            wrong = error
        except Exception as error:  # a decoder's mistake must not be a way to stop a node
            wrong = MalformedFrame(f"reading it failed with {error!r}")
        if requests:
            self._server.post(Received(self.id, tuple(requests), wall_millis()))
        if wrong is not None:
            self._refuse(wrong)

    def fetch_answered(self) -> None:
        """The Fetch that held others back has its answer: let them go, after this turn."""
        self._fetching = False
        if self._backlog:
            self._server.loop.call_soon(self._take_up_backlog)

    def _take_up_backlog(self) -> None:
        if self.closing or self._fetching or not self._backlog:
            return
        if self._paused_for & OUTPUT:
            return  # comes back when the client has taken what is unsent
        frames = list(self._backlog)
        self._backlog.clear()
        self._hand_over(frames)
        if not self._backlog:
            self.resume(BACKLOG)

    def _refuse(self, wrong: PeerError) -> None:
        self._server.counters.malformed_frames += 1
        self._server.journal.limited(
            f"bytes of {self.peer}",
            "warning",
            f"closing the connection of {self.peer} to {self._gate.name}: {wrong}",
        )
        self.close()

    # Flow

    def hold(self, held_bytes: int) -> None:
        grown = held_bytes - self.held_bytes
        self.held_bytes = held_bytes
        if grown:
            self._server.on_held(grown)

    def pause(self, reason: int) -> None:
        if not self._paused_for and not self.closing and not self.transport.is_closing():
            self.transport.pause_reading()
        self._paused_for |= reason

    def resume(self, reason: int) -> None:
        if not self._paused_for & reason:
            return
        self._paused_for &= ~reason
        if not self._paused_for and not self.closing and not self.transport.is_closing():
            self.transport.resume_reading()
        if reason == OUTPUT and self._backlog:
            self._server.loop.call_soon(self._take_up_backlog)

    @property
    def awaiting(self) -> int:
        """Requests that will have an answer and do not have it yet."""
        return len(self.begun)

    @property
    def paused_for(self) -> int:
        return self._paused_for

    @property
    def unsent(self) -> int:
        """Bytes of replies that the client has not taken."""
        return self.transport.get_write_buffer_size() + self._outlet.unsent_bytes

    def flush(self) -> int:
        """Write this turn's replies; how many bytes they were."""
        output = self.output
        self.output = []
        if self.closing:
            return 0
        size = sum(map(len, output))
        if self._outlet.busy or (size > _JOIN_BYTES_MAX and has_parcels(output)):
            self._send(output)
        elif size <= _JOIN_BYTES_MAX:
            self.transport.write(b"".join(cast("list[bytes]", output)))
        else:
            self.transport.writelines(cast("list[bytes]", output))
        return size

    def _send(self, output: Sequence[Piece] = ()) -> bool:
        """By the outlet: these as well, or go on with what waits there. True: nothing does now."""
        try:
            if output:
                self._outlet.send(output)
            else:
                self._outlet.go_on()
        except Gone as gone:  # the answer has begun and cannot be ended
            self._server.journal.limited(
                "gone", "warning", f"closing the connection of {self.peer}: {gone}"
            )
            self.transport.abort()
        except OSError:
            self.transport.abort()
        return not self._outlet.busy

    def close(self) -> None:
        """What was written before is still sent; nothing more is read."""
        if not self.closing:
            if self.output:
                self.flush()
            self.closing = True
            self._backlog.clear()
            self.hold(0)
            if not self._outlet.busy:
                self.transport.close()


_JOIN_BYTES_MAX: Final = 64 * 1024
"""Below it one copy is cheaper than a vector of many small buffers."""
