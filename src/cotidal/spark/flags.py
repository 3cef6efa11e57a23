"""What deserves a flag: replicas that leave the ISR again and again, uneven leaders. Pure.

Two machines, whose state a stream keeps between its micro-batches (``as_text``, ``from_text``):

  Departures    of one partition. Three departures of a replica within five minutes raise its flag;
                when five minutes have passed without three, it is lowered.
  Leaderships   of all brokers. One that leads half as much again as the average raises its flag. A
                broker that has said nothing for half a minute is left out.

A flag is told when it is raised and when it is lowered, not in between. The same event again
changes nothing, so what is told twice is flagged once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

FLAPS: Final = 3
FLAPPING_WITHIN_MS: Final = 5 * 60 * 1000
UNEVEN: Final = 1.5
"""A broker that leads so many times its share leads too much."""
SILENT_MS: Final = 30_000

FLAPPING: Final = "flapping"
UNEVEN_LEADER: Final = "uneven"


class Flag(NamedTuple):
    kind: str
    time: int
    """Of the event that showed it, in milliseconds since 1970."""
    broker: int
    """The replica that flaps, or the broker that leads."""
    number: int
    """How often it has left within the time, or how many it leads."""
    share: float | None
    """What each would lead if all led the same."""
    raised: bool


class Departures:
    """``left`` and ``passed`` are told times that do not go back by more than events come late."""

    __slots__ = ("_raised", "_times")

    def __init__(self) -> None:
        self._times: dict[int, set[int]] = {}
        """Of each replica: when it left, within FLAPPING_WITHIN_MS."""
        self._raised: set[int] = set()

    def left(self, time: int, replicas: Iterable[int]) -> Iterator[Flag]:
        yield from self.passed(time)
        for replica in replicas:
            times = self._times.setdefault(replica, set())
            times.add(time)
            if len(times) >= FLAPS and replica not in self._raised:
                self._raised.add(replica)
                yield Flag(FLAPPING, time, replica, len(times), None, True)

    def passed(self, time: int) -> Iterator[Flag]:
        """It is this late now: older departures count no more."""
        for replica, times in list(self._times.items()):
            times -= {each for each in times if each <= time - FLAPPING_WITHIN_MS}
            if replica in self._raised and len(times) < FLAPS:
                self._raised.remove(replica)
                yield Flag(FLAPPING, time, replica, len(times), None, False)
            if not times:
                del self._times[replica]

    def due(self) -> int | None:
        """When the next departure stops counting."""
        oldest = min((min(times) for times in self._times.values()), default=None)
        return None if oldest is None else oldest + FLAPPING_WITHIN_MS

    def as_text(self) -> str:
        times = [(replica, sorted(each)) for replica, each in self._times.items()]
        return json.dumps([times, sorted(self._raised)])

    @classmethod
    def from_text(cls, text: str) -> Departures:
        found = cls()
        times, raised = json.loads(text)
        found._times = {replica: set(each) for replica, each in times}
        found._raised = set(raised)
        return found


class Leaderships:
    __slots__ = ("_leads", "_raised")

    def __init__(self) -> None:
        self._leads: dict[int, tuple[int, int]] = {}
        """Of each broker: when it last said how many it leads, and how many."""
        self._raised: set[int] = set()

    def told(self, time: int, broker: int, leads: int) -> None:
        self._leads[broker] = max(self._leads.get(broker, (0, 0)), (time, leads))

    def judged(self) -> Iterator[Flag]:
        """As of the last that was told."""
        now = max((time for time, _ in self._leads.values()), default=0)
        for broker, (time, _) in list(self._leads.items()):
            if time < now - SILENT_MS:
                del self._leads[broker]
        share = sum(leads for _, leads in self._leads.values()) / max(1, len(self._leads))
        for broker in sorted(self._leads.keys() | self._raised):
            _, leads = self._leads.get(broker, (0, 0))
            is_uneven = leads > 1 and leads >= UNEVEN * share
            if is_uneven and broker not in self._raised:
                self._raised.add(broker)
                yield Flag(UNEVEN_LEADER, now, broker, leads, share, True)
            elif not is_uneven and broker in self._raised:
                self._raised.remove(broker)
                yield Flag(UNEVEN_LEADER, now, broker, leads, share, False)

    def as_text(self) -> str:
        return json.dumps([list(self._leads.items()), sorted(self._raised)])

    @classmethod
    def from_text(cls, text: str) -> Leaderships:
        found = cls()
        leads, raised = json.loads(text)
        found._leads = {broker: (time, count) for broker, (time, count) in leads}
        found._raised = set(raised)
        return found
