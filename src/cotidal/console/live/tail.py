"""The end of a list that grows for ever. Pure.

As long as everything that was ever added to it, by its length and its indices; only the newest
items are there. One thread adds; others read meanwhile and need no lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from cotidal.console.world import Json


class Tail(Sequence[Json]):
    __slots__ = ("_kept", "_most")

    def __init__(self, most: int) -> None:
        """``most``: items that are kept; half of them when there are more."""
        self._most = most
        self._kept: tuple[int, list[Json]] = (0, [])
        """How many are gone, and the others: replaced together, so that they fit each other."""

    def extend(self, items: Iterable[Json]) -> None:
        gone, kept = self._kept
        kept.extend(items)  # one step for whoever reads it meanwhile
        if len(kept) > self._most:
            less = len(kept) - self._most // 2
            self._kept = (gone + less, kept[less:])

    def __len__(self) -> int:
        gone, kept = self._kept
        return gone + len(kept)

    def __iter__(self) -> Iterator[Json]:
        """Those that are there."""
        return iter(self._kept[1].copy())

    @overload
    def __getitem__(self, at: int) -> Json: ...

    @overload
    def __getitem__(self, at: slice) -> list[Json]: ...

    def __getitem__(self, at: int | slice) -> Json | list[Json]:
        """Of a slice, what is still there. IndexError for one that is gone."""
        gone, kept = self._kept
        if isinstance(at, slice):
            begin, end, step = at.indices(gone + len(kept))
            return kept[max(0, begin - gone) : max(0, end - gone) : step]
        place = at + len(kept) if at < 0 else at - gone
        if place < 0:
            raise IndexError(f"item {at} is gone")
        return kept[place]
