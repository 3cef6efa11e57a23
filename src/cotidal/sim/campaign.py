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
from cotidal.sim.probes import Probes
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
    missing: tuple[str, ...]
    """Promised by the plan and never seen."""


def campaign(
    seeds: Iterable[int],
    plan: Plan,
    *,
    processes: int = 1,
    on_outcome: Callable[[Outcome], None] | None = None,
) -> Summary:
    """Run all seeds; ``on_outcome`` is told of each as it ends."""
    probes = Probes()
    runs = steps = acknowledged = read = 0
    failures: list[Outcome] = []
    for outcome in _outcomes(list(seeds), plan.name, processes):
        runs += 1
        steps += outcome.steps
        acknowledged += outcome.acknowledged
        read += outcome.read
        probes.add(outcome.seen)
        if outcome.broken is not None:
            failures.append(outcome)
        if on_outcome is not None:
            on_outcome(outcome)
    failures.sort(key=lambda outcome: outcome.seed)
    return Summary(
        plan.name,
        runs,
        steps,
        acknowledged,
        read,
        tuple(failures),
        probes.seen,
        tuple(probes.missing(plan.promised)),
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
