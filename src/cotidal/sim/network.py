"""The simulated network: hosts, connections, and what can happen to bytes on their way. Pure.

A connection is two streams of bytes. In a stream nothing is lost, doubled or overtaken, as in TCP;
across connections anything may overtake anything. What can happen:

  distance   hosts of different regions are milliseconds apart, each pair in its own way
  delay      each chunk takes the link's delay and some jitter, and never overtakes the one before
  blocked    a link (one direction between two hosts) passes nothing; what is sent waits and goes on
             when the link is open again, unless one end has given the connection up by then
  broken     the two ends learn of it separately, so one may go on sending into the void
  flaky      of the answers that a host sends, some are lost together with their connection: they
             were asked, and did what they were asked to, and whoever asked cannot know. If it asks
             again, the same request arrives twice: the only way in which TCP lets anything double
  refused    the host is up and nobody listens; a host without power does not answer at all
  reset      a killed process: its kernel tells every peer; a host without power tells nobody

An end gives a connection up when it has heard nothing for SILENCE while it had something to say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NewType, Protocol

from cotidal.core.machine import Entropy
from cotidal.sim.agenda import SECOND, Agenda
from cotidal.sim.sowing import sow

HostId = NewType("HostId", int)
Address = tuple[str, int]

CONNECT_TIMEOUT_US: Final = 3 * SECOND
SILENCE_MIN_US: Final = 1 * SECOND
SILENCE_SPREAD_US: Final = 20 * SECOND
ANSWERS_PER_LOSS: Final = 8
"""Of a flaky host's answers one in so many is lost, on average."""


class Caller(Protocol):
    """The end that asked for the connection."""

    def on_connected(self, connection: Connection) -> None: ...

    def on_not_connected(self, connection: Connection, refused: bool) -> None: ...

    def on_bytes(self, connection: Connection, data: bytes) -> None: ...

    def on_lost(self, connection: Connection) -> None: ...


class Listener(Protocol):
    """The end that accepted it."""

    def on_accepted(self, connection: Connection) -> None: ...

    def on_bytes(self, connection: Connection, data: bytes) -> None: ...

    def on_lost(self, connection: Connection) -> None: ...


class Link:
    """One direction between two hosts."""

    __slots__ = ("blocked", "delay_us", "entropy", "jitter_us", "stalled", "usual_us")

    def __init__(self, delay_us: int, jitter_us: int, entropy: Entropy) -> None:
        self.delay_us = delay_us
        self.usual_us = delay_us
        """The delay while no fault slows it down."""
        self.jitter_us = jitter_us
        self.entropy = entropy
        self.blocked = False
        self.stalled: list[tuple[Callable[..., None], tuple[object, ...]]] = []
        """What is to be tried again when the link opens."""


class Host:
    """A place on the network. A process that stops leaves; the host stays."""

    __slots__ = ("flaky", "id", "listeners", "powered")

    def __init__(self, id_: HostId) -> None:
        self.id = id_
        self.powered = True
        self.flaky: Entropy | None = None
        """Says which of its answers are lost, while some are."""
        self.listeners: dict[int, Listener] = {}


class _Side:
    """One end's half of a connection."""

    __slots__ = ("arrival", "end", "host", "link", "open")

    def __init__(self, host: Host, link: Link) -> None:
        self.host = host
        self.link = link
        """From here to the other side."""
        self.end: Caller | Listener | None = None
        self.open = False
        self.arrival = 0
        """When the last chunk sent from here arrives: the next one is not earlier."""


class Connection:
    __slots__ = ("accepted", "callee", "caller", "id", "port")

    def __init__(self, id_: int, caller: _Side, callee: _Side, port: int) -> None:
        self.id = id_
        self.caller = caller
        self.callee = callee
        self.port = port
        self.accepted = False

    @property
    def peer_name(self) -> str:
        """Of the caller, as the one who accepted sees it."""
        return f"host-{self.caller.host.id}"


class Network:
    def __init__(self, agenda: Agenda, seed: int) -> None:
        self._agenda = agenda
        self._seed = seed
        self._hosts: dict[HostId, Host] = {}
        self._names: dict[str, HostId] = {}
        self._links: dict[tuple[HostId, HostId], Link] = {}
        self._connections: dict[int, Connection] = {}
        self._last_id = 0
        self._disturbed: dict[HostId, int] = {}
        self._regions: dict[HostId, int] = {}
        self.region_us = 0
        """The longest way between two regions."""
        self.delay_us = 200
        self.jitter_us = 300

    # Places

    def add_host(self, id_: HostId, name: str) -> Host:
        host = self._hosts[id_] = Host(id_)
        self._names[name] = id_
        return host

    def link(self, source: HostId, target: HostId) -> Link:
        found = self._links.get((source, target))
        if found is None:
            entropy = sow(self._seed, "link", source, target)
            delay_us = self.delay_us + self._distance_us(source, target)
            found = self._links[source, target] = Link(delay_us, self.jitter_us, entropy)
        return found

    def settle(self, id_: HostId, region: int) -> None:
        """Where the host stands; whoever is settled nowhere is near everybody."""
        self._regions[id_] = region

    def _distance_us(self, source: HostId, target: HostId) -> int:
        one, other = self._regions.get(source), self._regions.get(target)
        if one is None or other is None or one == other:
            return 0
        pair = sow(self._seed, "distance", min(one, other), max(one, other))
        return self.region_us // 4 + pair.below(self.region_us * 3 // 4 + 1)

    def has_power(self, id_: HostId) -> bool:
        return self._hosts[id_].powered

    def disturb(self, *hosts: HostId) -> None:
        """Something was done to these hosts, or is over now: they may be late for a while."""
        for host in hosts:
            self._disturbed[host] = self._agenda.now

    def undisturbed_since(self, id_: HostId) -> int:
        """When something was last done to this host; now, while nothing passes on some link."""
        for pair, link in self._links.items():
            if link.blocked and id_ in pair:
                return self._agenda.now
        return self._disturbed.get(id_, 0)

    # What can be done to it: whoever does it brings the entropy that it takes

    def block(self, source: HostId, target: HostId, entropy: Entropy) -> None:
        """Nothing passes from source to target; connections over it may be given up in time."""
        link = self.link(source, target)
        if link.blocked:
            return
        link.blocked = True
        self.disturb(source, target)
        for connection in list(self._connections.values()):
            if link in (connection.caller.link, connection.callee.link) and entropy.below(2):
                silence = SILENCE_MIN_US + entropy.below(SILENCE_SPREAD_US)
                self._agenda.after(silence, self._fall_silent, connection, link)

    def unblock(self, source: HostId, target: HostId) -> None:
        link = self.link(source, target)
        if not link.blocked:
            return
        link.blocked = False
        self.disturb(source, target)
        stalled, link.stalled = link.stalled, []
        for again, args in stalled:
            again(*args)

    def make_flaky(self, id_: HostId, entropy: Entropy | None) -> None:
        """Answers of this host may be lost from now on; with None, none is any more."""
        self._hosts[id_].flaky = entropy

    def break_connection(self, connection: Connection, entropy: Entropy) -> None:
        """Something between the two gives it up; each end learns of it in its own time."""
        for side in (connection.caller, connection.callee):
            self._agenda.after(entropy.below(SECOND), self._lose, connection, side)

    @property
    def connections(self) -> list[Connection]:
        return list(self._connections.values())

    def process_died(self, id_: HostId) -> None:
        """Its kernel closes everything that it had open."""
        self._hosts[id_].listeners.clear()
        for connection, mine, other in self._of_host(id_):
            self._close_side(connection, mine)
            if other.open:
                self._carry(mine, other, self._lose, connection, other)

    def power_lost(self, id_: HostId, entropy: Entropy) -> None:
        """Nobody is told. Peers find out when the host answers again, or by the silence."""
        host = self._hosts[id_]
        host.listeners.clear()
        host.powered = False
        for connection, mine, other in self._of_host(id_):
            self._close_side(connection, mine)
            silence = SILENCE_MIN_US + entropy.below(SILENCE_SPREAD_US)
            self._agenda.after(silence, self._lose, connection, other)

    def power_back(self, id_: HostId) -> None:
        """Peers that still think they are connected are told that nobody knows them."""
        self._hosts[id_].powered = True
        for connection, mine, other in self._of_host(id_):
            if not mine.open:
                self._carry(mine, other, self._lose, connection, other)

    # Connections

    def listen(self, id_: HostId, port: int, listener: Listener) -> None:
        self._hosts[id_].listeners[port] = listener

    def connect(self, source: HostId, address: Address, caller: Caller) -> Connection:
        name, port = address
        target = self._hosts[self._names[name]]
        host = self._hosts[source]
        self._last_id += 1
        connection = Connection(
            self._last_id,
            _Side(host, self.link(host.id, target.id)),
            _Side(target, self.link(target.id, host.id)),
            port,
        )
        connection.caller.end = caller
        connection.caller.open = True
        self._connections[connection.id] = connection
        self._carry(connection.caller, connection.callee, self._arrive, connection)
        self._agenda.after(CONNECT_TIMEOUT_US, self._give_up_connecting, connection)
        return connection

    def send_from_caller(self, connection: Connection, data: bytes) -> None:
        self._send(connection, connection.caller, connection.callee, data)

    def send_from_callee(self, connection: Connection, data: bytes) -> None:
        self._send(connection, connection.callee, connection.caller, data)

    def close_from_caller(self, connection: Connection) -> None:
        self._close(connection, connection.caller, connection.callee)

    def close_from_callee(self, connection: Connection) -> None:
        self._close(connection, connection.callee, connection.caller)

    # How it gets there

    def _carry(
        self, source: _Side, target: _Side, deliver: Callable[..., None], *args: object
    ) -> None:
        """Take something over the link, behind what went before it."""
        link = source.link
        if link.blocked:
            link.stalled.append((self._carry, (source, target, deliver, *args)))
            return
        jitter = link.jitter_us
        delay = link.delay_us + (link.entropy.next_u64() % jitter if jitter else 0)
        arrival = self._agenda.now + delay
        if arrival < source.arrival:
            arrival = source.arrival
        source.arrival = arrival
        self._agenda.at(arrival, self._land, link, deliver, args)

    def _land(self, link: Link, deliver: Callable[..., None], args: tuple[object, ...]) -> None:
        if link.blocked:  # it was on its way when the link failed, and is sent once more
            link.stalled.append((deliver, args))
        else:
            deliver(*args)

    def _send(self, connection: Connection, source: _Side, target: _Side, data: bytes) -> None:
        if source.open:
            self._carry(source, target, self._deliver, connection, source, target, data)

    def _deliver(self, connection: Connection, source: _Side, target: _Side, data: bytes) -> None:
        if target.open and target.end is not None:
            flaky = source.host.flaky if source is connection.callee else None
            if flaky is not None and flaky.below(ANSWERS_PER_LOSS) == 0:
                self._lose(connection, target)
            else:
                target.end.on_bytes(connection, data)
        elif source.open and target.host.powered:  # bytes for a connection that nobody knows
            self._carry(target, source, self._lose, connection, source)

    def _arrive(self, connection: Connection) -> None:
        """A connection request reaches the host that is called."""
        callee = connection.callee
        if not connection.caller.open or not callee.host.powered:
            return
        listener = callee.host.listeners.get(connection.port)
        if listener is None:
            self._carry(callee, connection.caller, self._refuse, connection)
            return
        callee.end = listener
        callee.open = True
        listener.on_accepted(connection)
        self._carry(callee, connection.caller, self._establish, connection)

    def _establish(self, connection: Connection) -> None:
        caller = connection.caller
        if caller.open and not connection.accepted:
            connection.accepted = True
            assert caller.end is not None
            caller.end.on_connected(connection)  # type: ignore[union-attr]

    def _refuse(self, connection: Connection) -> None:
        self._not_connected(connection, refused=True)

    def _give_up_connecting(self, connection: Connection) -> None:
        if not connection.accepted:
            self._not_connected(connection, refused=False)

    def _not_connected(self, connection: Connection, *, refused: bool) -> None:
        caller = connection.caller
        if caller.open and not connection.accepted:
            end = caller.end
            self._close_side(connection, caller)
            if connection.callee.open:
                self._carry(caller, connection.callee, self._lose, connection, connection.callee)
            end.on_not_connected(connection, refused)  # type: ignore[union-attr]

    # How it ends

    def _close(self, connection: Connection, mine: _Side, other: _Side) -> None:
        if mine.open:
            self._close_side(connection, mine)
            self._carry(mine, other, self._lose, connection, other)

    def _fall_silent(self, connection: Connection, link: Link) -> None:
        """The side that sends into a blocked link hears no acknowledgement and gives up."""
        if link.blocked:
            for side in (connection.caller, connection.callee):
                if side.link is link:
                    self._lose(connection, side)

    def _lose(self, connection: Connection, side: _Side) -> None:
        if side.open:
            end = side.end
            was_accepted = connection.accepted or side is connection.callee
            self._close_side(connection, side)
            other = connection.callee if side is connection.caller else connection.caller
            if other.open and other.host.powered:
                self._carry(side, other, self._lose, connection, other)
            assert end is not None
            if was_accepted:
                end.on_lost(connection)
            else:
                end.on_not_connected(connection, False)  # type: ignore[union-attr]

    def _close_side(self, connection: Connection, side: _Side) -> None:
        side.open = False
        side.end = None
        if not connection.caller.open and not connection.callee.open:
            self._connections.pop(connection.id, None)

    def _of_host(self, id_: HostId) -> list[tuple[Connection, _Side, _Side]]:
        """Its connections, with its own side first; both are its own when it talks to itself."""
        found = []
        for connection in list(self._connections.values()):
            caller, callee = connection.caller, connection.callee
            if caller.host.id == callee.host.id == id_:
                self._close_side(connection, caller)
                self._close_side(connection, callee)
            elif caller.host.id == id_:
                found.append((connection, caller, callee))
            elif callee.host.id == id_:
                found.append((connection, callee, caller))
        return found
