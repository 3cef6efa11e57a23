"""Obeys Append: on the event loop while the disk keeps up, else large ones in a thread.

The kernel makes a writer wait when too much is not yet on the disk. So an append that waited longer
than APPEND_STALL_MS (stalls.py) sends large ones to a thread for CAREFUL_S. Measured with 1 MB
requests beside a client that sends small ones (2 cores): always on the loop 1,000 MB/s with 690 us
of CPU each, but a p99 of 5 to 17 ms for the small ones; always in a thread 820 MB/s, 1,320 us,
0.2 ms (the bytes move to another core's cache). sync_file_range hints every 8 MB did not shorten
the stalls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from cotidal.broker.counters import Counters
from cotidal.broker.driver import wall_millis
from cotidal.broker.flushing import Flushing
from cotidal.broker.lane import Lane
from cotidal.broker.stalls import Stopwatch
from cotidal.broker.worker import Done, Failed, Outcome, Worker
from cotidal.limits import APPEND_STALL_MS, LARGE_APPEND_BYTES
from cotidal.log.contract import Appended as Written
from cotidal.log.failure import LogError, NotOpen
from cotidal.node.effects import Append
from cotidal.node.events import Appended
from cotidal.values import NO_TIMESTAMP, TopicPartition, WallMillis

CAREFUL_S: Final = 10.0
"""How long large appends go to the thread after one stalled the loop."""


class Appending:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        lanes: Mapping[TopicPartition, Lane],
        worker: Worker,
        flushing: Flushing,
        *,
        post: Callable[[Appended], None],
        hold: Callable[[int], None],
        failed: Callable[[Lane, Exception], None],
        counters: Counters,
    ) -> None:
        self._loop = loop
        self._lanes = lanes
        self._worker = worker
        self._flushing = flushing
        self._post = post
        self._hold = hold
        self._failed = failed
        self._counters = counters
        self._careful_until = 0.0

    def append(self, effect: Append) -> None:
        lane = self._lanes[effect.partition]
        if lane.busy:
            size = _size(effect)
            self._hold(size)
            lane.wait(partial(self._append_held, lane, effect, size))
        else:
            self._append(lane, effect)

    def _append_held(self, lane: Lane, effect: Append, size: int) -> None:
        self._hold(-size)
        self._append(lane, effect)

    def _append(self, lane: Lane, effect: Append) -> None:
        log = lane.log
        if log is None:
            self._failed(lane, NotOpen(lane.partition))
            return
        now = wall_millis()
        entries, stamp_time = effect.entries, effect.stamp_time
        stamp = now if stamp_time else None
        must_flush = self._flushing.is_due(lane, effect)
        size = _size(effect)
        if entries[0].base_offset is None:
            self._counters.replicated_in_bytes += size
        else:
            self._counters.produced_bytes += size
        is_large = size >= LARGE_APPEND_BYTES
        if not must_flush and not (is_large and self._loop.time() < self._careful_until):
            watch = Stopwatch() if is_large else None
            try:
                written = log.append(entries, now, stamp_time=stamp_time)
            except LogError as error:
                self._failed(lane, error)
                return
            if watch is not None and watch.has_waited(APPEND_STALL_MS):
                self._careful_until = self._loop.time() + CAREFUL_S
            self._told(lane, written, stamp)
            return

        def write() -> Written:
            written = log.append(entries, now, stamp_time=stamp_time)
            if must_flush:
                log.flush()
            return written

        self._hold(size)
        lane.run_in(self._worker, write, partial(self._on_written, lane, size, stamp))

    def _on_written(
        self, lane: Lane, size: int, stamp: WallMillis | None, outcome: Outcome[Written]
    ) -> None:
        self._hold(-size)
        match outcome:
            case Done(written):
                self._told(lane, written, stamp)
            case Failed(error):
                self._failed(lane, error)

    def _told(self, lane: Lane, written: Written, stamp: WallMillis | None) -> None:
        end_offset, rolled = written
        self._flushing.on_appended(lane, rolled)
        time = NO_TIMESTAMP if stamp is None else stamp
        self._post(Appended(lane.partition, lane.topic_id, end_offset, time, rolled))


def _size(effect: Append) -> int:
    return sum(len(entry.batches.data) for entry in effect.entries)
