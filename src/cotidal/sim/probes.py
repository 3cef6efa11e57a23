"""Rare situations that must be seen: what a campaign has met, and what it never did.

A test that never gets into a corner proves nothing about it. Whoever meets one says so here; the
campaign adds the counts up and names what its plan promised and no run has seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class Probes:
    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def see(self, situation: str) -> None:
        self._seen[situation] = self._seen.get(situation, 0) + 1

    def add(self, seen: Mapping[str, int]) -> None:
        for situation, count in seen.items():
            self._seen[situation] = self._seen.get(situation, 0) + count

    @property
    def seen(self) -> dict[str, int]:
        return dict(sorted(self._seen.items()))

    def missing(self, promised: Iterable[str]) -> list[str]:
        return [situation for situation in promised if situation not in self._seen]
