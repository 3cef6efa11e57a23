"""What counts for a client's quotas. Pure. Who shares a meter, and what follows: quotas.py.

A meter is a bucket into which ``bound`` units flow each second, until it is full.
Whoever takes from it gets what he asks for and owes what is missing; the wait is the time in which
it flows in again. So a pause is paid back by a burst, of one bucket at most, and in the long run
nobody gets more than the bound. (Kafka does it so for mutations only. For bytes it sums samples: as
each is forgotten as a whole, a client gets up to a window in ten more.) Whole numbers only.
"""

from __future__ import annotations

from typing import NamedTuple

from cotidal.limits import THROTTLE_MS_MAX
from cotidal.values import Millis


class Meter:
    __slots__ = ("_at", "_full_ms", "_left", "bound")

    def __init__(self, *, full_ms: int, bound: int, now: Millis) -> None:
        """``full_ms``: how long it takes to fill the bucket."""
        self.bound = bound
        """Units a second; at least one."""
        self._full_ms = full_ms
        self._left = bound * full_ms
        """In thousandths of a unit; what is owed is negative."""
        self._at = now

    @property
    def full(self) -> int:
        """The most that can be had at once, in units."""
        return max(1, self.bound * self._full_ms // 1_000)

    def take(self, amount: int, now: Millis) -> int:
        """Milliseconds to wait, now that so much more was taken."""
        self._fill(now)
        self._left -= amount * 1_000
        return self.wait(now)

    def wait(self, now: Millis) -> int:
        self._fill(now)
        return min(max(0, -(self._left // self.bound)), THROTTLE_MS_MAX)

    def rebound(self, bound: int, now: Millis) -> None:
        """What is owed is still owed, in units."""
        self._fill(now)
        self.bound = bound
        self._fill(now)

    def is_full(self, now: Millis) -> bool:
        self._fill(now)
        return self._left == self.bound * self._full_ms

    def _fill(self, now: Millis) -> None:
        flowed = (now - self._at) * self.bound
        self._left = min(self.bound * self._full_ms, self._left + flowed)
        self._at = now


class Metering(NamedTuple):
    """The meters that count for a connection, while its client id and the quotas stay."""

    generation: int
    client_id: str | None
    produced: Meter | None = None
    fetched: Meter | None = None
    time: Meter | None = None
    mutations: Meter | None = None
