"""Where runs are done: here one after another, in processes of this machine, or on executors of a
cluster (spark/engine.py). Nothing is shared between two runs, so all that an engine does is to map
a function over tasks; results come as they are there, in any order.

The garbage collector looks less often while runs go on: hardly anything but a whole run, once it is
over, is a cycle, and looking for others was 9 % of the time.
"""

from __future__ import annotations

import gc
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

COLLECTOR_THRESHOLDS: Final = (100_000, 50, 1_000)


class Engine(Protocol):
    def map(self, work: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]: ...


class Here:
    """In this process, or in several."""

    def __init__(self, processes: int = 1) -> None:
        self._processes = processes

    def map(self, work: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
        processes = min(len(tasks), self._processes)
        if processes <= 1:
            with calm_collector():
                yield from map(work, tasks)
            return
        context = multiprocessing.get_context("spawn")
        with context.Pool(processes, calm) as pool:
            yield from pool.imap_unordered(work, tasks)


def calm() -> None:
    """For a process that does nothing but runs."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)


@contextmanager
def calm_collector() -> Iterator[None]:
    before = gc.get_threshold()
    calm()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
