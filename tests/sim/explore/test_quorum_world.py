"""The quorum's world: small bounds completely, and the same with and without symmetry."""

from __future__ import annotations

import pytest

from cotidal.sim.explore.plants import PLANTS, planted
from cotidal.sim.explore.quorum_world import Bounds, QuorumWorld
from cotidal.sim.explore.search import Outcome, search

pytestmark = pytest.mark.plain

SMALL = Bounds(epochs=1, proposals=0, timeouts=1, again=0, crashes=0)


def clock() -> float:
    return 0.0


def whole(bounds: Bounds, *, sleeping: bool = False) -> Outcome:
    outcome = search(QuorumWorld(bounds), clock=clock, sleeping=sleeping, stop_at_first=False)
    assert outcome.complete
    return outcome


def names(outcome: Outcome) -> dict[str, int]:
    least: dict[str, int] = {}
    for found in outcome.found:
        moves = len(found.path) - 1
        least[found.violation.name] = min(moves, least.get(found.violation.name, moves))
    return least


@pytest.mark.parametrize(
    "bounds",
    [
        SMALL._replace(proposals=1),
        SMALL._replace(crashes=1),
        SMALL._replace(again=1),
    ],
)
def test_every_promise_holds_in_every_state(bounds: Bounds) -> None:
    outcome = whole(bounds)
    assert names(outcome) == {}
    assert outcome.states > 1_000


def test_of_states_that_differ_in_names_one_is_seen() -> None:
    """Every state of the whole search is a renaming of one that the symmetric search saw."""
    world = QuorumWorld(SMALL)
    first = world.canonical(world.first())
    seen, queue = {first}, [first]
    for state in queue:
        for _, after in world.moves(state):
            if after not in seen:
                seen.add(after)
                queue.append(after)
    everything = {name for state in queue for name in world.renamings_of(state)}
    assert len(everything) == whole(SMALL._replace(symmetric=False)).states
    assert len(queue) * 5 < len(everything)


def test_sleep_sets_reach_the_same_states_as_soon_with_fewer_transitions() -> None:
    bounds = SMALL._replace(symmetric=False)
    plain, reduced = whole(bounds), whole(bounds, sleeping=True)
    assert (reduced.states, reduced.depth) == (plain.states, plain.depth)
    assert reduced.transitions < plain.transitions


@pytest.mark.parametrize("name", ["vote-not-written", "told-at-once"])
def test_symmetry_breaks_the_same_promise_as_soon(name: str) -> None:
    bounds = SMALL._replace(crashes=1, timeouts=2)
    with planted(PLANTS[name]):
        plain = names(search(QuorumWorld(bounds._replace(symmetric=False)), clock=clock))
        assert len(plain) == 1
        assert names(search(QuorumWorld(bounds), clock=clock)) == plain
