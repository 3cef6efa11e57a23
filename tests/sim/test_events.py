"""A simulated cluster tells the same events as a real one, and keeps its promises meanwhile."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from cotidal.core.cluster.decide.topics import EVENTS_TOPIC
from cotidal.node import effects as fx
from cotidal.node.events import Event
from cotidal.sim.plans import PLANS
from cotidal.sim.process import Process, Watcher
from cotidal.sim.run import Run
from cotidal.wire.records import read_records
from json_schema import EVENTS, violations


class Listener(Watcher):
    """Keeps what is appended to the topic by whoever leads it."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []

    def on_stepped(self, process: Process, event: Event, effects: tuple[fx.Effect, ...]) -> None:
        for effect in effects:
            if isinstance(effect, fx.Append) and effect.partition.topic == EVENTS_TOPIC:
                for entry in effect.entries:
                    if entry.base_offset is not None:
                        records = read_records(entry.batches.data)
                        self.heard += [json.loads(record.value or b"") for record in records]


def heard(seed: int) -> list[dict[str, Any]]:
    run = Run(seed, PLANS["telling"])
    listener = Listener()
    run.world.watchers.append(listener)
    outcome = run.go()
    assert outcome.broken is None, outcome
    return listener.heard


@pytest.mark.parametrize("seed", [1, 2])
def test_what_befalls_a_simulated_cluster_is_told(seed: int) -> None:
    told = heard(seed)
    for each in told:
        assert violations(each, EVENTS) == []
    kinds = Counter(each["kind"] for each in told)
    assert {"health", "broker_fenced", "broker_registered", "isr_shrunk", "isr_expanded"} <= set(
        kinds
    )
    assert kinds["leader_changed"] > 0
    assert kinds["health"] > 10 * 3, "of every second and node"
    assert not any(each.get("topic") == EVENTS_TOPIC for each in told)


def test_the_same_seed_tells_the_same() -> None:
    assert heard(3) == heard(3)


def test_a_happening_has_a_number_that_no_other_has() -> None:
    by_number: dict[tuple[str, int], set[str]] = {}
    for each in heard(4):
        number = (each["incarnation"], each["sequence"])
        by_number.setdefault(number, set()).add(json.dumps(each))
    assert all(len(told) == 1 for told in by_number.values()), "a second attempt says the same"
