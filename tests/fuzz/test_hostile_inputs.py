"""No input ends a node, slows others to a halt, or makes it take more memory than it may."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from cotidal.limits import NODE_RESIDENT_BYTES_MAX
from real_node import real_node
from tests.fuzz.attack import IDLERS, Outcome, attack
from tests.fuzz.hostile import Hostility, Prey, served_requests
from tests.fuzz.prey import SETTINGS, create_prey

SEED = 20_261_115


def besiege(directory: Path, *, seed: int, inputs: int) -> Outcome:
    print(f"seed {seed}")
    with real_node(directory, SETTINGS) as node:
        try:
            outcome = attack(node, create_prey(node.bootstrap), seed=seed, inputs=inputs)
        except BaseException:
            print(node.said())
            raise
        print(outcome.told())
        assert sum(outcome.inputs.values()) == inputs
        assert outcome.idle_left == IDLERS
        assert outcome.memory_bytes_max < NODE_RESIDENT_BYTES_MAX
        assert node.sentences("error") == []
    return outcome


def test_a_node_bears_hostile_inputs(tmp_path: Path) -> None:
    besiege(tmp_path, seed=SEED, inputs=20_000)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_node_bears_two_hundred_thousand_hostile_inputs(tmp_path: Path) -> None:
    besiege(tmp_path, seed=random.randrange(2**31), inputs=200_000)


def test_one_seed_is_one_sequence_of_inputs() -> None:
    prey = Prey("prey", b"p" * 16)  # type: ignore[arg-type]
    first, again, other = (iter(Hostility(seed, prey)) for seed in (1, 1, 2))
    for _ in range(500):
        assert next(first) == next(again)
    assert [next(first) for _ in range(5)] != [next(other) for _ in range(5)]


def test_every_api_and_version_that_is_served_takes_part() -> None:
    from cotidal.api.registry import APIS, OURS

    every = APIS | OURS
    made = {(message.key, version) for _, message, version in served_requests()}
    served = {(k, v) for k, api in every.items() for v in range(api.oldest, api.newest + 1)}
    assert made == served
