"""What happens when: simulated time, and everything that is due. Pure.

Time is whole microseconds since the world began. Things due at the same moment happen in the order
in which they were planned, so one seed gives one run.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, NewType

Micros = NewType("Micros", int)

MS = 1_000
SECOND = 1_000_000


class Agenda:
    """The world's clock and its plans."""

    __slots__ = ("_due", "_planned", "now")

    def __init__(self) -> None:
        self.now = Micros(0)
        self._due: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._planned = 0

    def after(self, delay_us: int, do: Callable[..., None], *args: Any) -> None:
        """Plans cannot be withdrawn: what may become pointless looks for itself."""
        self._planned += 1
        heappush(self._due, (self.now + delay_us, self._planned, do, args))

    def at(self, moment: int, do: Callable[..., None], *args: Any) -> None:
        self._planned += 1
        now = self.now
        heappush(self._due, (moment if moment > now else now, self._planned, do, args))

    def run_until(self, moment: int) -> None:
        """Carry out everything that is due up to then; it is then afterwards."""
        due = self._due
        while due and due[0][0] <= moment:
            self.now, _, do, args = heappop(due)  # type: ignore[assignment]
            do(*args)
        self.now = Micros(moment)

    @property
    def next_moment(self) -> int | None:
        """When something is due next."""
        return self._due[0][0] if self._due else None

    @property
    def idle(self) -> bool:
        return not self._due
