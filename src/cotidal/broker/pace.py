"""How fast work that can wait may go: copies of logs (moving.py), compactions (cleaner.py)."""

from __future__ import annotations

import os
import time
from typing import Final

WORK_S: Final = 0.0003
"""After so much of it comes a rest: the longest that the event loop waits for us each time that it
wants the interpreter, which is several times a request."""
REST_RATIO: Final = 2
"""A rest is so many times as long as the work before it."""
NAP_S: Final = 0.1
"""Longest sleep of one that keeps to a speed, so that a stop need not wait."""


class Stopped(Exception):
    """The node stops, and the work with it."""


class Pace:
    """Used by the thread that works; ``stop`` from any."""

    __slots__ = (
        "_owed_bytes",
        "_rests",
        "_seen",
        "_stopped",
        "_worked",
        "bytes_per_second",
        "done_bytes",
    )

    def __init__(self, bytes_per_second: float, *, rests: bool = True) -> None:
        """``rests``: it shares the interpreter with an event loop, which gets it in between. Else
        it shares no more than a core with others, and offers it to them: a kernel may take it from
        one who only computes at its next tick, as late as 4 ms after somebody wanted it."""
        self.bytes_per_second = bytes_per_second
        """May be changed by any thread, and holds at once."""
        self._rests = rests
        self._owed_bytes = 0.0
        """Done too early for this speed. What was done too late is not made up for."""
        self._seen = time.perf_counter()
        """Since then, time pays for them."""
        self._worked: float | None = None
        """What the thread had used of its core when it last rested: to wait for one is no work."""
        self._stopped = False
        self.done_bytes = 0

    def stop(self) -> None:
        self._stopped = True

    def breathe(self, size_bytes: int) -> None:
        self.done_bytes += size_bytes
        if self._rests:
            self._rest()
        else:
            os.sched_yield()
        self._owed_bytes += size_bytes
        while (owed_s := self._pay()) and not self._stopped:
            time.sleep(min(NAP_S, owed_s))
        if self._stopped:
            raise Stopped

    def _rest(self) -> None:
        used = time.thread_time()
        if self._worked is None:
            self._worked = used  # whoever made us may be another thread
        elif used - self._worked >= WORK_S:
            time.sleep(min((used - self._worked) * REST_RATIO, NAP_S))
            self._worked = time.thread_time()

    def _pay(self) -> float:
        """How long it takes until nothing is owed."""
        speed, now = max(1.0, self.bytes_per_second), time.perf_counter()
        self._owed_bytes = max(0.0, self._owed_bytes - (now - self._seen) * speed)
        self._seen = now
        return self._owed_bytes / speed
