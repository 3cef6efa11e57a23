"""Timers by key, of which almost all are put off before they run out. Pure.

A member's session is put off with every heartbeat: that costs one entry of a dictionary. The heap
holds one entry for each key, perhaps too early; when that comes up, it goes back in for later.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

from cotidal.values import Millis

KeyT = TypeVar("KeyT", bound=Hashable)


class Timers(Generic[KeyT]):
    __slots__ = ("_armed", "_due", "_heap", "_sequence")

    def __init__(self) -> None:
        self._due: dict[KeyT, Millis] = {}
        self._armed: dict[KeyT, Millis] = {}
        """The entry of the heap that counts for each key: never later than it is due."""
        self._heap: list[tuple[Millis, int, KeyT]] = []
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._due)

    def set(self, key: KeyT, deadline: Millis) -> None:
        self._due[key] = deadline
        armed = self._armed.get(key)
        if armed is None or deadline < armed:
            self._arm(key, deadline)

    def is_set(self, key: KeyT) -> bool:
        return key in self._due

    def cancel(self, key: KeyT) -> None:
        self._due.pop(key, None)

    def take(self, now: Millis) -> KeyT | None:
        """One that has run out, which is then no more; None when there is none."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            at, _, key = heapq.heappop(heap)
            if self._armed.get(key) != at:
                continue  # it was brought forward since: another entry counts
            del self._armed[key]
            due = self._due.get(key)
            if due is None:
                continue
            if due > now:
                self._arm(key, due)
                continue
            del self._due[key]
            return key
        return None

    def next_deadline(self) -> Millis | None:
        """Perhaps too early: then nothing has run out, and the next one is later."""
        return self._heap[0][0] if self._heap else None

    def _arm(self, key: KeyT, deadline: Millis) -> None:
        self._armed[key] = deadline
        self._sequence += 1
        heapq.heappush(self._heap, (deadline, self._sequence, key))
