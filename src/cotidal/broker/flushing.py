"""When logs are flushed: flush.messages, flush.ms, and after a segment is closed.

flush.messages: an append that brings a log past it is answered after the fsync, so that
flush.messages=1 means that an acknowledged record is on the disk. flush.ms: one timer for all such
logs, and none while nothing of theirs is unflushed. Both are unset by default, as in Kafka: what is
acknowledged is in the page cache of every in-sync replica.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from cotidal.broker.lane import NEVER, Lane
from cotidal.broker.worker import Done, Failed, Outcome, Worker
from cotidal.log.failure import LogError
from cotidal.node.effects import Append
from cotidal.values import TopicPartition

SWEEP_S: Final = 0.5
"""How late a flush by flush.ms may be."""


class Flushing:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        worker: Worker,
        lanes: Mapping[TopicPartition, Lane],
        fail: Callable[[Lane, LogError], None],
    ) -> None:
        self._loop = loop
        self._worker = worker
        self._lanes = lanes
        self._fail = fail
        self._timer: asyncio.TimerHandle | None = None

    def is_due(self, lane: Lane, effect: Append) -> bool:
        """This append brings the log to flush.messages: it is to be flushed with it."""
        if lane.flush_messages == NEVER:
            return False
        lane.unflushed += sum(
            header.record_count for entry in effect.entries for header in entry.batches.headers
        )
        if lane.unflushed < lane.flush_messages:
            return False
        lane.unflushed = 0
        return True

    def on_appended(self, lane: Lane, rolled: bool) -> None:
        if rolled:  # so that a crash later need not walk what is closed now
            self.flush_beside(lane)
        if lane.flush_ms != NEVER and not lane.unflushed_since:
            lane.unflushed_since = self._loop.time()
            if self._timer is None:
                self._timer = self._loop.call_later(SWEEP_S, self._sweep)

    def flush_beside(self, lane: Lane) -> None:
        """Sync what is in the log now, while it is appended to and read from."""
        log = lane.log
        if log is None:
            return
        try:
            flush = log.begin_flush()
        except LogError as error:
            self._fail(lane, error)
            return

        def end() -> None:
            if lane.log is log:
                log.end_flush(flush)

        def synced(outcome: Outcome[None]) -> None:
            match outcome:
                case Done() if lane.busy:  # as it is after each segment: its producers are saved
                    lane.wait(end)
                case Done():
                    end()
                case Failed(OSError() as error):
                    self._fail(lane, log.fail_flush(error))
                case Failed(error):
                    raise error

        self._worker.submit(flush.run, synced)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sweep(self) -> None:
        self._timer = None
        more = False
        now = self._loop.time()
        for lane in self._lanes.values():
            if not lane.unflushed_since:
                continue
            if lane.busy or (now - lane.unflushed_since) * 1000 < lane.flush_ms:
                more = True
            else:
                lane.unflushed_since = 0.0
                self.flush_beside(lane)
        if more:
            self._timer = self._loop.call_later(SWEEP_S, self._sweep)
