"""Breadth-first search through every state of a small world. Pure: the clock is handed in.

A world tells its first state, the moves out of a state, and what is wrong with one. The first
broken state met is therefore as near to the beginning as any: its story is a shortest one.

**Sleep sets** (Godefroid 1996) leave out one order of two moves that do not touch the same part of
the world. Every state is still reached, by as few moves as before; only transitions are saved. A
move carries a mask of the parts that it touches. A state that is met again with fewer sleeping
moves than before is expanded again, for those alone.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol, TypeAlias

from cotidal.sim.violation import Violation

State: TypeAlias = tuple[int, ...]


class Move(NamedTuple):
    """What happens, as numbers that its world understands, and which parts it touches."""

    kind: int
    who: int
    what: int
    touches: int


class World(Protocol):
    def first(self) -> State: ...

    def moves(self, state: State) -> Iterable[tuple[Move, State]]: ...

    def broken(self, state: State) -> Violation | None: ...


class Limits(NamedTuple):
    states: int = 1 << 62
    seconds: float = 1e18


class Found(NamedTuple):
    """A broken promise, and the states that lead to it."""

    violation: Violation
    path: list[State]


class Outcome(NamedTuple):
    states: int
    transitions: int
    depth: int
    seconds: float
    bound: str
    """Which limit ended the search; empty if nothing was left to see."""
    found: tuple[Found, ...]

    @property
    def complete(self) -> bool:
        return not self.bound


def search(
    world: World,
    *,
    clock: Callable[[], float],
    limits: Limits = Limits(),  # noqa: B008 - a value
    sleeping: bool = False,
    stop_at_first: bool = True,
    on_progress: Callable[[int, int], None] = lambda states, depth: None,
) -> Outcome:
    """Look at every state. What follows a broken one is not looked at."""
    run = _Search(world, clock, limits, stop_at_first, on_progress)
    return run.with_sleep_sets() if sleeping else run.plainly()


class _Search:
    def __init__(
        self,
        world: World,
        clock: Callable[[], float],
        limits: Limits,
        stop_at_first: bool,
        on_progress: Callable[[int, int], None],
    ) -> None:
        self._world = world
        self._clock = clock
        self._begun = clock()
        self._limits = limits
        self._stop_at_first = stop_at_first
        self._on_progress = on_progress
        first = world.first()
        self._states = [first]
        self._parents = array("L", [0])
        self._depths = array("H", [0])
        self._found: list[Found] = []
        self._transitions = 0
        self._bound = ""
        wrong = world.broken(first)
        if wrong is not None:
            self._found.append(Found(wrong, [first]))

    def plainly(self) -> Outcome:
        states, world = self._states, self._world
        seen = set(states)
        broken = {0} if self._found else set[int]()
        at = 0
        while at < len(states) and not self._must_end(at):
            if at not in broken:
                for _, after in world.moves(states[at]):
                    self._transitions += 1
                    if after not in seen:
                        seen.add(after)
                        if self._is_broken(after, at):
                            broken.add(len(states) - 1)
            at += 1
        return self._outcome()

    def with_sleep_sets(self) -> Outcome:
        states = self._states
        number = {states[0]: 0}
        asleep: list[frozenset[Move]] = [frozenset()]
        expanded = 0
        queue: list[tuple[int, frozenset[Move] | None]] = [(0, None)]
        broken = {0} if self._found else set[int]()
        turn = 0
        while turn < len(queue) and not self._must_end(queue[turn][0]):
            at, only = queue[turn]
            turn += 1
            if at in broken:
                continue
            if only is None:
                expanded = at
            done = set(asleep[at])
            for move, after in self._world.moves(states[at]):
                if (only is not None and move not in only) or move in done:
                    continue
                self._transitions += 1
                sleep = frozenset([each for each in done if not each.touches & move.touches])
                done.add(move)
                known = number.get(after)
                if known is None:
                    number[after] = len(states)
                    asleep.append(sleep)
                    queue.append((len(states), None))
                    if self._is_broken(after, at):
                        broken.add(len(states) - 1)
                elif not asleep[known] <= sleep:
                    if known <= expanded:
                        queue.append((known, asleep[known] - sleep))
                    asleep[known] &= sleep
        return self._outcome()

    def _is_broken(self, after: State, parent: int) -> bool:
        """Take a new state in."""
        self._states.append(after)
        self._parents.append(parent)
        self._depths.append(self._depths[parent] + 1)
        wrong = self._world.broken(after)
        if wrong is None:
            return False
        self._found.append(Found(wrong, self._path()))
        return True

    def _path(self) -> list[State]:
        at = len(self._states) - 1
        path = [self._states[at]]
        while at:
            at = self._parents[at]
            path.append(self._states[at])
        return path[::-1]

    def _must_end(self, at: int) -> bool:
        if self._found and self._stop_at_first:
            self._bound = "a broken promise"
        elif len(self._states) > self._limits.states:
            self._bound = f"{self._limits.states:,} states"
        elif at & 0x3FF == 0:
            self._on_progress(len(self._states), self._depths[at])
            if self._clock() - self._begun > self._limits.seconds:
                self._bound = f"{self._limits.seconds:g} s"
        return bool(self._bound)

    def _outcome(self) -> Outcome:
        return Outcome(
            states=len(self._states),
            transitions=self._transitions,
            depth=max(self._depths),
            seconds=self._clock() - self._begun,
            bound=self._bound,
            found=tuple(self._found),
        )
