"""What a person is told of a search. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from cotidal import invariants
from cotidal.sim.explore.search import Found, Outcome


def summary(outcome: Outcome) -> str:
    rate = outcome.states / outcome.seconds if outcome.seconds else 0
    ended = "complete" if outcome.complete else f"ended by {outcome.bound}"
    return (
        f"{ended}: {outcome.states:,} states, {outcome.transitions:,} transitions, depth"
        f" {outcome.depth}, {outcome.seconds:.1f} s, {rate:,.0f} states/s"
    )


def counterexample(story: list[str], found: Found) -> Iterator[str]:
    """The promise, what was found, and a shortest way there."""
    name = found.violation.name
    moves = len(found.path) - 1
    yield f"{name}: {getattr(invariants, name, 'our own code failed')}"
    yield f"broken after {moves} moves, and after no fewer:"
    yield from story
