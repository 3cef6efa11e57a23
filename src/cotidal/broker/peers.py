"""Connections to other nodes: obeys Call and KeepConnected.

A *lane* is one connection to one endpoint for one kind of talk. It is made when it is first needed.
Requests leave in order, one write for each lane and turn; a node answers the requests of one
connection in order, so replies are matched from the front, and their correlation ids are checked.
When a lane is lost, sends what cannot be read, or lets one call wait past its time, every call on
it fails and the next one gets a new connection: what stands behind a silent call would wait too.

A *kept* connection is there for its own sake: nothing is asked on it, and its end is the quickest
news of a process that died. After the loss of one that stood for a while it is tried at once: a
refusal tells a dead process from a lost connection.

Calls of a node to itself never get here.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, cast

from cotidal.broker.counters import Counters
from cotidal.broker.dialling import Unreachable, dial
from cotidal.broker.links import Hearer, Links
from cotidal.errors import MalformedFrame, PeerError
from cotidal.limits import PEER_CALLS_MAX, PEER_UNSENT_BYTES_MAX, RESPONSE_BYTES_MAX
from cotidal.node.effects import Call, CallToken, Endpoint, KeepConnected
from cotidal.node.events import CallFailed, Event, PeerConnected, PeerLost, Replied
from cotidal.values import NodeId
from cotidal.wire.codec import decode_response
from cotidal.wire.frames import read_response_header, request_buffers
from cotidal.wire.receiving import FrameReceiver, scratch

RECONNECT_FIRST_S: Final = 0.01
RECONNECT_MAX_S: Final = 0.1
"""Doubled from attempt to attempt, less up to a half by lot, so that nodes that were started
together do not knock together. A dying process may take one more connection before it refuses: the
first pauses are part of the time in which its death is noticed."""

CONNECT_TIMEOUT_S: Final = 1.0
"""Of a kept connection; a call's own time bounds that of a lane."""

IN_VAIN_SHARE: Final = 0.6
"""A lane's timer is put off when less than this of a call's time is left before it rings: two calls
a second, of a second each, never let it ring, and a thousand put it off three times."""

STOOD_S: Final = 0.1
"""A connection that stood for this long is tried again at once when it ends."""

LaneKey = tuple[str, int, str]


class Waiting(NamedTuple):
    """A call without its answer."""

    token: CallToken
    api_key: int
    api_version: int
    correlation: int
    deadline: float


class Lane(asyncio.BufferedProtocol):
    __slots__ = (
        "_armed_for",
        "_correlation",
        "_dialling",
        "_key",
        "_output",
        "_peers",
        "_receiver",
        "_timer",
        "_transport",
        "_unsent_bytes",
        "waiting",
    )

    def __init__(self, peers: Peers, key: LaneKey, node_id: NodeId, endpoint: Endpoint) -> None:
        self.waiting: deque[Waiting] = deque()
        self._peers = peers
        self._key = key
        self._transport: asyncio.Transport | None = None
        self._output: list[bytes | bytearray | memoryview] = []
        self._unsent_bytes = 0
        """In ``_output``."""
        self._receiver = FrameReceiver(RESPONSE_BYTES_MAX, peers.scratch)
        self._correlation = 0
        self._timer: asyncio.TimerHandle | None = None
        self._armed_for = 0.0
        self._dialling = peers.spawn(self._dial(node_id, endpoint))

    def call(self, call: Call, now: float) -> None:
        unsent = self.unsent_bytes
        if len(self.waiting) >= PEER_CALLS_MAX or unsent > PEER_UNSENT_BYTES_MAX:
            reason = f"{len(self.waiting)} calls and {unsent} bytes wait for {self._key[0]} already"
            self._peers.fail_later(call.token, reason)
            return
        self._correlation = (self._correlation + 1) & 0x7FFFFFFF
        deadline = now + call.timeout_ms / 1000
        buffers = request_buffers(
            call.api_key, call.api_version, self._correlation, self._peers.client_id, call.message
        )
        self.waiting.append(
            Waiting(call.token, call.api_key, call.api_version, self._correlation, deadline)
        )
        self._output += buffers
        self._unsent_bytes += sum(map(len, buffers))
        if self._timer is None or deadline < self._armed_for or self._would_ring_in_vain(call, now):
            self._arm(deadline)

    @property
    def unsent_bytes(self) -> int:
        """Of calls that the other node has not taken."""
        transport = self._transport
        return self._unsent_bytes + (0 if transport is None else transport.get_write_buffer_size())

    def flush(self) -> None:
        if self._transport is not None and self._output:
            self._peers.counters.peer_bytes_out += self._unsent_bytes
            self._transport.write(b"".join(self._output))
            self._output = []
            self._unsent_bytes = 0

    def end(self, reason: str, *, refused: bool = False) -> None:
        """No more of this connection: whatever waits on it has failed."""
        self._peers.forget(self._key, self)
        self._dialling.cancel()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.abort()
            self._transport = None
        self._output = []
        waiting, self.waiting = self.waiting, deque()
        for call in waiting:
            self._peers.post(CallFailed(call.token, refused, reason))

    # The connection

    async def _dial(self, node_id: NodeId, endpoint: Endpoint) -> None:
        try:
            await self._peers.dial(node_id, endpoint, self)
        except Unreachable as wrong:
            self.end(str(wrong), refused=wrong.refused)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.flush()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._receiver.space()

    def buffer_updated(self, nbytes: int) -> None:
        peers = self._peers
        peers.counters.peer_bytes_in += nbytes
        try:
            for frame in self._receiver.received(nbytes):
                if not self.waiting:
                    raise MalformedFrame("it answers what nobody asked")
                token, key, version, expected, _ = self.waiting[0]
                correlation, position = read_response_header(frame, key, version)
                if correlation != expected:
                    raise MalformedFrame(f"it answers request {correlation}, not {expected}")
                message = decode_response(key, version, frame, position)
                self.waiting.popleft()
                peers.post(Replied(token, message))
        except PeerError as wrong:
            self._refuse(str(wrong))
        except Exception as wrong:  # a decoder's mistake must not be a way to stop a node
            self._refuse(f"reading it failed with {wrong!r}")

    def connection_lost(self, error: Exception | None) -> None:
        if self._transport is not None:
            self._transport = None
            self.end(f"the connection to {self._key[0]}:{self._key[1]} was lost")

    def _refuse(self, reason: str) -> None:
        self._peers.on_unreadable(
            f"{self._key[0]}:{self._key[1]} sent what cannot be read: {reason}"
        )
        self.end(reason)

    # Time

    def _arm(self, deadline: float) -> None:
        """Ring at the earliest deadline, or before it: most calls are answered long before."""
        if self._timer is not None:
            self._timer.cancel()
        self._armed_for = deadline
        self._timer = self._peers.loop.call_at(deadline, self._ring)

    def _would_ring_in_vain(self, call: Call, now: float) -> bool:
        """Nothing else is waited for, and the timer would ring while most of this one's time is
        left: it costs less to put it off than to wake for nothing."""
        left = self._armed_for - now
        return len(self.waiting) == 1 and left * 1000 < call.timeout_ms * IN_VAIN_SHARE

    def _ring(self) -> None:
        self._timer = None
        if not self.waiting:
            return
        earliest = min(call.deadline for call in self.waiting)
        if earliest <= self._peers.loop.time():
            self.end(f"{self._key[0]}:{self._key[1]} did not answer in time")
        else:
            self._arm(earliest)


class Kept(asyncio.Protocol):
    """A connection for its own sake, made again and again until it is given up."""

    __slots__ = (
        "_attempts",
        "_dialling",
        "_given_up",
        "_peers",
        "_since",
        "_timer",
        "_transport",
        "endpoint",
        "node_id",
    )

    def __init__(self, peers: Peers, node_id: NodeId, endpoint: Endpoint) -> None:
        self.node_id = node_id
        self.endpoint = endpoint
        self._peers = peers
        self._given_up = False
        self._attempts = 0
        """Since the connection last stood for a while."""
        self._transport: asyncio.Transport | None = None
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._dialling = peers.spawn(self._dial())

    def give_up(self) -> None:
        self._given_up = True
        self._dialling.cancel()
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    async def _dial(self) -> None:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await self._peers.dial(self.node_id, self.endpoint, self)
        except Unreachable as wrong:
            self._on_lost(refused=wrong.refused)
        except TimeoutError:
            self._on_lost(refused=False)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self._given_up:  # a moment too late
            cast(asyncio.Transport, transport).abort()
            return
        self._transport = cast(asyncio.Transport, transport)
        self._since = self._peers.loop.time()
        self._peers.post(PeerConnected(self.node_id))

    def data_received(self, data: bytes) -> None:
        if self._transport is not None:  # nothing was asked: whoever this is, it is not a node
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        if self._transport is not None:
            self._transport = None
            if self._peers.loop.time() - self._since >= STOOD_S:
                self._attempts = 0
            self._on_lost(refused=False)

    def _on_lost(self, *, refused: bool) -> None:
        self._peers.post(PeerLost(self.node_id, refused))
        self._timer = self._peers.loop.call_later(reconnect_delay_s(self._attempts), self._again)
        self._attempts += 1

    def _again(self) -> None:
        self._timer = None
        self._dialling = self._peers.spawn(self._dial())


def reconnect_delay_s(attempts: int) -> float:
    """None at first: whether it is refused then is the news."""
    if attempts == 0:
        return 0.0
    longest = min(RECONNECT_FIRST_S * (1 << min(attempts - 1, 10)), RECONNECT_MAX_S)
    return longest * random.uniform(0.5, 1.0)


class Peers:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        client_id: str,
        post: Callable[[Event], None],
        warn: Callable[[str], None],
        counters: Counters,
        links: Links | None = None,
    ) -> None:
        """``warn``: a sentence about a peer that does not keep to the protocol. ``links``: what
        all talk goes through that somebody means to disturb."""
        self.loop = loop
        self.client_id = client_id
        self.post = post
        self.counters = counters
        self.scratch = scratch()
        self.on_unreadable = warn
        self._links = links
        self._lanes: dict[LaneKey, Lane] = {}
        self._kept: dict[NodeId, Kept] = {}
        self._dirty: dict[Lane, None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def obeys(self) -> dict[type, Callable[[Any], None]]:
        return {Call: self.call, KeepConnected: self.keep_connected}

    def call(self, effect: Call) -> None:
        if self._closed:
            return
        endpoint = effect.endpoint
        key = (endpoint.host, endpoint.port, effect.lane)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(self, key, effect.peer, endpoint)
        lane.call(effect, self.loop.time())
        self._dirty[lane] = None

    def keep_connected(self, effect: KeepConnected) -> None:
        if self._closed:
            return
        wanted = dict(effect.peers)
        for node_id, kept in list(self._kept.items()):
            if wanted.get(node_id) != kept.endpoint:
                kept.give_up()
                del self._kept[node_id]
        for node_id, endpoint in wanted.items():
            if node_id not in self._kept:
                self._kept[node_id] = Kept(self, node_id, endpoint)

    def flush(self) -> None:
        """The end of a turn."""
        if self._dirty:
            dirty, self._dirty = self._dirty, {}
            for lane in dirty:
                lane.flush()

    def fills(self) -> dict[str, float]:
        """How full the fullest lane is."""
        lanes = self._lanes.values()
        return {
            "PEER_CALLS_MAX": max((len(each.waiting) for each in lanes), default=0)
            / PEER_CALLS_MAX,
            "PEER_UNSENT_BYTES_MAX": max((each.unsent_bytes for each in lanes), default=0)
            / PEER_UNSENT_BYTES_MAX,
        }

    @property
    def lanes(self) -> Iterable[LaneKey]:
        return self._lanes.keys()

    def close(self) -> None:
        """No more calls and no more news. Nobody is told of what still waited."""
        self._closed = True
        self.post = _tell_nobody
        for kept in self._kept.values():
            kept.give_up()
        for lane in list(self._lanes.values()):
            lane.end("this node stops")
        if self._links is not None:
            self._links.close()
        self._kept.clear()
        self._dirty.clear()

    async def closed(self) -> None:
        """After ``close``, when nothing of it is left on the loop."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # For lanes

    async def dial(self, node_id: NodeId, endpoint: Endpoint, protocol: Hearer) -> None:
        if self._links is None:
            await dial(self.loop, endpoint, lambda: protocol)
        else:
            await self._links.dial(node_id, endpoint, protocol)

    def spawn(self, work: Any) -> asyncio.Task[None]:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return cast("asyncio.Task[None]", task)

    def forget(self, key: LaneKey, lane: Lane) -> None:
        self._dirty.pop(lane, None)
        if self._lanes.get(key) is lane:
            del self._lanes[key]

    def fail_later(self, token: CallToken, reason: str) -> None:
        """Not in this turn: whoever asks again at once must not keep the turn from ending."""
        self.loop.call_soon(lambda: self.post(CallFailed(token, False, reason)))


def _tell_nobody(event: Event) -> None:
    return None
