"""The offset checkpoints of a log directory: high watermarks, recovery points, log starts, and up
to where logs were compacted.

Written by a worker, each as a whole, and only when it has changed. One that cannot be read counts
as empty: recovery then looks at everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from cotidal.broker.journal import Journal
from cotidal.broker.worker import Failed, Outcome, Worker
from cotidal.log.checkpoint import (
    CLEANED_TO,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    decode_offsets,
    encode_offsets,
)
from cotidal.log.filesystem import FileSystem
from cotidal.log.log import Log
from cotidal.values import Offset, TopicPartition

Offsets = dict[TopicPartition, Offset]


class Checkpoints:
    def __init__(
        self,
        files: FileSystem,
        path: str,
        worker: Worker,
        journal: Journal,
        refused: Callable[[str], None],
    ) -> None:
        """``refused``: the disk did not take one of them."""
        self._files = files
        self._path = path
        self._worker = worker
        self._journal = journal
        self._refused = refused
        self._written: dict[str, bytes] = {}
        """As they are on the disk, or on their way."""
        self.high_watermarks = self._read(HIGH_WATERMARKS)
        self.recovery_points = self._read(RECOVERY_POINTS)
        self.log_starts = self._read(LOG_STARTS)
        self.cleaned_to = self._read(CLEANED_TO)

    def save_high_watermarks(self, watermarks: Iterable[tuple[TopicPartition, Offset]]) -> None:
        self.high_watermarks.update(watermarks)
        self._write(HIGH_WATERMARKS, self.high_watermarks)

    def save_offsets(self, logs: Iterable[tuple[TopicPartition, Log]]) -> None:
        for partition, log in logs:
            self.recovery_points[partition] = log.recovery_point
            self.log_starts[partition] = log.start_offset
            if log.cleaned_to or partition in self.cleaned_to:
                self.cleaned_to[partition] = log.cleaned_to
        self._write(RECOVERY_POINTS, self.recovery_points)
        self._write(LOG_STARTS, self.log_starts)
        if self.cleaned_to or CLEANED_TO in self._written:
            self._write(CLEANED_TO, self.cleaned_to)

    def adopt(self, partition: TopicPartition, others: Checkpoints, log: Log) -> None:
        """A log comes here from another directory; recovery would look at all of it."""
        if partition in others.high_watermarks:
            self.high_watermarks[partition] = others.high_watermarks[partition]
        self.log_starts[partition] = log.start_offset
        if log.cleaned_to:
            self.cleaned_to[partition] = log.cleaned_to
            self._write(CLEANED_TO, self.cleaned_to)
        self._write(HIGH_WATERMARKS, self.high_watermarks)
        self._write(LOG_STARTS, self.log_starts)

    def forget(self, partition: TopicPartition) -> None:
        """Its log is gone; one of the same name begins anew."""
        for offsets in (
            self.high_watermarks,
            self.recovery_points,
            self.log_starts,
            self.cleaned_to,
        ):
            offsets.pop(partition, None)

    def _read(self, name: str) -> Offsets:
        try:
            return decode_offsets(self._files.read(f"{self._path}/{name}"), name)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as wrong:
            self._journal.warning(f"{self._path}: {wrong}; it counts as empty")
            return {}

    def _write(self, name: str, offsets: Offsets) -> None:
        data = encode_offsets(offsets)
        if self._written.get(name) != data:
            self._written[name] = data
            write = partial(self._files.write, f"{self._path}/{name}", data)
            self._worker.submit(write, partial(self._told, name))

    def _told(self, name: str, outcome: Outcome[None]) -> None:
        if isinstance(outcome, Failed):
            self._written.pop(name, None)
            self._refused(f"{self._path}/{name} could not be written: {outcome.error}")
