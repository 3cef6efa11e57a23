"""Machines as values: frozen to be compared and hashed, thawed to be stepped. Pure.

A machine is slotted objects, dicts, lists and immutable values. ``freeze`` makes nested tuples of
it, equal if and only if the machines are, whatever order their dicts were filled in; ``thaw`` makes
a machine again that shares nothing mutable with any other. Slots that never change or never matter
(a configuration, a source of lots) are named to the Freezer and left out of both.

``Table`` gives every value a small number: a state of a world is a tuple of such numbers, a step of
one machine is remembered by the numbers of its state and its event, and the machines themselves run
only for steps that were never taken before.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

ValueT = TypeVar("ValueT")


class FrozenObject(tuple[Any, ...]):
    """The class, then the values of its slots."""

    __slots__ = ()


class FrozenDict(tuple[Any, ...]):
    """(key, value) pairs in ascending order of keys."""

    __slots__ = ()


class FrozenList(tuple[Any, ...]):
    __slots__ = ()


class FrozenTuple(tuple[Any, ...]):
    """A NamedTuple: its class, then its fields. Two of other classes are equal if their fields are,
    and an effect is not the other one that happens to name the same offset."""

    __slots__ = ()


class Freezer:
    """``omit``: slots of a class that are left out; whoever thaws sets them again."""

    def __init__(self, omit: Mapping[type, tuple[str, ...]] = MappingProxyType({})) -> None:
        self._omit = omit
        self._slots: dict[type, tuple[str, ...]] = {}

    def freeze(self, value: Any) -> Any:
        kind = value.__class__
        if kind in _ATOMS:
            return value
        if kind is tuple:
            return tuple([self.freeze(each) for each in value])
        if isinstance(value, tuple):
            return FrozenTuple([kind, *(self.freeze(each) for each in value)])
        if kind is dict or kind is MappingProxyType:
            pairs = sorted(value.items())
            return FrozenDict([(key, self.freeze(each)) for key, each in pairs])
        if kind is list:
            return FrozenList([self.freeze(each) for each in value])
        slots = self._slots_of(kind)
        if not slots:
            return value  # an enum's member, a frozen set: a value already
        return FrozenObject([kind, *(self.freeze(getattr(value, name)) for name in slots)])

    def thaw(self, frozen: Any) -> Any:
        kind = frozen.__class__
        if kind is FrozenObject:
            made = object.__new__(frozen[0])
            for name, value in zip(self._slots_of(frozen[0]), frozen[1:], strict=True):
                setattr(made, name, self.thaw(value))
            return made
        if kind is FrozenDict:
            return {key: self.thaw(value) for key, value in frozen}
        if kind is FrozenTuple:
            return tuple.__new__(frozen[0], [self.thaw(each) for each in frozen[1:]])
        if kind is tuple:
            return tuple([self.thaw(each) for each in frozen])
        if kind is FrozenList:
            return [self.thaw(each) for each in frozen]
        return frozen

    def _slots_of(self, kind: type) -> tuple[str, ...]:
        found = self._slots.get(kind)
        if found is None:
            left_out = self._omit.get(kind, ())
            names = getattr(kind, "__slots__", ())
            found = self._slots[kind] = tuple(name for name in names if name not in left_out)
        return found


def renamed(value: Any, names: Mapping[int, int]) -> Any:
    """The same frozen value with other numbers for some; dicts are put in order again.

    Only for numbers that mean one thing wherever they stand: ids that no offset or epoch reaches.
    """
    kind = value.__class__
    if kind is int:
        return names.get(value, value)
    if not isinstance(value, tuple):
        return value
    parts = [renamed(each, names) for each in value]
    if kind is FrozenDict:
        parts.sort()
    return tuple.__new__(kind, parts)


class Table(Generic[ValueT]):
    """Numbers for values, in the order in which they were first met; by class and content."""

    __slots__ = ("_numbers", "values")

    def __init__(self, *first: ValueT) -> None:
        self.values: list[ValueT] = []
        self._numbers: dict[tuple[type, ValueT], int] = {}
        for value in first:
            self.number(value)

    def number(self, value: ValueT) -> int:
        key = (value.__class__, value)
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = len(self.values)
            self.values.append(value)
        return known


_ATOMS: Final = frozenset({int, str, bytes, bool, float, type(None)})
