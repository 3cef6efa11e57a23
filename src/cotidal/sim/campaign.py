"""Many seeds over the cores: progress, failures, and what was seen.

A seed is a run (run.py); nothing is shared between two of them, so each goes to a process of a
pool. Outcomes come back as they end and are told as they come; the summary names every broken
promise with the smallest seed that broke it.

The garbage collector looks less often while seeds run: hardly anything but a whole run, once it is
over, is a cycle, and looking for others was 9 % of the time.
"""

from __future__ import annotations

import gc
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import process_time
from typing import Final, NamedTuple

from cotidal.sim.plan import Plan, plan_named
from cotidal.sim.probes import Tally
from cotidal.sim.run import Outcome, run

COLLECTOR_THRESHOLDS: Final = (100_000, 50, 1_000)


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
    processes: int = 1,
    on_outcome: Callable[[Outcome], None] | None = None,
) -> Summary:
    """Run all seeds; ``on_outcome`` is told of each as it ends."""
    tally = Tally()
    steps = events = acknowledged = read = 0
    cpu_seconds = 0.0
    failures: list[Outcome] = []
    for outcome, took in _outcomes(list(seeds), plan.name, processes):
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


def _outcomes(seeds: list[int], plan: str, processes: int) -> Iterator[tuple[Outcome, float]]:
    tasks = [(seed, plan) for seed in seeds]
    if processes <= 1:
        with _calm_collector():
            yield from map(_run, tasks)
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, _calm) as pool:
        yield from pool.imap_unordered(_run, tasks)


def _run(task: tuple[int, str]) -> tuple[Outcome, float]:
    """With the seconds of CPU that it took."""
    seed, plan = task
    named = plan_named(plan)
    assert named is not None, plan
    begun = process_time()
    outcome = run(seed, named)
    gc.collect()  # its world goes round in circles
    return outcome, process_time() - begun


def _calm() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)


@contextmanager
def _calm_collector() -> Iterator[None]:
    before = gc.get_threshold()
    _calm()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
