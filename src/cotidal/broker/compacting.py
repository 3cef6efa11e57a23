"""Compacts logs, one after another, in a thread of its own.

A log is read and written anew beside whatever else is done to it (log/cleaning.py); only at the end
it is busy, for as long as it takes to rename some files. The thread shares the interpreter with the
event loop, so it works for a moment and rests for two: whoever waits for the interpreter gets it
then. It also keeps to log.cleaner.io.max.bytes.per.second.

A compaction that the disk refuses, for want of space perhaps, is told and tried again later: the
log is as good as before. One that meets damage fails the log, as a read would.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from cotidal.broker.counters import Counters
from cotidal.broker.driver import wall_millis
from cotidal.broker.journal import Journal
from cotidal.broker.lane import Lane
from cotidal.broker.worker import Done, Failed, Outcome, Worker
from cotidal.log import cleaning, key_map
from cotidal.log.contract import Compacted
from cotidal.log.failure import LogError
from cotidal.log.log import Log
from cotidal.node.effects import Compact, Compactable
from cotidal.values import TopicPartition

WORK_S: Final = 0.0003
"""After so much of it comes a rest, in the middle of a batch too: the longest that the event loop
waits for us each time that it wants the interpreter, which is several times a request."""
REST_RATIO: Final = 2
"""A rest is so many times as long as the work before it. Three brokers on two cores then compact at
50 MB/s each, and the p99 of acks=all stays below twice what it is without; with rests of 0.2 ms
after every ms they compacted at 150 MB/s, and it was twelve times as long."""
NAP_S: Final = 0.1
"""Longest sleep of one that keeps to a speed, so that a stop need not wait."""


class Stopped(Exception):
    """The node stops, and the compaction with it."""


class Pace:
    """How fast a cleaning, or a move, may go. Used in its thread; ``stop`` from any."""

    __slots__ = ("_owed_bytes", "_seen", "_stopped", "_worked", "bytes_per_second", "done_bytes")

    def __init__(self, bytes_per_second: float) -> None:
        self.bytes_per_second = bytes_per_second
        """May be changed by any thread, and holds at once."""
        self._owed_bytes = 0.0
        """Done too early for this speed. What was done too late is not made up for."""
        self._seen = time.perf_counter()
        """Since then, time pays for them."""
        self._worked: float | None = None
        """What the thread had used of its core when it last rested: to wait for one is no work."""
        self._stopped = False
        self.done_bytes = 0

    def stop(self) -> None:
        self._stopped = True

    def breathe(self, size_bytes: int) -> None:
        self.done_bytes += size_bytes
        used = time.thread_time()
        if self._worked is None:
            self._worked = used  # whoever made us may be another thread
        elif used - self._worked >= WORK_S:
            time.sleep(min((used - self._worked) * REST_RATIO, NAP_S))
            self._worked = time.thread_time()
        self._owed_bytes += size_bytes
        while (owed_s := self._pay()) and not self._stopped:
            time.sleep(min(NAP_S, owed_s))
        if self._stopped:
            raise Stopped

    def _pay(self) -> float:
        """How long it takes until nothing is owed."""
        speed, now = max(1.0, self.bytes_per_second), time.perf_counter()
        self._owed_bytes = max(0.0, self._owed_bytes - (now - self._seen) * speed)
        self._seen = now
        return self._owed_bytes / speed


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
        self._round: list[Compactable] = []
        self._asked: Compact | None = None
        self._pace: Pace | None = None
        """Of the cleaning under way."""
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
        if self._pace is None:
            self._begin_next()

    def stop(self) -> None:
        """What is under way is thrown away. Blocks until the thread has seen it."""
        self._stopped = True
        self._round = []
        if self._pace is not None:
            self._pace.stop()
        if self._worker is not None:
            self._worker.stop()

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

    def _run(self, lane: Lane, log: Log, plan: cleaning.Cleaning) -> None:
        assert self._asked is not None
        if self._worker is None:
            self._worker = Worker(self._loop, "cotidal-cleaner", self._on_fault)
        pace = self._pace = Pace(self._asked.bytes_per_second)
        work = partial(
            cleaning.run,
            plan,
            keys_max=key_map.capacity(self._asked.key_bytes),
            now_wall=wall_millis(),
            breathe=pace.breathe,
        )

        def told(outcome: Outcome[cleaning.Cleaned]) -> None:
            self._counters.compacted_bytes += pace.done_bytes
            self._pace = None
            match outcome:
                case Done(cleaned) if self._lanes.get(lane.partition) is lane:
                    self._slow(
                        lane,
                        work=lambda now: (  # not the same once it was moved
                            now.end_cleaning(plan, cleaned, wall_millis()) if now is log else None
                        ),
                        then=partial(self._on_put_in_place, lane),
                    )
                case Done() | Failed(Stopped()):
                    pass
                case Failed(LogError() as error) if lane.log is log and log.fits(plan):
                    self._fail(lane, error)
                case Failed(error) if isinstance(error, LogError | OSError):
                    self._journal.warning(f"{lane.partition} could not be compacted: {error}")
                case Failed(error):
                    raise error
            self._begin_next()

        self._worker.submit(work, told)

    def _on_put_in_place(self, lane: Lane, compacted: Compacted | None) -> None:
        if compacted is not None:
            self._journal.info(compacted.sentence)
            self._put_in_place(lane)


def _ignore(_: object) -> None:
    return None
