"""All connections of a node: listeners, bounds, one write for each connection and turn.

Bounds: connections in all and from one address; idle ones and those that stop in the middle of a
frame are closed by one sweep, not by a timer each; bytes held for all of them together. When the
last is passed, only the connection whose frame has got furthest is read on, so that the memory is
sure to be freed: the frame ends (or stalls, and is given up) and the others go on.

File descriptors never run out: main.py counts them into the bound on connections.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Final, NamedTuple

from cotidal.broker.connection import FETCH, MEMORY, NODE, OUTPUT, Connection
from cotidal.broker.counters import Counters
from cotidal.broker.envelopes import sealed
from cotidal.broker.journal import Journal
from cotidal.broker.sockets import prepare
from cotidal.limits import LISTEN_BACKLOG, OUTPUT_HIGH_WATER_BYTES, UNSENT_BYTES_MAX
from cotidal.node.effects import CloseConnection, PauseReading, Respond, ResumeReading
from cotidal.node.events import ConnectionId, ConnectionLost, ConnectionOpened, Event
from cotidal.wire.frames import response_buffers
from cotidal.wire.receiving import scratch

LARGE_ANSWER_BYTES: Final = 64 * 1024
"""Only answers to fetches are larger, and only they are asked how much of them is unsent."""


class Bounds(NamedTuple):
    connections_max: int
    connections_per_address_max: int
    address_overrides: Mapping[str, int]
    """The same for single addresses."""
    idle_ms: int
    """0 or less: never."""
    stall_ms: int
    """In the middle of a frame."""
    frame_bytes_max: int
    held_bytes_max: int

    def of_address(self, address: str) -> int:
        return self.address_overrides.get(address, self.connections_per_address_max)


class Gate(NamedTuple):
    """A listener with what may be asked there: API key -> oldest and newest version."""

    name: str
    served: Mapping[int, tuple[int, int]]


class Server:
    __slots__ = (
        "_by_address",
        "_clogged",
        "_connections",
        "_dirty",
        "_last_id",
        "_relieving",
        "_servers",
        "_sweep",
        "bounds",
        "counters",
        "journal",
        "loop",
        "post",
        "scratch",
        "time",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        bounds: Bounds,
        post: Callable[[Event], None],
        journal: Journal,
        counters: Counters,
    ) -> None:
        self.bounds = bounds
        self.post = post
        self.journal = journal
        self.counters = counters
        self.time = loop.time
        self.scratch = scratch()
        self.loop = loop
        self._connections: dict[int, Connection] = {}
        self._by_address: dict[str, int] = {}
        self._dirty: list[Connection] = []
        self._clogged: dict[Connection, None] = {}
        """Connections with large answers that have not gone out at once."""
        self._servers: list[asyncio.Server] = []
        self._last_id = 0
        self._relieving = False
        self._sweep: asyncio.TimerHandle | None = None
        self._schedule_sweep()

    async def listen(self, sockets: tuple[socket.socket, ...], gate: Gate) -> None:
        """Accept connections on sockets that are bound already."""
        for sock in sockets:
            server = await self.loop.create_server(
                lambda: self._new(gate), sock=sock, backlog=LISTEN_BACKLOG
            )
            self._servers.append(server)

    def stop_listening(self) -> None:
        for server in self._servers:
            server.close()
        self._servers.clear()

    def close_all(self) -> None:
        self.stop_listening()
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        for connection in list(self._connections.values()):
            connection.close()

    def abort_all(self) -> None:
        """As if the process had died: nothing more is sent."""
        self.close_all()
        for connection in list(self._connections.values()):
            connection.transport.abort()

    @property
    def connected(self) -> int:
        return len(self._connections)

    @property
    def awaiting(self) -> int:
        """Requests without an answer, of all connections."""
        return sum(connection.awaiting for connection in self._connections.values())

    def fills(self) -> dict[str, float]:
        """How full each bound of connections is."""
        unsent = max((each.unsent for each in self._connections.values()), default=0)
        return {
            "CONNECTIONS_MAX": len(self._connections) / self.bounds.connections_max,
            "HELD_BYTES_MAX": self.counters.held_bytes / self.bounds.held_bytes_max,
            "OUTPUT_HIGH_WATER_BYTES": unsent / OUTPUT_HIGH_WATER_BYTES,
            "UNSENT_BYTES_MAX": 1 - self.answer_room() / UNSENT_BYTES_MAX,
        }

    # A connection's life

    def _new(self, gate: Gate) -> Connection:
        self._last_id += 1
        return Connection(self, gate, ConnectionId(self._last_id))

    def on_connected(self, connection: Connection, gate: Gate) -> None:
        sock = connection.transport.get_extra_info("socket")
        peer = connection.peer
        if sock is not None:
            prepare(sock, peer)
        here = self._by_address.get(peer, 0)
        refused = None
        if len(self._connections) >= self.bounds.connections_max:
            refused = f"max.connections={self.bounds.connections_max} is reached"
        elif here >= self.bounds.of_address(peer):
            limit = self.bounds.of_address(peer)
            refused = f"max.connections.per.ip={limit} is reached for {peer}"
        if refused:
            self.counters.connections_refused += 1
            connection.closing = True
            connection.transport.abort()
            self.journal.limited(
                "refused", "warning", f"a connection of {peer} is refused: {refused}"
            )
            return
        self._by_address[peer] = here + 1
        self._connections[connection.id] = connection
        connection.active_at = self.time()
        self.counters.connections_opened += 1
        self.counters.connections = len(self._connections)
        self.post(ConnectionOpened(connection.id, gate.name, peer))

    def on_lost(self, connection: Connection, event: ConnectionLost) -> None:
        if self._connections.pop(connection.id, None) is None:
            return  # it was refused
        self._clogged.pop(connection, None)
        self.counters.connections = len(self._connections)
        left = self._by_address[connection.peer] - 1
        if left:
            self._by_address[connection.peer] = left
        else:
            del self._by_address[connection.peer]
        self.post(event)

    # Effects

    def respond(self, effect: Respond) -> None:
        key = effect.api_key
        connection = self._connections.get(effect.connection)
        if connection is None or connection.closing:
            return  # it left while its request was parked
        self.counters.answered(key, perf_counter() - connection.begun.popleft())
        output = connection.output
        if not output:
            self._dirty.append(connection)
        if connection.envelopes and effect.correlation_id in connection.envelopes:
            output += sealed(effect, connection.envelopes.pop(effect.correlation_id))
            return
        output += response_buffers(key, effect.api_version, effect.correlation_id, effect.message)
        if key == FETCH:
            connection.fetch_answered()

    def close_connection(self, effect: CloseConnection) -> None:
        connection = self._connections.get(effect.connection)
        if connection is not None:
            self.journal.limited(
                "closed", "warning", f"closing the connection of {connection.peer}: {effect.reason}"
            )
            connection.close()

    def pause_reading(self, effect: PauseReading) -> None:
        connection = self._connections.get(effect.connection)
        if connection is not None:
            connection.pause(NODE)

    def resume_reading(self, effect: ResumeReading) -> None:
        connection = self._connections.get(effect.connection)
        if connection is not None:
            connection.resume(NODE)

    def flush(self) -> None:
        """The end of a turn."""
        dirty = self._dirty
        if dirty:
            counters = self.counters
            self._dirty = []
            for connection in dirty:
                if connection.output:
                    size = connection.flush()
                    counters.bytes_out += size
                    if size > LARGE_ANSWER_BYTES and connection.unsent:
                        self._clogged[connection] = None

    def answer_room(self) -> int:
        """Bytes of answers that may be made now, for clients do not take all that there are."""
        room = UNSENT_BYTES_MAX
        for connection in tuple(self._clogged):
            unsent = connection.unsent
            room -= unsent
            if not unsent:
                del self._clogged[connection]
        return max(room, 0)

    # Bounds

    def on_held(self, grown: int) -> None:
        """Frames that have begun, or writes that wait for the disk, hold so many bytes more."""
        self.counters.held_bytes += grown
        if self.counters.held_bytes > self.bounds.held_bytes_max:
            self._relieve()
        elif self._relieving:
            self._relieving = False
            for connection in self._connections.values():
                connection.resume(MEMORY)

    def _relieve(self) -> None:
        self._relieving = True
        begun = [c for c in self._connections.values() if c.held_bytes]
        furthest = max(begun, key=_held_bytes, default=None)
        in_frames = sum(c.held_bytes for c in begun)
        # What waits for the disk is sure to go; until then nobody may bring more.
        only_begun = in_frames > self.counters.held_bytes // 2
        for connection in begun if only_begun else self._connections.values():
            if connection is furthest and only_begun:
                connection.resume(MEMORY)
            else:
                connection.pause(MEMORY)

    def _schedule_sweep(self) -> None:
        shortest = min(b for b in (self.bounds.idle_ms, self.bounds.stall_ms, 20_000) if b > 0)
        self._sweep = self.loop.call_later(max(shortest / 4000, 0.02), self._on_sweep)

    def _on_sweep(self) -> None:
        now = self.time()
        for connection in list(self._connections.values()):
            unsent = connection.unsent
            waits_for_us = connection.awaiting or connection.paused_for & ~OUTPUT
            if (waits_for_us and not connection.closing) or unsent != connection.unsent_bytes:
                connection.active_at = now
                connection.unsent_bytes = unsent
                continue
            quiet_ms = (now - connection.active_at) * 1000
            if connection.held_bytes and quiet_ms > self.bounds.stall_ms > 0:
                self._give_up(connection, "it stopped in the middle of a request")
            elif connection.closing and quiet_ms > self.bounds.stall_ms > 0:
                self._give_up(connection, "it does not take its last replies")
            elif quiet_ms > self.bounds.idle_ms > 0:
                self._give_up(connection, None)
        self._schedule_sweep()

    def _give_up(self, connection: Connection, reason: str | None) -> None:
        self.counters.idle_closed += 1
        if reason is not None:
            self.journal.limited(
                "stalled", "warning", f"closing the connection of {connection.peer}: {reason}"
            )
        connection.transport.abort()  # a closed one that cannot send the rest ends here too


def _held_bytes(connection: Connection) -> int:
    return connection.held_bytes
