"""How fast bytes go by, as Kafka's quotas measure it, and a bound on it. Pure.

Samples of one window each are kept for so many windows. The rate is what they hold, over the time
since the oldest of them began; over one window at least, so that a single batch is not taken for a
flood. Whole numbers only: the same on every Python.
"""

from __future__ import annotations

from collections import deque

from cotidal.values import Millis


class Rate:
    __slots__ = ("_samples", "_total", "_window_ms", "_windows")

    def __init__(self, *, windows: int = 11, window_ms: int = 1_000) -> None:
        self._windows = windows
        self._window_ms = window_ms
        self._samples: deque[tuple[Millis, int]] = deque()
        """When each began, and what it holds; the oldest first."""
        self._total = 0

    def record(self, amount: int, now: Millis) -> None:
        self._forget(now)
        self._total += amount
        samples = self._samples
        if samples and now - samples[-1][0] < self._window_ms:
            began, held = samples[-1]
            samples[-1] = (began, held + amount)
        else:
            samples.append((now, amount))

    def per_second(self, now: Millis) -> int:
        self._forget(now)
        return self._total * 1_000 // self._covered(now) if self._samples else 0

    def exceeds(self, bound: int, now: Millis) -> bool:
        """Is it more than ``bound`` a second?"""
        self._forget(now)
        return self._total * 1_000 > bound * self._covered(now)

    def within_at(self, bound: int, now: Millis) -> Millis:
        """When it is worth asking ``exceeds`` again, if nothing is recorded until then."""
        self._forget(now)
        if not self._samples:
            return now
        began = self._samples[0][0]
        forgotten = began + self._windows * self._window_ms
        diluted = began - (-self._total * 1_000 // bound) if bound else forgotten
        return Millis(max(now + 1, min(forgotten, diluted)))

    def _covered(self, now: Millis) -> int:
        began = self._samples[0][0] if self._samples else now
        return max(now - began, self._window_ms)

    def _forget(self, now: Millis) -> None:
        samples = self._samples
        oldest = now - self._windows * self._window_ms
        while samples and samples[0][0] <= oldest:
            self._total -= samples.popleft()[1]


class Throttle:
    """A rate, and how much it may be."""

    __slots__ = ("bound", "held_back", "rate")

    def __init__(self, *, bound: int, windows: int, window_ms: int) -> None:
        self.bound = bound
        """Bytes a second."""
        self.held_back = 0
        """How often somebody had to wait."""
        self.rate = Rate(windows=windows, window_ms=window_ms)

    def is_exceeded(self, now: Millis) -> bool:
        return self.rate.exceeds(self.bound, now)

    def within_at(self, now: Millis) -> Millis:
        return self.rate.within_at(self.bound, now)
