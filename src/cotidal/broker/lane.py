"""One log and the order of what is done to it.

A log is used by one thread at a time. Quick work runs on the event loop; slow work goes to a
worker, and until it is back the log is busy: whatever comes for it in the meantime waits here and
is done afterwards, in the order in which it came. Other logs go on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import TypeVar

from cotidal.broker.directory import Directory
from cotidal.broker.worker import Outcome, Worker
from cotidal.log.log import Log
from cotidal.values import TopicPartition, Uuid

T = TypeVar("T")

NEVER = (1 << 63) - 1


class Lane:
    """State of one partition's log on this disk."""

    __slots__ = (
        "_busy",
        "_waiting",
        "cold_until",
        "directory",
        "failed",
        "flush_messages",
        "flush_ms",
        "log",
        "partition",
        "topic_id",
        "unflushed",
        "unflushed_since",
    )

    def __init__(
        self, partition: TopicPartition, topic_id: Uuid, directory: Directory | None
    ) -> None:
        self.partition = partition
        self.topic_id = topic_id
        self.directory = directory
        """None when it may be in one that is offline."""
        self.log: Log | None = None
        """None while it is being opened, and when that failed."""
        self.failed = False
        """The disk has refused it something: it must be recovered before it is believed again."""
        self.flush_messages = NEVER
        self.flush_ms = NEVER
        self.unflushed = 0
        """Records since the last flush; counted only where flush.messages or flush.ms is set."""
        self.unflushed_since = 0.0
        self.cold_until = 0.0
        """Until then reads go to a thread: one has met the disk."""
        self._busy = False
        self._waiting: deque[Callable[[], None]] = deque()

    def configure(self, settings: Mapping[str, str]) -> None:
        self.flush_messages = int(settings.get("flush.messages", NEVER))
        self.flush_ms = int(settings.get("flush.ms", NEVER))

    @property
    def is_offline(self) -> bool:
        """Told as failed: by itself, or with its directory."""
        return self.failed or (self.directory is not None and self.directory.error is not None)

    @property
    def busy(self) -> bool:
        return self._busy

    def wait(self, work: Callable[[], None]) -> None:
        """Do it when everything that came before it is done. Only while the lane is busy."""
        assert self._busy
        self._waiting.append(work)

    def run_in(
        self, worker: Worker, work: Callable[[], T], then: Callable[[Outcome[T]], None]
    ) -> None:
        """Slow work: the log is the worker's until ``then`` has been told the outcome."""
        assert not self._busy
        self._busy = True

        def back(outcome: Outcome[T]) -> None:
            self._busy = False
            then(outcome)
            while self._waiting and not self._busy:
                self._waiting.popleft()()

        worker.submit(work, back)
