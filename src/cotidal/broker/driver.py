"""Turns: events into the node, its effects into the world, in order.

A turn takes every event that has come since the last one, steps the node with each, and obeys what
it asks for. What is answered at once (an append to the page cache, a read from it) goes back into
the same turn through the same queue, so a small produce request is read, appended and answered in
one turn. At the end of a turn each connection that has replies is written to once. In the turn of a
lone request that is after each of its steps: there is nothing to write together, and who has his
answer works while the next one is made (of two followers, the first writes to its disk meanwhile).

    post -> [events] -> node.step -> effects -> obey[type(effect)]
               ^------ Appended, ReadDone ------'        ... -> flush -> timer

A fault (an exception out of the node or out of obeying it) stops the node: it is told once, with
the events that led to it. Nothing here decides anything about the protocol.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from cotidal.broker.counters import Counters
from cotidal.broker.journal import Journal
from cotidal.core.machine import ProtocolMachine
from cotidal.limits import FAULT_EVENTS_TOLD
from cotidal.node.effects import Effect, MeterTime
from cotidal.node.events import Event, PeerConnected, PeerLost, Received, Ticked, TimeSpent
from cotidal.values import Millis, WallMillis

Obey = Callable[[object], None]

NEWS: Final = frozenset((PeerConnected, PeerLost))
"""Stepped before everything else of a turn. When a process dies, its peers and its clients learn it
in the same moment; a client that asks where to go now must not be answered before we know."""

SOON_MS: Final = 50
"""A timer is put off only this short before it rings: seldom, where deadlines move all the time."""

Machine: TypeAlias = "ProtocolMachine[Event, Effect]"
"""What a driver needs to know of a node."""


def now_millis() -> Millis:
    return Millis(time.monotonic_ns() // 1_000_000)


def wall_millis() -> WallMillis:
    return WallMillis(time.time_ns() // 1_000_000)


class Driver:
    """Drives one node on one event loop."""

    __slots__ = (
        "_armed_for",
        "_counters",
        "_events",
        "_first_post",
        "_flushes",
        "_journal",
        "_loop",
        "_meters",
        "_news",
        "_node",
        "_obey",
        "_on_fault",
        "_recent",
        "_scheduled",
        "_stopped",
        "_timer",
    )

    def __init__(
        self,
        node: Machine,
        loop: asyncio.AbstractEventLoop,
        *,
        journal: Journal,
        counters: Counters,
        on_fault: Callable[[], None],
    ) -> None:
        self._node = node
        self._loop = loop
        self._journal = journal
        self._counters = counters
        self._on_fault = on_fault
        self._obey: Mapping[type, Obey] = {}
        self._flushes: tuple[Callable[[], None], ...] = ()
        self._events: deque[Event] = deque()
        self._news: deque[Event] = deque()
        self._recent: deque[tuple[str, object]] = deque(maxlen=FAULT_EVENTS_TOLD)
        self._meters = False
        self._scheduled = False
        self._stopped = False
        self._first_post = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._armed_for: Millis | None = None

    def obey_with(self, obey: Mapping[type, Obey], *flushes: Callable[[], None]) -> None:
        """Who obeys which effect, and what ends a turn. Called once, before the first event."""
        self._obey = obey
        self._flushes = flushes

    def post(self, event: Event) -> None:
        """Something happened. It is stepped in this turn, or in one that begins right away."""
        (self._news if event.__class__ in NEWS else self._events).append(event)
        if not self._scheduled:
            self._scheduled = True
            self._first_post = time.perf_counter()
            self._loop.call_soon(self._turn)

    def meter_time(self, effect: MeterTime) -> None:
        """A quota asks how much of this loop's time each connection takes, or none does so now."""
        self._meters = effect.on

    def drive(self, node: Machine) -> None:
        """From the next turn on: the same node, or it with somebody who watches."""
        self._node = node

    def stop(self) -> None:
        """No more turns."""
        self._stopped = True
        self._events.clear()
        self._news.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _turn(self) -> None:
        if self._stopped:
            return
        events = self._events
        news = self._news
        node_step = self._node.step
        obey = self._obey
        flushes = self._flushes
        recent = self._recent
        requests = 0
        now = now_millis()
        event: Event | None = None
        effect: Effect | None = None
        try:
            while events or news:
                event = news.popleft() if news else events.popleft()
                effect = None
                recent.append((event.__class__.__name__, event[:1]))
                if event.__class__ is Received:
                    requests += len(event[1])
                begun = time.perf_counter() if self._meters else 0.0
                for effect in node_step(event, now):
                    obey[effect.__class__](effect)
                if begun and event.__class__ is Received:
                    micros = int((time.perf_counter() - begun) * 1_000_000)
                    events.append(TimeSpent(event[0], micros))
                if requests == 1 and events:
                    for flush in flushes:
                        flush()
            event = effect = None
            for flush in flushes:
                flush()
            self._scheduled = False
            self._arm(now)
        except Exception as error:
            self.fault(error, event, effect)
            return
        counters = self._counters
        counters.turns += 1
        took = time.perf_counter() - self._first_post
        counters.loop_lag.add(took)
        if requests:
            counters.latency.add(took, requests)

    def _arm(self, now: Millis) -> None:
        """Have the timer ring at the node's next deadline, or earlier: that is harmless. If it were
        to ring for nothing soon, it is put off now: that costs less than to wake."""
        deadline = self._node.next_deadline()
        if deadline is None:
            return
        armed = self._armed_for
        if armed is not None:
            if armed == deadline or (armed < deadline and armed - now > SOON_MS):
                return
            assert self._timer is not None
            self._timer.cancel()
        self._armed_for = deadline
        self._timer = self._loop.call_later(max(0, deadline - now) / 1000, self._ring)

    def _ring(self) -> None:
        due = self._armed_for
        self._armed_for = self._timer = None
        if self._stopped or due is None:
            return
        now = now_millis()
        deadline = self._node.next_deadline()
        if deadline is not None and deadline <= now:
            self._counters.loop_lag.add((now - due) / 1000 if due < now else 0.0)
            self.post(Ticked(wall_millis()))
        else:
            self._arm(now)

    def fault(
        self, error: Exception, event: Event | None = None, effect: Effect | None = None
    ) -> None:
        """Our own broken promise. Say all that helps to understand it, then stop."""
        if self._stopped:
            return
        self.stop()
        trail = ", ".join(f"{name}{about!r}" for name, about in self._recent)
        self._journal.error(
            "".join(traceback.format_exception(error)).rstrip()
            + (f"\nwhile handling {_short(event)}" if event is not None else "")
            + (f"\nwhile obeying {_short(effect)}" if effect is not None else "")
            + f"\nafter {trail}"
        )
        self._journal.error(
            f"fault: {error.__class__.__name__}: {error}; this node stops, nothing that it"
            " acknowledged is affected; please report the lines above"
        )
        self._on_fault()


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 2000 else text[:2000] + "..."
