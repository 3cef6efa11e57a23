"""A machine's clocks, as wrong as real ones. Pure.

The monotonic clock begins at some number of its own and runs a little fast or slow; the wall clock
is off by some constant, which a fault may change at any time. Both are whole milliseconds.
"""

from __future__ import annotations

from typing import Final

from cotidal.values import Millis, WallMillis

WALL_START: Final = 1_700_000_000_000
MILLION: Final = 1_000_000


class Clock:
    """``drift_ppm``: how many microseconds it gains in a second."""

    __slots__ = ("_boot_us", "_rate", "wall_skew_ms")

    def __init__(self, *, boot_us: int = 0, drift_ppm: int = 0, wall_skew_ms: int = 0) -> None:
        self._boot_us = boot_us
        self._rate = MILLION + drift_ppm
        self.wall_skew_ms = wall_skew_ms

    def monotonic(self, now_us: int) -> Millis:
        return Millis((self._boot_us + now_us * self._rate // MILLION) // 1000)

    def moment_of(self, monotonic: Millis) -> int:
        """The first microsecond of the world at which ``monotonic`` has come."""
        wanted = monotonic * 1000 - self._boot_us
        return -(-wanted * MILLION // self._rate)

    def wall(self, now_us: int) -> WallMillis:
        return WallMillis(WALL_START + now_us // 1000 + self.wall_skew_ms)
