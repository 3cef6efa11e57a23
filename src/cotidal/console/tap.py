"""A simulated network that shows what travels. Pure.

Every chunk of bytes between two hosts is a *flight*: from whom to whom, when it left, when it
arrives. What it says is decoded when somebody asks. A flight that is marked as lost ends its
connection where it would have arrived: a stream loses nothing but itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from cotidal.core.machine import Entropy
from cotidal.core.trace.cluster import Names
from cotidal.errors import PeerError
from cotidal.limits import RESPONSE_BYTES_MAX
from cotidal.messages.rpc.apis import APIS
from cotidal.node.gist import gist
from cotidal.sim.agenda import Agenda
from cotidal.sim.network import Connection, HostId, Link, Network, _Side
from cotidal.sim.world import World
from cotidal.wire.codec import decode_request, decode_response
from cotidal.wire.frames import FrameReader, read_request_header, read_response_header

STALLED: Final = -1
"""When something arrives that a cut link holds back."""
LANDED_KEPT: Final = 200
"""Flights that can still be looked at after they have arrived."""


class Said(NamedTuple):
    """What one frame of a flight says."""

    api: str
    is_answer: bool
    gist: str


class Flight:
    __slots__ = ("answers", "arrives_us", "connection", "data", "from_caller", "number", "sent_us",
                 "source", "target")  # fmt: skip

    def __init__(self, number: int, connection: Connection, source: _Side, target: _Side) -> None:
        self.number = number
        self.connection = connection
        self.from_caller = source is connection.caller
        self.source: HostId = source.host.id
        self.target: HostId = target.host.id
        self.data = b""
        self.answers: dict[int, tuple[int, int]] = {}
        """Of answers: correlation -> API key and version of what was asked."""
        self.sent_us = 0
        self.arrives_us = STALLED


class TappedNetwork(Network):
    def __init__(self, agenda: Agenda, seed: int) -> None:
        super().__init__(agenda, seed)
        self.flights: dict[int, Flight] = {}
        """Under way, in the order in which they left."""
        self.landed: dict[int, Flight] = {}
        self._by_args: dict[tuple[int, bool, int], Flight] = {}
        self._numbered = 0
        self._doomed: dict[int, None] = {}
        self._asked: dict[tuple[int, int], tuple[int, int]] = {}
        """(Connection, correlation) -> API key and version of a request."""

    def doom(self, number: int) -> bool:
        """This flight never arrives, and its connection ends; False if it has arrived."""
        if number not in self.flights:
            return False
        self._doomed[number] = None
        return True

    def said(self, flight: Flight, names: Names) -> list[Said]:
        return [
            self._said(flight, frame, names)
            for frame in FrameReader(RESPONSE_BYTES_MAX).feed(flight.data)
        ]

    def api(self, flight: Flight) -> str:
        """What its first frame is about."""
        for frame in FrameReader(RESPONSE_BYTES_MAX).feed(flight.data):
            if flight.from_caller:
                return _name(read_request_header(frame).api_key)
            known = flight.answers.get(_correlation(frame))
            return "" if known is None else _name(known[0])
        return ""

    # What the network does, seen

    def _carry(
        self, source: _Side, target: _Side, deliver: Callable[..., None], *args: object
    ) -> None:
        super()._carry(source, target, deliver, *args)
        if deliver == self._deliver:
            self._take_off(source, target, *args)

    def _take_off(self, source: _Side, target: _Side, *args: Any) -> None:
        connection, data = args[0], args[3]
        key = (connection.id, source is connection.caller, id(data))
        flight = self._by_args.get(key)
        if flight is None:
            self._numbered += 1
            flight = Flight(self._numbered, connection, source, target)
            flight.data = data
            flight.sent_us = self._agenda.now
            self._by_args[key] = flight
            self.flights[flight.number] = flight
            self._pair(flight)
        flight.arrives_us = STALLED if source.link.blocked else source.arrival

    def _land(self, link: Any, deliver: Callable[..., None], args: tuple[Any, ...]) -> None:
        if link.blocked and deliver == self._deliver:
            connection, source, _, data = args
            flight = self._by_args.get((connection.id, source is connection.caller, id(data)))
            if flight is not None:
                flight.arrives_us = STALLED
        super()._land(link, deliver, args)

    def _deliver(self, connection: Connection, source: _Side, target: _Side, data: bytes) -> None:
        key = (connection.id, source is connection.caller, id(data))
        flight = self._by_args.pop(key, None)
        if flight is not None:
            del self.flights[flight.number]
            self.landed[flight.number] = flight
            if len(self.landed) > LANDED_KEPT:
                del self.landed[next(iter(self.landed))]
            if self._doomed.pop(flight.number, self) is None:
                self._lose(connection, target)
                return
        super()._deliver(connection, source, target, data)

    def _close_side(self, connection: Connection, side: _Side) -> None:
        super()._close_side(connection, side)
        if not connection.caller.open and not connection.callee.open:
            for key in [key for key in self._by_args if key[0] == connection.id]:
                self.flights.pop(self._by_args.pop(key).number, None)
            for place in [place for place in self._asked if place[0] == connection.id]:
                del self._asked[place]

    def undisturbed_since(self, id_: HostId) -> int:
        """A host whose links are slow may be late for as long as they are."""
        if any(link.delay_us > link.usual_us for pair, link in self._links.items() if id_ in pair):
            return self._agenda.now
        return super().undisturbed_since(id_)

    def known_link(self, source: HostId, target: HostId) -> Link | None:
        """Without making one where nothing was ever sent."""
        return self._links.get((source, target))

    def slow(self, one: HostId, other: HostId, by_us: int) -> None:
        """Each way takes so much longer than usual."""
        for link in (self.link(one, other), self.link(other, one)):
            link.delay_us = link.usual_us + by_us
        self.disturb(one, other)

    def cut(self, one: HostId, other: HostId, entropy: Entropy) -> None:
        """Both ways; what is on its way waits at the cut."""
        self.block(one, other, entropy)
        self.block(other, one, entropy)

    # What it says

    def _pair(self, flight: Flight) -> None:
        """An answer does not say what it answers: that is remembered from the request."""
        connection = flight.connection.id
        for frame in FrameReader(RESPONSE_BYTES_MAX).feed(flight.data):
            if flight.from_caller:
                header = read_request_header(frame)
                asked = (header.api_key, header.api_version)
                self._asked[connection, header.correlation_id] = asked
            else:
                correlation = _correlation(frame)
                known = self._asked.pop((connection, correlation), None)
                if known is not None:
                    flight.answers[correlation] = known

    def _said(self, flight: Flight, frame: Any, names: Names) -> Said:
        try:
            if flight.from_caller:
                header = read_request_header(frame)
                key, version = header.api_key, header.api_version
                message = decode_request(key, version, frame, header.body_position)
                return Said(_name(key), False, gist(message, names))
            key, version = flight.answers[_correlation(frame)]
            _, position = read_response_header(frame, key, version)
            answer = decode_response(key, version, frame, position)
            return Said(_name(key), True, gist(answer, names))
        except (PeerError, KeyError):
            return Said("", not flight.from_caller, "bytes that cannot be read")


class SeenWorld(World):
    """A world whose network shows what travels."""

    network_class = TappedNetwork
    network: TappedNetwork


def _correlation(frame: Any) -> int:
    return int.from_bytes(frame[:4], "big", signed=True)


def _name(key: int) -> str:
    known = APIS.get(key)
    return known.name if known else str(key)
