"""Simulated runs on Spark's executors: as many at once as they have cores.

Tasks go out in waves of a few to each core, so that results come back, and are told, while others
run; the next wave is on its way before the last has ended, so that no core waits for the slowest
run. Spark does a task again whose executor died; a run is the same wherever it is done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from cotidal.sim.engine import Result, Task, calm_collector

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS_EACH: Final = 4
"""To each core in a wave: enough to be worth a job of Spark's, some seconds of work."""
WAVES: Final = 2


class OnSpark:
    """An Engine."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext

    def map(self, work: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
        cores = self._context.defaultParallelism
        size = TASKS_EACH * cores
        waves = [tasks[at : at + size] for at in range(0, len(tasks), size)]
        under_way: deque[Future[list[Result]]] = deque()
        with ThreadPoolExecutor(WAVES) as threads:
            try:
                for wave in waves:
                    under_way.append(threads.submit(self._run, work, wave))
                    if len(under_way) > WAVES:
                        yield from under_way.popleft().result()
                while under_way:
                    yield from under_way.popleft().result()
            finally:
                for each in under_way:
                    each.cancel()

    def _run(self, work: Callable[[Any], Any], wave: Sequence[Any]) -> list[Any]:
        def calmly(tasks: Iterable[Any]) -> Iterator[Any]:
            with calm_collector():
                yield from map(work, tasks)

        return self._context.parallelize(wave, len(wave)).mapPartitions(calmly).collect()
