"""Many seeds over the cores: progress, failures, and what was seen.

A seed is a run (run.py), done wherever an engine takes it (engine.py). Outcomes come back as they
end and are told as they come; the summary names every broken promise with the smallest seed that
broke it. Its failures are made small where it ran.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from time import process_time
from typing import NamedTuple

from cotidal.sim.engine import Engine, Here
from cotidal.sim.plan import Plan
from cotidal.sim.plans import plan_named
from cotidal.sim.probes import Tally
from cotidal.sim.run import Outcome, run
from cotidal.sim.script import of_seed
from cotidal.sim.shrink import Shrunk, shrink


class Summary(NamedTuple):
    plan: str
    runs: int
    steps: int
    events: int
    cpu_seconds: float
    """Of all processes together."""
    acknowledged: int
    read: int
    failures: tuple[Outcome, ...]
    """By seed."""
    seen: dict[str, int]
    """Situation -> in how many runs."""
    missing: tuple[str, ...]
    """What the plan's runs must see, and too few of them saw."""


def campaign(
    seeds: Iterable[int],
    plan: Plan,
    *,
    engine: Engine | None = None,
    on_outcome: Callable[[Outcome], None] | None = None,
) -> Summary:
    """Run all seeds; ``on_outcome`` is told of each as it ends."""
    tally = Tally()
    steps = events = acknowledged = read = 0
    cpu_seconds = 0.0
    failures: list[Outcome] = []
    tasks = [(seed, plan.name) for seed in seeds]
    for outcome, took in (engine or Here()).map(_run, tasks):
        cpu_seconds += took
        steps += outcome.steps
        events += outcome.events
        acknowledged += outcome.acknowledged
        read += outcome.read
        tally.add(outcome.seen)
        if outcome.broken is not None:
            failures.append(outcome)
        if on_outcome is not None:
            on_outcome(outcome)
    failures.sort(key=lambda outcome: outcome.seed)
    return Summary(
        plan.name,
        tally.runs,
        steps,
        events,
        cpu_seconds,
        acknowledged,
        read,
        tuple(failures),
        tally.seen,
        tally.missed(plan.name),
    )


def shrunk(
    failures: Iterable[Outcome], *, engine: Engine | None = None, tries: int
) -> Iterator[Shrunk]:
    """The first failure of each promise, with all left out that it does not take."""
    first: dict[str | None, Outcome] = {}
    for outcome in failures:
        first.setdefault(outcome.broken, outcome)
    tasks = [(outcome.seed, outcome.plan, tries) for outcome in first.values()]
    found = [each for each in (engine or Here()).map(_shrunk, tasks) if each is not None]
    return iter(sorted(found, key=lambda each: each.script.seed))


def _shrunk(task: tuple[int, str, int]) -> Shrunk | None:
    seed, name, tries = task
    plan = plan_named(name)
    assert plan is not None, name
    return shrink(of_seed(seed, plan), tries=tries)


def _run(task: tuple[int, str]) -> tuple[Outcome, float]:
    """With the seconds of CPU that it took."""
    seed, plan = task
    named = plan_named(plan)
    assert named is not None, plan
    begun = process_time()
    outcome = run(seed, named)
    gc.collect()  # its world goes round in circles
    return outcome, process_time() - begun
