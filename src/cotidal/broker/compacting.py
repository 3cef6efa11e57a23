"""Has logs compacted, one after another.

A log is read and written anew beside whatever else is done to it, by another process (cleaner.py)
for which a thread waits; only at the end it is busy, for as long as it takes to rename some files.

A compaction that the disk refuses, for want of space perhaps, is told and tried again later: the
log is as good as before. One that meets damage fails the log, as a read would.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from cotidal.broker.cleaner import Cleaner, Ended, Job
from cotidal.broker.counters import Counters
from cotidal.broker.driver import wall_millis
from cotidal.broker.journal import Journal
from cotidal.broker.lane import Lane
from cotidal.broker.pace import Stopped
from cotidal.broker.worker import Done, Failed, Outcome, Worker
from cotidal.log import cleaning, key_map
from cotidal.log.contract import Compacted
from cotidal.log.failure import LogError
from cotidal.log.log import Log
from cotidal.node.effects import Compact, Compactable
from cotidal.values import TopicPartition


class Compacting:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        lanes: Mapping[TopicPartition, Lane],
        *,
        slow: Callable[..., None],
        fail: Callable[[Lane, LogError], None],
        put_in_place: Callable[[Lane], None],
        journal: Journal,
        counters: Counters,
        on_fault: Callable[[Exception], None],
    ) -> None:
        """``slow(lane, work=, then=)``: when the log is free, in a worker. ``put_in_place``: a log
        has new segments, and is clean up to another offset."""
        self._loop = loop
        self._lanes = lanes
        self._slow = slow
        self._fail = fail
        self._put_in_place = put_in_place
        self._journal = journal
        self._counters = counters
        self._on_fault = on_fault
        self._worker: Worker | None = None
        self._cleaner = Cleaner()
        self._round: list[Compactable] = []
        self._asked: Compact | None = None
        self._is_at_work = False
        self._stopped = False

    def compact(self, effect: Compact) -> None:
        """Take these logs for the next ones, instead of what is left of those before."""
        self._asked = effect
        now = wall_millis()
        dirty: list[tuple[float, Compactable]] = []
        for each in effect.logs:
            lane = self._free_lane(each)
            if lane is None or lane.log is None:
                continue
            plan = self._plan(lane.log, each)
            if plan is not None:
                dirty.append((plan.dirty_ratio, each))
            elif lane.log.must_sweep(now):
                self._slow(lane, work=lambda log: log.sweep(wall_millis()), then=_ignore)
        dirty.sort(key=lambda found: -found[0])
        self._round = [each for _, each in dirty]
        if not self._is_at_work:
            self._begin_next()

    def stop(self) -> None:
        """What is under way is thrown away. Blocks until the thread has seen it."""
        self._stopped = True
        self._round = []
        self._cleaner.stop()
        if self._worker is not None:
            self._worker.stop()
        self._cleaner.let_go()

    def _free_lane(self, asked: Compactable) -> Lane | None:
        lane = self._lanes.get(asked.partition)
        if lane is None or lane.busy or lane.is_offline:
            return None  # there is another look at it in a while
        return lane

    def _plan(self, log: Log, asked: Compactable) -> cleaning.Cleaning | None:
        try:
            return log.begin_cleaning(wall_millis(), below=asked.below, producers=asked.producers)
        except (LogError, OSError):
            return None  # whoever writes to it or reads it next will say so

    def _begin_next(self) -> None:
        while self._round and not self._stopped:
            asked = self._round.pop(0)
            lane = self._free_lane(asked)
            if lane is None or lane.log is None:
                continue
            plan = self._plan(lane.log, asked)
            if plan is not None:
                self._run(lane, lane.log, plan)
                return
        if self._worker is not None and not self._stopped:
            self._worker.submit(self._cleaner.let_go, _ignore)

    def _run(self, lane: Lane, log: Log, plan: cleaning.Cleaning) -> None:
        assert self._asked is not None
        if self._worker is None:
            self._worker = Worker(self._loop, "cotidal-cleaner", self._on_fault)
        self._is_at_work = True
        job = Job(
            plan,
            keys_max=key_map.capacity(self._asked.key_bytes),
            now=wall_millis(),
            bytes_per_second=self._asked.bytes_per_second,
        )

        def told(outcome: Outcome[Ended]) -> None:
            self._is_at_work = False
            found = outcome.error if isinstance(outcome, Failed) else outcome.value.outcome
            if isinstance(outcome, Done):
                self._counters.compacted_bytes += outcome.value.done_bytes
            match found:
                case cleaning.Cleaned() if self._lanes.get(lane.partition) is lane:
                    self._slow(
                        lane,
                        work=lambda now: (  # not the same once it was moved
                            now.end_cleaning(plan, found, wall_millis()) if now is log else None
                        ),
                        then=partial(self._on_put_in_place, lane),
                    )
                case cleaning.Cleaned() | Stopped():
                    pass
                case LogError() if lane.log is log and log.fits(plan):
                    self._fail(lane, found)
                case LogError() | OSError():
                    self._journal.warning(f"{lane.partition} could not be compacted: {found}")
                case _:
                    raise found
            self._begin_next()

        self._worker.submit(partial(self._cleaner.clean, job), told)

    def _on_put_in_place(self, lane: Lane, compacted: Compacted | None) -> None:
        if compacted is not None:
            self._journal.info(compacted.sentence)
            self._put_in_place(lane)


def _ignore(_: object) -> None:
    return None
