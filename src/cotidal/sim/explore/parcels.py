"""What is under way: a bag of messages, as one number. Pure.

There is no move that loses a message: one that stays in the bag for ever is lost as well, and looks
the same to everybody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from cotidal.sim.explore.freezing import Table

MessageT = TypeVar("MessageT")

NOTHING = -1


class Parcels(Generic[MessageT]):
    """Numbers for bags of messages; the messages have theirs from ``table``."""

    def __init__(self, table: Table[MessageT]) -> None:
        self._table = table
        self._bags: Table[tuple[int, ...]] = Table(())
        self._changed: dict[tuple[int, int, tuple[int, ...]], int] = {}
        self._kept: dict[tuple[int, object], int] = {}

    def held(self, bag: int) -> tuple[int, ...]:
        """The numbers of the messages in a bag, ascending."""
        return self._bags.values[bag]

    def bag_of(self, held: list[int]) -> int:
        return self._bags.number(tuple(sorted(held)))

    def changed(self, bag: int, *, without: int = NOTHING, sent: tuple[int, ...] = ()) -> int:
        """The bag after one message has left it and others have been put into it."""
        if without == NOTHING and not sent:
            return bag
        key = (bag, without, sent)
        known = self._changed.get(key)
        if known is None:
            held = [*self._bags.values[bag], *sent]
            if without != NOTHING:
                held.remove(without)
            known = self._changed[key] = self.bag_of(held)
        return known

    def kept(self, bag: int, reason: object, keep: Callable[[MessageT], bool]) -> int:
        """The bag with those messages alone. ``reason`` names the test, to remember its outcome."""
        key = (bag, reason)
        known = self._kept.get(key)
        if known is None:
            values = self._table.values
            held = tuple(each for each in self._bags.values[bag] if keep(values[each]))
            known = self._kept[key] = self._bags.number(held)
        return known
