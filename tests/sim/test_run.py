"""Whole runs: every plan holds for some seeds, and one seed is one run."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest

from cotidal.sim.faults.schedule import draw_schedule
from cotidal.sim.plan import PLANS
from cotidal.sim.run import Run, run
from cotidal.sim.trace import Trace

SHORT = 5


@pytest.mark.parametrize("name", list(PLANS))
def test_every_promise_of_a_plan_holds(name: str) -> None:
    outcome = run(1, PLANS[name]._replace(seconds=SHORT))
    assert (outcome.broken, outcome.sentence) == (None, "")
    assert outcome.acknowledged > 0
    assert outcome.read > 0


def digest(seed: int) -> str:
    lines = hashlib.sha256()
    plan = PLANS["harsh"]._replace(seconds=SHORT)
    outcome = run(seed, plan, Trace(lambda line: lines.update(line.encode())))
    lines.update(repr(outcome).encode())
    return lines.hexdigest()


def test_one_seed_is_one_run_whatever_the_hash_seed() -> None:
    here = digest(5)
    for hash_seed in ("1", "2"):
        told = subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env={
                **os.environ,
                "PYTHONHASHSEED": hash_seed,
                "PYTHONPATH": os.pathsep.join(sys.path),
            },
            capture_output=True,
            text=True,
            check=True,
        )
        assert told.stdout.strip() == here


_PROGRAM = f"""
import importlib.util
spec = importlib.util.spec_from_file_location("runs", {__file__!r})
runs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(runs)
print(runs.digest(5))
"""


def test_another_seed_is_another_run() -> None:
    assert digest(5) != digest(6)


def test_a_run_without_faults_retries_nothing() -> None:
    outcome = run(3, PLANS["calm"]._replace(seconds=SHORT))
    assert outcome.unknown == 0
    assert outcome.sent == outcome.acknowledged
    assert "a produce without an answer" not in outcome.seen


def test_every_fault_strikes_in_some_run() -> None:
    plan = PLANS["harsh"]._replace(seconds=40, gap_ms=300)
    seen: dict[str, int] = {}
    for seed in range(1, 4):
        one = Run(seed, plan)
        one.go()
        seen.update(one.probes.seen)
    single = set(plan.faults) - {"kill-all"}  # is drawn as a kill of each
    assert {f"fault: {name}" for name in single} <= set(seen)


def test_a_run_under_the_schedule_that_its_seed_draws_is_the_same_run() -> None:
    plan = PLANS["harsh"]._replace(seconds=SHORT)
    assert run(5, plan, schedule=draw_schedule(5, plan)) == run(5, plan)


def test_a_run_under_an_empty_schedule_meets_no_fault() -> None:
    outcome = run(5, PLANS["harsh"]._replace(seconds=SHORT), schedule=())
    assert outcome.broken is None
    assert not [situation for situation in outcome.seen if situation.startswith("fault")]


@pytest.mark.parametrize(("name", "seed"), [("lossy-disk", 2016)])
def test_a_seed_that_ever_failed_holds(name: str, seed: int) -> None:
    """The corpus: what the simulator once found stays looked at.

    lossy-disk 2016: the log of a deleted topic was adopted by its namesake after a power cut.
    """
    outcome = run(seed, PLANS[name])
    assert outcome.broken is None, outcome.sentence
