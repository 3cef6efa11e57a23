"""Many seeds over the cores: progress, failures, and what was seen.

A seed is a run (run.py); nothing is shared between two of them, so each goes to a process of a
pool. Outcomes come back as they end and are told as they come; the summary names every broken
promise with the smallest seed that broke it.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from cotidal.sim.plan import PLANS, Plan
from cotidal.sim.probes import Tally
from cotidal.sim.run import Outcome, run


class Summary(NamedTuple):
    plan: str
    runs: int
    steps: int
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
    steps = acknowledged = read = 0
    failures: list[Outcome] = []
    for outcome in _outcomes(list(seeds), plan.name, processes):
        steps += outcome.steps
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
        acknowledged,
        read,
        tuple(failures),
        tally.seen,
        tally.missed(plan.name),
    )


def _outcomes(seeds: list[int], plan: str, processes: int) -> Iterator[Outcome]:
    tasks = [(seed, plan) for seed in seeds]
    if processes <= 1:
        yield from map(_run, tasks)
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes) as pool:
        yield from pool.imap_unordered(_run, tasks)


def _run(task: tuple[int, str]) -> Outcome:
    seed, plan = task
    return run(seed, PLANS[plan])
