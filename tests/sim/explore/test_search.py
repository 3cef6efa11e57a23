"""The search itself, in a world that can be counted by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from cotidal.invariants import ACKED_IS_KEPT
from cotidal.sim.explore.search import Limits, Move, Outcome, State, search
from cotidal.sim.violation import Violation


class Counters:
    """Some counters that count to ``top``, each by moves of its own; ``bad`` states are broken."""

    def __init__(self, counters: int, top: int, bad: tuple[State, ...] = ()) -> None:
        self._counters = counters
        self._top = top
        self._bad = bad

    def first(self) -> State:
        return (0,) * self._counters

    def moves(self, state: State) -> Iterator[tuple[Move, State]]:
        for place, count in enumerate(state):
            if count < self._top:
                after = (*state[:place], count + 1, *state[place + 1 :])
                yield Move(0, place, count, 1 << place), after

    def broken(self, state: State) -> Violation | None:
        return Violation(ACKED_IS_KEPT, "as planned") if state in self._bad else None


def clock(step: float = 0.0) -> Callable[[], float]:
    now = 0.0

    def tell() -> float:
        nonlocal now
        now += step
        return now

    return tell


def found_in(outcome: Outcome) -> list[State]:
    return [found.path[-1] for found in outcome.found]


@pytest.mark.parametrize("sleeping", [False, True])
def test_every_state_is_seen_once(sleeping: bool) -> None:
    outcome = search(Counters(3, 3), clock=clock(), sleeping=sleeping)
    assert outcome.complete
    assert (outcome.states, outcome.depth) == (64, 9)


def test_sleep_sets_take_each_state_by_one_way_where_moves_never_meet() -> None:
    assert search(Counters(3, 3), clock=clock()).transitions == 3 * 3 * 16
    assert search(Counters(3, 3), clock=clock(), sleeping=True).transitions == 63


@pytest.mark.parametrize("sleeping", [False, True])
def test_the_first_broken_state_is_as_near_as_any(sleeping: bool) -> None:
    world = Counters(2, 9, bad=((5, 4), (2, 1), (9, 9)))
    outcome = search(world, clock=clock(), sleeping=sleeping)
    assert not outcome.complete
    (found,) = outcome.found
    assert found.path[0] == (0, 0)
    assert found.path[-1] == (2, 1)
    assert len(found.path) == 4


@pytest.mark.parametrize("sleeping", [False, True])
def test_all_broken_states_are_found_when_asked_for(sleeping: bool) -> None:
    world = Counters(2, 4, bad=((2, 1), (0, 3)))
    outcome = search(world, clock=clock(), sleeping=sleeping, stop_at_first=False)
    assert outcome.complete
    assert sorted(found_in(outcome)) == [(0, 3), (2, 1)]


def test_a_broken_beginning_is_a_story_without_moves() -> None:
    outcome = search(Counters(1, 1, bad=((0,),)), clock=clock())
    assert found_in(outcome) == [(0,)]


def test_a_limit_that_ends_the_search_is_named() -> None:
    assert search(Counters(3, 30), clock=clock(), limits=Limits(states=100)).bound == "100 states"
    tired = search(Counters(3, 30), clock=clock(step=1.0), limits=Limits(seconds=5.0))
    assert tired.bound == "5 s"
    assert not tired.complete
