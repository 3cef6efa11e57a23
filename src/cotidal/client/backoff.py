"""Waiting before another attempt, within a deadline."""

from __future__ import annotations

import time
from typing import Final

FIRST_WAIT_S: Final = 0.05
LONGEST_WAIT_S: Final = 1.0
"""Kafka's clients wait 0.1 s doubling to 1 s; a local cluster elects a leader faster than that."""


class Backoff:
    """Doubling waits until a deadline; ``wait`` says whether there is time for another try."""

    __slots__ = ("_next_s", "deadline")

    def __init__(self, *, timeout_s: float) -> None:
        self.deadline = time.monotonic() + timeout_s
        self._next_s = FIRST_WAIT_S

    def wait(self) -> bool:
        remaining = self.remaining_s()
        if remaining <= 0:
            return False
        time.sleep(min(self._next_s, remaining))
        self._next_s = min(2 * self._next_s, LONGEST_WAIT_S)
        return True

    def remaining_s(self) -> float:
        return self.deadline - time.monotonic()

    def reset(self) -> None:
        """Something went well: the next failure begins with short waits again."""
        self._next_s = FIRST_WAIT_S
