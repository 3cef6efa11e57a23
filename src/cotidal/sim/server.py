"""The connections that a simulated process has accepted: bytes -> requests, replies -> bytes.

The twin of broker/server.py and broker/connection.py, with their rules: every complete frame of a
read goes to the node as one event; requests behind an unanswered Fetch wait undecoded; bytes that
cannot be read close that connection; replies leave once a turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from cotidal.errors import PeerError, UnsupportedRequest
from cotidal.limits import FRAME_BYTES_MAX
from cotidal.node.effects import CloseConnection, PauseReading, Respond, ResumeReading
from cotidal.node.events import (
    ConnectionId,
    ConnectionLost,
    ConnectionOpened,
    Event,
    Received,
    Request,
)
from cotidal.sim.network import Connection, Network
from cotidal.values import WallMillis
from cotidal.wire.codec import decode_request
from cotidal.wire.frames import FrameReader, read_request_header, response_buffers

FETCH: Final = 1
API_VERSIONS: Final = 18
_new: Final = tuple.__new__

Gate = Mapping[int, tuple[int, int]]


class _Accepted:
    __slots__ = ("backlog", "connection", "fetching", "gate", "id", "output", "paused", "reader")

    def __init__(self, id_: ConnectionId, connection: Connection, gate: Gate) -> None:
        self.id = id_
        self.connection = connection
        self.gate = gate
        self.reader = FrameReader(FRAME_BYTES_MAX)
        self.output: list[bytes | bytearray | memoryview] = []
        self.backlog: deque[bytes | memoryview] = deque()
        self.fetching = False
        self.paused = False


class Server:
    """All accepted connections of one process."""

    def __init__(
        self,
        network: Network,
        *,
        post: Callable[[Event], None],
        run: Callable[..., None],
        wall: Callable[[], WallMillis],
    ) -> None:
        """``run(do, *args)``: on the process's loop, which may stand still for a while."""
        self._network = network
        self._post = post
        self._run = run
        self._wall = wall
        self._by_id: dict[int, _Accepted] = {}
        self._by_connection: dict[int, _Accepted] = {}
        self._dirty: list[_Accepted] = []
        self._last_id = 0

    def accept(self, connection: Connection, listener: str, gate: Gate) -> None:
        self._last_id += 1
        accepted = _Accepted(ConnectionId(self._last_id), connection, gate)
        self._by_id[accepted.id] = self._by_connection[connection.id] = accepted
        self._post(ConnectionOpened(accepted.id, listener, connection.peer_name))

    def receive(self, connection: Connection, data: bytes) -> None:
        accepted = self._by_connection.get(connection.id)
        if accepted is None:
            return
        try:
            frames = accepted.reader.feed(data)
        except PeerError:
            self._close(accepted)
            return
        if accepted.fetching or accepted.backlog or accepted.paused:
            accepted.backlog.extend(frames)
        elif frames:
            self._hand_over(accepted, frames)

    def lose(self, connection: Connection) -> None:
        accepted = self._by_connection.pop(connection.id, None)
        if accepted is not None:
            del self._by_id[accepted.id]
            self._post(ConnectionLost(accepted.id))

    def _hand_over(self, accepted: _Accepted, frames: list[bytes | memoryview]) -> None:
        requests: list[Request] = []
        refused = False
        try:
            for place, frame in enumerate(frames, 1):
                key, version, correlation, client, position = read_request_header(frame)
                versions = accepted.gate.get(key)
                if versions is not None and versions[0] <= version <= versions[1]:
                    message = decode_request(key, version, frame, position)
                elif key == API_VERSIONS:
                    message = None
                else:
                    raise UnsupportedRequest(f"version {version} of API {key} is not served here")
                requests.append(_new(Request, (key, version, correlation, client, message)))
                if key == FETCH:
                    accepted.fetching = True
                    accepted.backlog.extend(frames[place:])
                    break
        except PeerError:
            refused = True
        if requests:
            self._post(_new(Received, (accepted.id, tuple(requests), self._wall())))
        if refused:
            self._close(accepted)

    def _take_up_backlog(self, accepted: _Accepted) -> None:
        if accepted.fetching or accepted.paused or not accepted.backlog:
            return
        if accepted.id in self._by_id:
            frames = list(accepted.backlog)
            accepted.backlog.clear()
            self._hand_over(accepted, frames)

    def _close(self, accepted: _Accepted) -> None:
        if accepted.id in self._by_id:
            self._write(accepted)
            self._network.close_from_callee(accepted.connection)
            self.lose(accepted.connection)

    # Effects

    def respond(self, effect: Respond) -> None:
        accepted = self._by_id.get(effect.connection)
        if accepted is None:
            return  # it left while its request was parked
        if not accepted.output:
            self._dirty.append(accepted)
        key = effect.api_key
        accepted.output += response_buffers(
            key, effect.api_version, effect.correlation_id, effect.message
        )
        if key == FETCH:
            accepted.fetching = False
            if accepted.backlog:
                self._run(self._take_up_backlog, accepted)

    def close_connection(self, effect: CloseConnection) -> None:
        accepted = self._by_id.get(effect.connection)
        if accepted is not None:
            self._close(accepted)

    def pause_reading(self, effect: PauseReading) -> None:
        accepted = self._by_id.get(effect.connection)
        if accepted is not None:
            accepted.paused = True

    def resume_reading(self, effect: ResumeReading) -> None:
        accepted = self._by_id.get(effect.connection)
        if accepted is not None:
            accepted.paused = False
            if accepted.backlog:
                self._run(self._take_up_backlog, accepted)

    def flush(self) -> None:
        """The end of a turn."""
        if self._dirty:
            dirty, self._dirty = self._dirty, []
            for accepted in dirty:
                self._write(accepted)

    def _write(self, accepted: _Accepted) -> None:
        if accepted.output:
            data = b"".join(accepted.output)
            accepted.output = []
            self._network.send_from_callee(accepted.connection, data)
