"""The links of a node to others, when somebody means to disturb them: held, or slowed.

Only there in a node that was started for it (``cotidal up --chaos``, ``cotidal.testing``). Every
connection between nodes is dialled by one of the two. The one that dials it sends both directions
through here, so both ends need no more than the same table (faults.py). Clients are not disturbed.

  held     what is said waits, in order, until the link is open again, as with packets that are
           sent again and again; a connection is not made while either direction is held
  slowed   all that is said takes so much longer; nothing overtakes anything

That a connection ends is something that is said, too: over a held link nobody learns of it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeAlias, cast

from cotidal.broker.dialling import dial
from cotidal.broker.faults import HELD, Faults, Pair
from cotidal.node.effects import Endpoint
from cotidal.values import NodeId

Hearer: TypeAlias = asyncio.Protocol | asyncio.BufferedProtocol


class Links:
    def __init__(self, node_id: NodeId, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._node_id = node_id
        self._faults = Faults()
        self._crossings: dict[Crossing, None] = {}
        self._waiting: list[asyncio.Future[None]] = []
        """Who wants to dial and cannot."""

    def suffer(self, faults: Faults) -> None:
        """From now on the links are as this says."""
        self._faults = faults
        for crossing in list(self._crossings):
            crossing.go_on()
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    def delay_s(self, pair: Pair) -> float:
        return self._faults.delays.get(pair, 0.0)

    async def dial(self, peer: NodeId, endpoint: Endpoint, protocol: Hearer) -> None:
        """As dialling.dial, over these links. Waits while one of them is held."""
        there, back = (self._node_id, peer), (peer, self._node_id)
        while HELD in (self.delay_s(there), self.delay_s(back)):
            opened: asyncio.Future[None] = self.loop.create_future()
            self._waiting.append(opened)
            await opened
        if (takes := self.delay_s(there) + self.delay_s(back)) > 0:
            await asyncio.sleep(takes)
        await dial(self.loop, endpoint, lambda: Crossing(self, there, back, protocol))

    def close(self) -> None:
        """This node ends, and with it every connection that it had: a system would see to that."""
        for crossing in list(self._crossings):
            crossing.break_off()

    # For crossings

    def add(self, crossing: Crossing) -> None:
        self._crossings[crossing] = None

    def forget(self, crossing: Crossing) -> None:
        self._crossings.pop(crossing, None)


class Flow:
    """One direction of one connection."""

    __slots__ = ("_links", "_pair", "_timer", "_waiting", "waiting_bytes")

    def __init__(self, links: Links, pair: Pair) -> None:
        self._links = links
        self._pair = pair
        self._waiting: deque[tuple[float, int, Callable[[], None]]] = deque()
        """Since when, how many bytes, and what is done with them at the other end."""
        self._timer: asyncio.TimerHandle | None = None
        self.waiting_bytes = 0

    def pass_on(self, arrive: Callable[[], None], size_bytes: int = 0) -> None:
        if self._waiting or self._links.delay_s(self._pair):
            self._waiting.append((self._links.loop.time(), size_bytes, arrive))
            self.waiting_bytes += size_bytes
            self.go_on()
        else:
            arrive()

    def go_on(self) -> None:
        """Let through whatever has waited long enough."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        delay = self._links.delay_s(self._pair)
        now = self._links.loop.time()
        while self._waiting and self._waiting[0][0] + delay <= now:
            _, size, arrive = self._waiting.popleft()
            self.waiting_bytes -= size
            arrive()
        if self._waiting and delay != HELD:
            self._timer = self._links.loop.call_at(self._waiting[0][0] + delay, self.go_on)

    def drop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._waiting.clear()
        self.waiting_bytes = 0


class Crossing(asyncio.Transport, asyncio.Protocol):
    """A connection, seen from both sides: the transport of ``protocol``, and the protocol of the
    transport that the system gave."""

    def __init__(self, links: Links, there: Pair, back: Pair, protocol: Hearer) -> None:
        super().__init__()
        self._links = links
        self._there = Flow(links, there)
        self._back = Flow(links, back)
        self._protocol = protocol
        self._given_up = False
        self._transport: asyncio.Transport | None = None

    def go_on(self) -> None:
        self._there.go_on()
        self._back.go_on()

    # The protocol's transport

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._there.pass_on(lambda: self._write(data), len(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.write(b"".join(list_of_data))

    def get_write_buffer_size(self) -> int:
        unsent = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return unsent + self._there.waiting_bytes

    def abort(self) -> None:
        """What is unsent goes nowhere; the other end learns of it when the link lets it."""
        self._given_up = True
        self._there.drop()
        self._back.drop()
        self._there.pass_on(self.break_off)

    def break_off(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _write(self, data: bytes | bytearray | memoryview) -> None:
        if self._transport is not None:
            self._transport.write(data)

    # The system's protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._links.add(self)
        self._protocol.connection_made(self)

    def data_received(self, data: bytes) -> None:
        if not self._given_up:
            self._back.pass_on(lambda: _hand_over(data, self._protocol))

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._there.drop()
        self._back.pass_on(lambda: self._on_lost(error))

    def _on_lost(self, error: Exception | None) -> None:
        self._links.forget(self)
        if not self._given_up:
            self._protocol.connection_lost(error)


def _hand_over(data: bytes, protocol: Hearer) -> None:
    if isinstance(protocol, asyncio.Protocol):
        protocol.data_received(data)
        return
    left = memoryview(data)
    while left:
        space = memoryview(protocol.get_buffer(len(left)))
        taken = min(len(space), len(left))
        space[:taken] = left[:taken]
        protocol.buffer_updated(taken)
        left = left[taken:]
