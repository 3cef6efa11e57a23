"""Bugs that are planted are found, by the shortest way, and leave nothing behind."""

from __future__ import annotations

import pytest

from cotidal.core.partition import follower, leader
from cotidal.core.quorum.outbox import Outbox
from cotidal.sim.explore.plants import PLANTS, planted
from cotidal.sim.explore.search import search
from cotidal.sim.explore.worlds import WORLDS, story

pytestmark = pytest.mark.plain

QUICK = {
    "acks-early": ("ACKED_IS_KEPT", 2),
    "forgets-proposed": ("HIGH_WATERMARK_WAITS", 8),
    "cuts-to-high-watermark": ("ELIGIBLE_HOLD_COMMITTED", 7),
    "vote-not-written": ("VOTE_ONCE_PER_EPOCH", 11),
    "told-at-once": ("DURABLE_BEFORE_TOLD", 3),
}
LONGER = {
    "joins-early": ("ELIGIBLE_HOLD_COMMITTED", 11),
    "whatever-incarnation": ("HIGH_WATERMARK_WAITS", 12),
    "votes-for-shorter-logs": ("METADATA_COMMITTED_KEPT", 21),
    "commits-what-it-found": ("MAJORITY_HOLDS_COMMITTED", 24),
}


def find(name: str) -> tuple[str, int, list[str]]:
    plant = PLANTS[name]
    with planted(plant):
        world = WORLDS[plant.world].bounded(plant.bounds).made()
        (found,) = search(world, clock=lambda: 0.0).found
        return found.violation.name, len(found.path) - 1, story(world, found.path)


@pytest.mark.parametrize("name", list(QUICK))
def test_a_plant_is_found(name: str) -> None:
    promise, moves, told = find(name)
    assert (promise, moves) == QUICK[name]
    headlines = [line for line in told[:-1] if not line.startswith(" ")]
    assert len(headlines) == moves
    assert told[-1].startswith("so: ")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", list(LONGER))
def test_a_plant_that_lies_deeper_is_found(name: str) -> None:
    assert find(name)[:2] == LONGER[name]


def test_every_plant_is_looked_for() -> None:
    assert {*QUICK, *LONGER} == set(PLANTS)


def test_nothing_of_a_plant_is_left_when_it_is_over() -> None:
    before = (leader.acks_outcome, follower.follow, Outbox._tell)
    for plant in PLANTS.values():
        with planted(plant):
            pass
    assert (leader.acks_outcome, follower.follow, Outbox._tell) == before


def test_a_story_tells_what_was_done_said_and_how_it_ended() -> None:
    _, _, told = find("acks-early")
    assert told == [
        "a producer writes at broker 1, acks=all",
        "    1: write 0",
        "    1: acknowledge 0",
        "    1: hw=0 end=1 isr=(1 2 3)",
        "broker 1 crashes; 0 of its 1 records are kept",
        "    1: is down; its log holds 0",
        "so: r1 was acknowledged at 0 and is nowhere",
    ]
