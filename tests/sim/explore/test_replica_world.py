"""The partition's world: small bounds completely, and the same with and without reductions."""

from __future__ import annotations

import pytest

from cotidal.sim.explore.plants import PLANTS, planted
from cotidal.sim.explore.replica_bounds import Bounds
from cotidal.sim.explore.replica_world import FAULT, ReplicaWorld
from cotidal.sim.explore.search import Outcome, search

pytestmark = pytest.mark.plain

SHRINKING = Bounds(records=1, crashes=0, fences=0, shrinks=1, late=0, decisions=2)
FENCING = Bounds(records=1, crashes=0, fences=1, shrinks=0, late=0, decisions=2)


def clock() -> float:
    return 0.0


def whole(bounds: Bounds, *, sleeping: bool = False) -> Outcome:
    outcome = search(ReplicaWorld(bounds), clock=clock, sleeping=sleeping, stop_at_first=False)
    assert outcome.complete
    return outcome


def names(outcome: Outcome) -> dict[str, int]:
    """Each broken promise, with the least number of moves that break it."""
    least: dict[str, int] = {}
    for found in outcome.found:
        moves = len(found.path) - 1
        least[found.violation.name] = min(moves, least.get(found.violation.name, moves))
    return least


@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(records=1, crashes=0, fences=1, shrinks=1, late=0, decisions=2),
        Bounds(records=1, crashes=1, fences=0, shrinks=0, late=1, decisions=3),
        Bounds(records=2, crashes=0, fences=1, shrinks=0, late=0, decisions=3),
        Bounds(
            min_isr=1, lossy=False, records=1, crashes=1, fences=1, shrinks=0, late=0, decisions=2
        ),
    ],
)
def test_every_promise_holds_in_every_state(bounds: Bounds) -> None:
    outcome = whole(bounds)
    assert names(outcome) == {}
    assert outcome.states > 1_000


def test_with_min_isr_1_a_crash_that_loses_records_loses_what_was_acknowledged() -> None:
    """As the rules say: one replica is all that min ISR 1 asks for. So the search sees losses."""
    bounds = Bounds(min_isr=1, records=1, crashes=1, fences=1, shrinks=1, late=0, decisions=2)
    outcome = search(ReplicaWorld(bounds), clock=clock)
    assert set(names(outcome)) == {"ACKED_IS_KEPT"}


def test_sleep_sets_reach_the_same_states_as_soon_with_fewer_transitions() -> None:
    plain, reduced = whole(FENCING), whole(FENCING, sleeping=True)
    assert (reduced.states, reduced.depth) == (plain.states, plain.depth)
    assert reduced.transitions < plain.transitions


@pytest.mark.parametrize(
    ("name", "bounds"), [("forgets-proposed", SHRINKING), ("cuts-to-high-watermark", FENCING)]
)
def test_reductions_break_the_same_promises_as_soon(name: str, bounds: Bounds) -> None:
    with planted(PLANTS[name]):
        plain = names(whole(bounds._replace(eager=False)))
        assert plain
        assert names(whole(bounds)) == plain
        assert names(whole(bounds, sleeping=True)) == plain


def reached(bounds: Bounds) -> set[tuple[object, ...]]:
    """The replicas as they stood in all states, whatever they had heard that does not matter."""
    world = ReplicaWorld(bounds)
    first = world.first()
    seen, queue = {first}, [first]
    for state in queue:
        for _, after in world.moves(state):
            if after not in seen:
                seen.add(after)
                queue.append(after)
    assert not any(state[FAULT] for state in queue)
    stripped = {number: without_applied(world, number) for state in queue for number in state[:3]}
    return {tuple(stripped[number] for number in state[:3]) for state in queue}


def without_applied(world: ReplicaWorld, number: int) -> object:
    broker = world.thawed(number)
    broker.applied = 0
    return world.frozen(broker)


def test_applying_at_once_what_changes_nothing_leaves_out_no_replica_state() -> None:
    for bounds in (SHRINKING, FENCING):
        assert reached(bounds) == reached(bounds._replace(eager=False))
