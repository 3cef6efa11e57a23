"""A machine that is frozen and thawed is the same machine, and shares nothing."""

from __future__ import annotations

from typing import NamedTuple

from cotidal.sim.explore.freezing import Freezer, Table, renamed


class Cut(NamedTuple):
    offset: int


class Kept(NamedTuple):
    offset: int


class Inner:
    __slots__ = ("ends",)

    def __init__(self, ends: dict[int, int]) -> None:
        self.ends = ends


class Machine:
    __slots__ = ("effects", "inner", "settings")

    def __init__(self, ends: dict[int, int], effects: list[object]) -> None:
        self.inner = Inner(ends)
        self.effects = effects
        self.settings = object()


freezer = Freezer({Machine: ("settings",)})


def test_what_was_thawed_freezes_to_the_same() -> None:
    frozen = freezer.freeze(Machine({1: 5}, [Cut(3), (1, Kept(2)), None]))
    assert freezer.freeze(freezer.thaw(frozen)) == frozen
    hash(frozen)


def test_a_thawed_machine_shares_nothing_with_another() -> None:
    frozen = freezer.freeze(Machine({1: 5}, []))
    one, other = freezer.thaw(frozen), freezer.thaw(frozen)
    one.inner.ends[2] = 7
    one.effects.append(Cut(1))
    assert (other.inner.ends, other.effects) == ({1: 5}, [])


def test_the_order_in_which_a_dict_was_filled_does_not_matter() -> None:
    one, other = Machine({1: 5, 2: 6}, []), Machine({2: 6, 1: 5}, [])
    assert freezer.freeze(one) == freezer.freeze(other)


def test_values_of_two_classes_differ_though_their_fields_are_equal() -> None:
    assert Cut(3) == Kept(3)
    assert freezer.freeze(Machine({}, [Cut(3)])) != freezer.freeze(Machine({}, [Kept(3)]))
    table: Table[object] = Table(Cut(3))
    assert table.number(Kept(3)) == 1
    assert table.number(Cut(3)) == 0


def test_a_slot_that_is_left_out_does_not_tell_machines_apart() -> None:
    assert freezer.freeze(Machine({}, [])) == freezer.freeze(Machine({}, []))
    assert not hasattr(freezer.thaw(freezer.freeze(Machine({}, []))), "settings")


def test_renaming_reaches_keys_and_fields_and_puts_dicts_in_order() -> None:
    frozen = freezer.freeze(Machine({7001: 1, 7002: 2}, [Cut(7001)]))
    swapped = renamed(frozen, {7001: 7002, 7002: 7001})
    assert swapped == freezer.freeze(Machine({7001: 2, 7002: 1}, [Cut(7002)]))
    assert renamed(swapped, {7001: 7002, 7002: 7001}) == frozen
