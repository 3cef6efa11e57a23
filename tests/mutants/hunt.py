"""A campaign against one tree: seeds of some plans in turn, until the first broken promise.

    PYTHONPATH=TREE python -m tests.mutants.hunt TREE --plans harsh,mild --seeds 500

Prints one JSON object. Which run is the first does not depend on how many processes look for it:
outcomes are taken in the order of the runs. A run that does not end, or wants more memory than any
run of the house, counts as broken (HANGS, MEMORY).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

RUN_CPU_SECONDS_MAX = 90
"""Of one run, whatever else the machine does; one of the house takes about 3."""
RUN_BYTES_MAX = 2 << 30


class Task(NamedTuple):
    plan: str
    seed: int


class Found(NamedTuple):
    plan: str
    seed: int
    broken: str | None
    sentence: str


class Endless(BaseException):
    """Not an Exception: a run would take it for a fault of the node and tell of that instead."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("tree", type=Path)
    parser.add_argument("--plans", default="")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--only", help="plan:seed,...: these runs and no others")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    _be_in(options.tree)
    tasks = (
        [
            Task(plan, int(seed))
            for plan, seed in (each.split(":") for each in options.only.split(","))
        ]
        if options.only
        else in_turn(tuple(options.plans.split(",")), first=options.first, count=options.seeds)
    )
    print(json.dumps(hunt(tasks, jobs=options.jobs, seconds=options.seconds)))


def in_turn(plans: tuple[str, ...], *, first: int, count: int) -> list[Task]:
    """``count`` runs: the first seed of every plan, then the second of every plan, ..."""
    rounds = -(-count // len(plans))
    return [Task(plan, seed) for seed in range(first, first + rounds) for plan in plans][:count]


def hunt(tasks: list[Task], *, jobs: int, seconds: float) -> dict[str, Any]:
    """``runs``: how many ended up to and with the broken one. ``expired``: time ran out first."""
    until = time.monotonic() + seconds
    runs = 0
    for found in _outcomes(tasks, jobs):
        runs += 1
        if found.broken is not None:
            return {"runs": runs, "expired": False, **found._asdict()}
        if time.monotonic() >= until:
            break
    return {"runs": runs, "expired": runs < len(tasks), "broken": None}


def _outcomes(tasks: list[Task], jobs: int) -> Iterator[Found]:
    if jobs <= 1 or len(tasks) == 1:
        _limit()
        yield from map(_run, tasks)
        return
    with multiprocessing.get_context("spawn").Pool(jobs, initializer=_limit) as pool:
        yield from pool.imap(_run, tasks)


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (RUN_BYTES_MAX, RUN_BYTES_MAX))
    signal.signal(signal.SIGVTALRM, _give_up)


def _give_up(*_: object) -> None:
    raise Endless


def _run(task: Task) -> Found:
    from cotidal.sim.plans import PLANS
    from cotidal.sim.run import run

    signal.setitimer(signal.ITIMER_VIRTUAL, RUN_CPU_SECONDS_MAX)
    try:
        outcome = run(task.seed, PLANS[task.plan])
    except Endless:
        return Found(*task, "HANGS", f"it had not ended after {RUN_CPU_SECONDS_MAX} s of CPU")
    except MemoryError:
        return Found(*task, "MEMORY", f"it wanted more than {RUN_BYTES_MAX >> 20} MiB")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return Found(*task, outcome.broken, outcome.sentence)


def _be_in(tree: Path) -> None:
    """The product that is looked at is the copy, and not the one that is installed."""
    import cotidal

    where = Path(cotidal.__path__[0]).resolve()
    if where != (tree / "cotidal").resolve():
        raise SystemExit(f"this is {where}; start with PYTHONPATH={tree}")


if __name__ == "__main__":
    main()
