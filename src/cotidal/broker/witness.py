"""What a node does, told as it does it to whoever listens on this machine (the live console).

A Unix socket in the node's directory, which only its user can open. While somebody listens, every
step is told, one JSON object a line: what happened first, then what the node wants done about it.

    {"at": 1763..., "step": 81, "kind": "received", "said": "#4 Fetch v17 by 2: orders-0 offset=3",
     "peer": "node-2", "asks": [["Fetch", 0]]}
    {"at": 1763..., "step": 97, "kind": "respond", "said": "#4 Fetch v17 orders-0 3..5@1 hw=6",
     "peer": "node-2", "api": "Fetch", "bytes": 310}

  at      microseconds since 1970
  step    the same for an event and the effects that it had
  peer    who asked, as it calls itself; a node is node-K
  bytes   of the records in it
  acks, took_us   of an answer to a producer: its level, and how long it waited

A node that has much to do would be slower for being watched, so at most WITNESS_LINES_MAX moments
of a kind are told a second; the others are counted ({"kind": "passed", "count": 812}). Who listens
too slowly misses lines. While nobody listens, the node is stepped as if this were not there.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final, cast

from cotidal.broker.driver import Driver, Machine
from cotidal.broker.journal import Journal
from cotidal.core.trace.cluster import Names
from cotidal.core.trace.told import Told
from cotidal.limits import WITNESS_BACKLOG_BYTES_MAX, WITNESS_HEARERS_MAX, WITNESS_LINES_MAX
from cotidal.messages.rpc.apis import APIS
from cotidal.messages.rpc.fetch import FetchResponse
from cotidal.messages.rpc.produce import ProduceRequest
from cotidal.node import effects as want
from cotidal.node import events as seen
from cotidal.node.trace import NodeMoment, tell
from cotidal.values import Millis

WITNESS_SOCKET: Final = "witness"
"""In the directory of a node."""

TELL_EVERY_S: Final = 0.05
WINDOW_US: Final = 1_000_000
ALL: Final = -1
UNTOLD: Final = (seen.Ticked, seen.TimeSpent)
"""Nothing to read in them; what came of them is told."""

Tell = Callable[[dict[str, Any]], None]


class Witness:
    """A node that is watched. To whoever drives it, a node."""

    __slots__ = ("_counts", "_names", "_node", "_peers", "_steps", "_tell", "_waiting", "_window")

    def __init__(self, node: Machine, names: Callable[[], Names], tell: Tell) -> None:
        """``names``: topics by their ids."""
        self._node = node
        self._names = names
        self._tell = tell
        self._steps = 0
        self._window = 0
        self._counts: dict[object, int] = {}
        """Moments of each kind since the window began."""
        self._peers: dict[int, str] = {}
        """Connection -> who is at its other end, if that was heard."""
        self._waiting: dict[tuple[int, int], tuple[int, int]] = {}
        """Connection and correlation of a producer -> its acks, and when it asked."""

    def step(self, event: seen.Event, now: Millis) -> Any:
        at = time.time_ns() // 1000
        self._steps += 1
        if at - self._window >= WINDOW_US:
            self._begin_window(at)
        self._on_event(event, at)  # before the step: what it holds may be taken out of it
        effects = self._node.step(event, now)
        for effect in effects:
            self._on_effect(effect, at)
        return effects

    def next_deadline(self) -> Millis | None:
        return self._node.next_deadline()

    def _begin_window(self, at: int) -> None:
        passed = sum(max(0, each - WITNESS_LINES_MAX) for each in self._counts.values())
        if passed:
            self._tell({"at": at, "step": self._steps, "kind": "passed", "count": passed})
        self._counts.clear()
        self._window = at

    def _on_event(self, event: seen.Event, at: int) -> None:
        if isinstance(event, seen.Received):
            asked = [(each.api_key, each.message) for each in event.requests]
            self._peers[event.connection] = event.requests[-1].client_id or ""
            for request in event.requests:
                if isinstance(request.message, ProduceRequest) and request.message.acks:
                    place = (event.connection, request.correlation_id)
                    self._waiting[place] = (request.message.acks, at)
            if self._may(("received", asked[0][0])):
                asks = [[_name(key), _record_bytes(message)] for key, message in asked]
                self._say(event, at, peer=self._peers[event.connection], asks=asks)
        elif isinstance(event, seen.ConnectionLost):
            self._peers.pop(event.connection, None)
            self._waiting = {
                place: asked for place, asked in self._waiting.items()
                if place[0] != event.connection
            }  # fmt: skip
            if self._may(seen.ConnectionLost):
                self._say(event, at)
        elif not isinstance(event, UNTOLD) and self._may(_kind(event)):
            self._say(event, at)

    def _on_effect(self, effect: want.Effect, at: int) -> None:
        if not isinstance(effect, want.Respond):
            if self._may(_kind(effect)):
                self._say(effect, at)
            return
        waited: dict[str, Any] = {}
        asked = self._waiting.pop((effect.connection, effect.correlation_id), None)
        if asked is not None:
            acks, since = asked
            answered = time.time_ns() // 1000
            waited = {"acks": "all" if acks == ALL else str(acks), "took_us": answered - since}
        if self._may(("respond", effect.api_key, waited.get("acks"))):
            peer = self._peers.get(effect.connection, "")
            size = _record_bytes(effect.message)
            self._say(effect, at, peer=peer, api=_name(effect.api_key), bytes=size, **waited)

    def _may(self, kind: object) -> bool:
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        return count <= WITNESS_LINES_MAX

    def _say(self, moment: NodeMoment, at: int, **more: object) -> None:
        try:
            told = tell(moment, self._names())
        except Exception as wrong:  # a mistake in words must not stop a node
            told = Told("untold", f"{type(moment).__name__}: {wrong!r}", {})
        self._tell({"at": at, "step": self._steps, "kind": told.name, "said": told.said, **more})


def _kind(moment: NodeMoment) -> object:
    """Of what many are alike."""
    if isinstance(moment, want.Call):
        return ("call", moment.api_key)
    if isinstance(moment, seen.Replied):
        return ("replied", type(moment.message))
    return type(moment)


def _name(key: int) -> str:
    known = APIS.get(key)
    return known.name if known else str(key)


def _record_bytes(message: object) -> int:
    if isinstance(message, FetchResponse):
        parts: Iterator[Any] = (each for topic in message.responses for each in topic.partitions)
    elif isinstance(message, ProduceRequest):
        parts = (each for topic in message.topic_data for each in topic.partition_data)
    else:
        return 0
    return sum(len(each.records.data) for each in parts if each.records is not None)


# Who listens --------------------------------------------------------------------------------------


class Gallery:
    """The socket, and those who listen there."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        path: str,
        *,
        driver: Driver,
        machine: Machine,
        names: Callable[[], Names],
        journal: Journal,
    ) -> None:
        self._loop = loop
        self._path = path
        self._driver = driver
        self._machine = machine
        self._names = names
        self._journal = journal
        self._hearers: set[asyncio.Transport] = set()
        self._lines: list[bytes] = []
        self._server: asyncio.AbstractServer | None = None

    async def open(self) -> None:
        """A node that cannot be watched is a node all the same."""
        listener = socket.socket(socket.AF_UNIX)
        try:
            with suppress(FileNotFoundError):
                os.unlink(self._path)  # of a process that was killed
            listener.bind(self._path)
            os.chmod(self._path, 0o600)  # nobody is let in before it listens
            self._server = await self._loop.create_unix_server(lambda: _Hearer(self), sock=listener)
        except OSError as wrong:
            listener.close()
            self._journal.warning(f"the console cannot watch this node: {self._path}: {wrong}")

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            with suppress(OSError):
                os.unlink(self._path)
        for transport in list(self._hearers):
            transport.abort()

    def on_hearer(self, transport: asyncio.Transport) -> None:
        if len(self._hearers) == WITNESS_HEARERS_MAX:
            transport.abort()
            return
        self._hearers.add(transport)
        if len(self._hearers) == 1:
            self._driver.drive(Witness(self._machine, self._names, self._tell))

    def on_gone(self, transport: asyncio.Transport) -> None:
        self._hearers.discard(transport)
        if not self._hearers:
            self._driver.drive(self._machine)

    def _tell(self, moment: dict[str, Any]) -> None:
        if not self._lines:
            self._loop.call_later(TELL_EVERY_S, self._flush)
        self._lines.append(json.dumps(moment, separators=(",", ":")).encode() + b"\n")

    def _flush(self) -> None:
        told = b"".join(self._lines)
        self._lines.clear()
        for transport in self._hearers:
            if transport.get_write_buffer_size() < WITNESS_BACKLOG_BYTES_MAX:
                transport.write(told)


class _Hearer(asyncio.Protocol):
    """Says nothing, or is not understood."""

    __slots__ = ("_gallery", "_transport")

    def __init__(self, gallery: Gallery) -> None:
        self._gallery = gallery

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._gallery.on_hearer(self._transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._gallery.on_gone(self._transport)
