"""A life that is not the same the second time is noticed; and so is a bound that is passed."""

from __future__ import annotations

import pytest

from cotidal.invariants import BOUNDS_KEPT, LIVES_REPEAT
from cotidal.node import vitals
from cotidal.sim.checkers.machines import MachineChecker
from cotidal.sim.checkers.window import state_of
from cotidal.sim.plans import PLANS
from cotidal.sim.run import Run
from cotidal.sim.violation import Violation
from cotidal.values import Millis
from simulated import go_through


@pytest.fixture(scope="module")
def run() -> Run:
    run = Run(2, PLANS["calm"]._replace(seconds=1, recorded=True))
    go_through(run, run.course())
    return run


def test_every_life_is_lived_again(run: Run) -> None:
    assert run.lives.repeated == len(run.world.machines)


def test_a_life_that_is_another_one_is_noticed(run: Run) -> None:
    process = run.world.running[0]
    lines = process.recorded
    assert lines is not None
    at = next(number for number, line in enumerate(lines) if '"effects":[{' in line)
    kept = lines[at]
    lines[at] = kept[: kept.index('"effects"')] + '"effects":[]}'
    with pytest.raises(Violation) as broken:
        run.lives.judge()
    assert broken.value.promise == LIVES_REPEAT
    lines[at] = kept


def test_a_bound_that_is_passed_is_noticed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    process = run.world.running[0]
    now = Millis(process.machine.clock.monotonic(run.world.now))
    MachineChecker().sweep(process, now)
    assert state_of(process).connections
    monkeypatch.setattr(vitals, "FETCH_SESSIONS_MAX", 0.5)
    assert len(state_of(process).sessions) > 0
    with pytest.raises(Violation) as broken:
        MachineChecker().sweep(process, now)
    assert broken.value.promise == BOUNDS_KEPT
