"""Microseconds per call of small pieces of code: what ``bench.wire`` and ``bench.log`` print.

Each row is the best of several rounds: what disturbs a round only makes it slower.
"""

from __future__ import annotations

import argparse
import json
import timeit
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

ROUNDS: Final = 7
ROUND_SECONDS: Final = 0.1


class Task(NamedTuple):
    what: str
    run: Callable[[], object]
    aim_micros: float | None = None
    calls_max: int = 1 << 30
    """Per round: for a call that fills a disk."""


class Timing(NamedTuple):
    what: str
    micros: float
    aim_micros: float | None


def measure(task: Task, round_seconds: float) -> Timing:
    timer = timeit.Timer(task.run)
    trial = min(10, task.calls_max)
    once = max(timer.timeit(trial) / trial, 1e-8)
    number = max(1, min(task.calls_max, int(round_seconds / once)))
    best = min(timer.repeat(ROUNDS, number)) / number
    return Timing(task.what, best * 1e6, task.aim_micros)


def main(program: str, description: str | None, tasks: Callable[[], Iterable[Task]]) -> int:
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("--quick", action="store_true", help="a tenth of the time")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    seconds = ROUND_SECONDS / 10 if asked.quick else ROUND_SECONDS
    timings = []
    for task in tasks():
        timing = measure(task, seconds)
        timings.append(timing)
        if not asked.json:
            aim = f"  aim {timing.aim_micros:,.1f}" if timing.aim_micros else ""
            print(f"{timing.what:58} {timing.micros:10,.2f} us{aim}", flush=True)
    if asked.json:
        print(json.dumps([timing._asdict() for timing in timings], indent=1))
    return 0
