"""A simulated node's own connections to other nodes: a lane for each kind of talk.

A lane is one connection to one peer: calls go out in order and their answers come back in order.
It is made when it is first needed. When it is lost, or a call on it has waited too long, every
call on it fails: nobody can tell which of them were heard. A peer that is to be kept connected has
a lane of its own, which is made again and again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from cotidal.core.machine import Entropy
from cotidal.errors import PeerError
from cotidal.limits import RESPONSE_BYTES_MAX
from cotidal.node.effects import Call, CallToken, Endpoint, KeepConnected
from cotidal.node.events import CallFailed, Event, PeerConnected, PeerLost, Replied
from cotidal.sim.agenda import MS, Agenda
from cotidal.sim.network import Connection, HostId, Network
from cotidal.values import NodeId
from cotidal.wire.codec import decode_response
from cotidal.wire.frames import FrameReader, read_response_header, request_buffers

RECONNECT_MIN_US: Final = 20 * MS
RECONNECT_SPREAD_US: Final = 80 * MS

LaneKey = tuple[str, int, str]
"""Host, port, lane: two listeners of one node do not share a connection."""


class _Waiting:
    """A call without its answer."""

    __slots__ = ("api_key", "api_version", "correlation", "token")

    def __init__(self, call: Call, correlation: int) -> None:
        self.token: CallToken = call.token
        self.api_key = call.api_key
        self.api_version = call.api_version
        self.correlation = correlation


class _Lane:
    """A connection for calls."""

    __slots__ = (
        "_connection",
        "_key",
        "_last",
        "_output",
        "_peers",
        "_reader",
        "_ready",
        "waiting",
    )

    def __init__(self, peers: Peers, key: LaneKey, endpoint: Endpoint) -> None:
        self._peers = peers
        self._key = key
        self._ready = False
        self._last = 0
        self._output: list[bytes | bytearray | memoryview] = []
        self._reader = FrameReader(RESPONSE_BYTES_MAX)
        self.waiting: deque[_Waiting] = deque()
        address = (endpoint.host, endpoint.port)
        self._connection = peers.network.connect(peers.host, address, self)

    def call(self, call: Call) -> None:
        self._last += 1
        self.waiting.append(_Waiting(call, self._last))
        self._output += request_buffers(
            call.api_key, call.api_version, self._last, self._peers.client_id, call.message
        )
        delay = call.timeout_ms * MS
        self._peers.agenda.after(delay, self._peers.run, self._time_out, self._last)

    def flush(self) -> None:
        if self._ready and self._output:
            data = b"".join(self._output)
            self._output = []
            self._peers.network.send_from_caller(self._connection, data)

    def on_connected(self, connection: Connection) -> None:
        self._peers.run(self._on_connected)

    def on_not_connected(self, connection: Connection, refused: bool) -> None:
        self._peers.run(self._end, refused, "nobody listens there" if refused else "no answer")

    def on_bytes(self, connection: Connection, data: bytes) -> None:
        self._peers.run(self._on_bytes, data)

    def on_lost(self, connection: Connection) -> None:
        self._peers.run(self._end, False, "the connection was lost")

    def _on_connected(self) -> None:
        self._ready = True
        self.flush()

    def _on_bytes(self, data: bytes) -> None:
        try:
            for frame in self._reader.feed(data):
                if not self.waiting:
                    return  # given up in the meantime
                waiting = self.waiting[0]
                key, version = waiting.api_key, waiting.api_version
                correlation, position = read_response_header(frame, key, version)
                assert correlation == waiting.correlation, "replies come in order"
                message = decode_response(key, version, frame, position)
                self.waiting.popleft()
                self._peers.post(tuple.__new__(Replied, (waiting.token, message)))
        except PeerError as wrong:
            self._peers.network.close_from_caller(self._connection)
            self._end(False, str(wrong))

    def _time_out(self, correlation: int) -> None:
        if self.waiting and self.waiting[0].correlation <= correlation:
            self._peers.network.close_from_caller(self._connection)
            self._end(False, "time ran out")

    def _end(self, refused: bool, reason: str) -> None:
        self._ready = False
        if self._peers.lanes.get(self._key) is self:
            del self._peers.lanes[self._key]
        waiting, self.waiting = self.waiting, deque()
        for each in waiting:
            self._peers.post(CallFailed(each.token, refused, reason))


class _Kept:
    """A connection for its own sake: whether it stands is what matters."""

    __slots__ = ("_endpoint", "_node_id", "_peers", "connection", "wanted")

    def __init__(self, peers: Peers, node_id: NodeId, endpoint: Endpoint) -> None:
        self._peers = peers
        self._node_id = node_id
        self._endpoint = endpoint
        self.wanted = True
        self.connection: Connection | None = None
        self._connect()

    @property
    def endpoint(self) -> Endpoint:
        return self._endpoint

    def give_up(self) -> None:
        self.wanted = False
        if self.connection is not None:
            self._peers.network.close_from_caller(self.connection)
            self.connection = None

    def on_connected(self, connection: Connection) -> None:
        self._peers.run(self._tell, PeerConnected(self._node_id))

    def on_not_connected(self, connection: Connection, refused: bool) -> None:
        self._peers.run(self._ended, refused)

    def on_bytes(self, connection: Connection, data: bytes) -> None:
        raise AssertionError("nothing was asked on this connection")

    def on_lost(self, connection: Connection) -> None:
        self._peers.run(self._ended, False)

    def _tell(self, event: Event) -> None:
        if self.wanted:
            self._peers.post(event)

    def _ended(self, refused: bool) -> None:
        self.connection = None
        if self.wanted:
            self._peers.post(PeerLost(self._node_id, refused))
            delay = RECONNECT_MIN_US + self._peers.entropy.below(RECONNECT_SPREAD_US)
            self._peers.agenda.after(delay, self._peers.run, self._connect)

    def _connect(self) -> None:
        if self.wanted:
            address = (self._endpoint.host, self._endpoint.port)
            self.connection = self._peers.network.connect(self._peers.host, address, self)


class Peers:
    def __init__(
        self,
        network: Network,
        agenda: Agenda,
        entropy: Entropy,
        *,
        host: HostId,
        post: Callable[[Event], None],
        run: Callable[..., None],
    ) -> None:
        self.network = network
        self.agenda = agenda
        self.entropy = entropy
        self.host = host
        self.client_id = f"node-{host}"
        self.post = post
        self.run = run
        self.lanes: dict[LaneKey, _Lane] = {}
        self._kept: dict[NodeId, _Kept] = {}
        self._dirty: dict[_Lane, None] = {}

    def call(self, effect: Call) -> None:
        key = (effect.endpoint.host, effect.endpoint.port, effect.lane)
        lane = self.lanes.get(key)
        if lane is None:
            lane = self.lanes[key] = _Lane(self, key, effect.endpoint)
        lane.call(effect)
        self._dirty[lane] = None

    def keep_connected(self, effect: KeepConnected) -> None:
        wanted = dict(effect.peers)
        for node_id, kept in list(self._kept.items()):
            if wanted.get(node_id) != kept.endpoint:
                kept.give_up()
                del self._kept[node_id]
        for node_id, endpoint in wanted.items():
            if node_id not in self._kept:
                self._kept[node_id] = _Kept(self, node_id, endpoint)

    def flush(self) -> None:
        """The end of a turn."""
        if self._dirty:
            dirty, self._dirty = self._dirty, {}
            for lane in dirty:
                lane.flush()
