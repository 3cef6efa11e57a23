"""The offsets of all logs of a simulated node, as its disk keeps them beside the logs.

The twin of broker/checkpoints.py: written whole, now and then. One that cannot be read counts as
empty, and recovery then looks at everything; one that cannot be written is tried again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cotidal.log.checkpoint import (
    CLEANED_TO,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    decode_offsets,
    encode_offsets,
)
from cotidal.log.log import Log
from cotidal.log.memory import MemoryFiles
from cotidal.values import Offset, TopicPartition

Offsets = dict[TopicPartition, Offset]


class Checkpoints:
    def __init__(self, files: MemoryFiles, directory: str) -> None:
        self._files = files
        self._directory = directory
        self.high_watermarks = self._read(HIGH_WATERMARKS)
        self.recovery_points = self._read(RECOVERY_POINTS)
        self.log_starts = self._read(LOG_STARTS)
        self.cleaned_to = self._read(CLEANED_TO)

    def forget(self, partition: TopicPartition) -> None:
        known = (self.high_watermarks, self.recovery_points, self.log_starts, self.cleaned_to)
        for offsets in known:
            offsets.pop(partition, None)

    def save_high_watermarks(self, moved: Iterable[tuple[TopicPartition, Offset]]) -> None:
        self.high_watermarks.update(moved)
        self._write(HIGH_WATERMARKS, self.high_watermarks)

    def save_logs(self, logs: Iterator[tuple[TopicPartition, Log]]) -> None:
        """Where each log begins, and up to where it is on the disk and compacted."""
        for partition, log in logs:
            self.recovery_points[partition] = log.recovery_point
            self.log_starts[partition] = log.start_offset
            self.cleaned_to[partition] = log.cleaned_to
        self._write(CLEANED_TO, self.cleaned_to)
        self._write(RECOVERY_POINTS, self.recovery_points)
        self._write(LOG_STARTS, self.log_starts)

    def _read(self, name: str) -> Offsets:
        try:
            return decode_offsets(self._files.read(f"{self._directory}/{name}"), name)
        except (OSError, ValueError):
            return {}

    def _write(self, name: str, offsets: Offsets) -> None:
        try:
            self._files.write(f"{self._directory}/{name}", encode_offsets(offsets))
        except OSError:
            pass
