"""The producer snapshots of a partition, and what has come after one of them.

A snapshot that cannot be read is removed and the one before it taken: the batches in between say
the same. They are streamed, and only the headers of those that have a producer are kept.

Of each producer the file has the last batch alone (it is Kafka's), and a client may have five in
flight: what the log holds shortly before the snapshot is read too, so that one of them that is sent
again after a restart is known (IDEMPOTENT_ONCE).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from cotidal.limits import PRODUCER_WINDOW_ENTRIES
from cotidal.log.failure import CorruptLog
from cotidal.log.filesystem import FileSystem
from cotidal.log.producer_snapshot import decode_snapshot, encode_snapshot
from cotidal.log.segment import Segment
from cotidal.messages.batch import BatchHeader, Marker
from cotidal.messages.producers import ProducerSnapshot
from cotidal.values import Offset
from cotidal.wire.markers import read_marker

_SUFFIX = ".snapshot"


class SnapshotFiles:
    __slots__ = ("_directory", "_filesystem")

    def __init__(self, filesystem: FileSystem, directory: str) -> None:
        self._filesystem = filesystem
        self._directory = directory

    def save(self, snapshot: ProducerSnapshot) -> None:
        """Not synced: one that a crash spoils fails its crc, and the one before it serves."""
        self._filesystem.write(self._path(snapshot.offset), encode_snapshot(snapshot), sync=False)

    def latest(self, at_most: int) -> tuple[ProducerSnapshot | None, list[str]]:
        """The newest readable one, and sentences about those that were not."""
        unreadable: list[str] = []
        for offset in reversed(self.offsets()):
            if offset > at_most:
                continue
            path = self._path(offset)
            try:
                return decode_snapshot(Offset(offset), self._filesystem.read(path)), unreadable
            except ValueError as wrong:
                unreadable.append(f"removed {path.rpartition('/')[2]}: {wrong}")
                self._filesystem.unlink(path)
        return None, unreadable

    def drop_above(self, offset: int) -> bool:
        """Whether there were any."""
        late = [each for each in self.offsets() if each > offset]
        for each in reversed(late):
            self._filesystem.unlink(self._path(each))
        return bool(late)

    def drop_below(self, offset: int) -> None:
        """Those before the start of the log; but the newest of all stays."""
        for each in self.offsets()[:-1]:
            if each < offset:
                self._filesystem.unlink(self._path(each))

    def offsets(self) -> list[int]:
        return [
            int(name[:20])
            for name in self._filesystem.listdir(self._directory)
            if name.endswith(_SUFFIX) and len(name) == 20 + len(_SUFFIX) and name[:20].isdigit()
        ]

    def _path(self, offset: int) -> str:
        return f"{self._directory}/{offset:020d}{_SUFFIX}"


def batches_before(segments: Sequence[Segment], offset: int) -> tuple[BatchHeader, ...]:
    """The headers of the last batches with a producer that end below ``offset``: as many as the
    last few entries of the index lead to. Damage ends it; who must read there tells of it."""
    headers: list[BatchHeader] = []
    left = PRODUCER_WINDOW_ENTRIES
    for segment in reversed(segments):
        if segment.base_offset >= offset or segment.size == 0:
            continue
        found: list[BatchHeader] = []
        with suppress(CorruptLog):
            place = segment.locate(segment.offsets.before(offset, left))
            for each in segment.good_batches(*place):
                if each.header.last_offset >= offset:
                    break
                if each.header.producer_id >= 0:
                    found.append(each.header)
        headers[:0] = found
        left -= len(segment.offsets.entries) + 1
        if left <= 0:
            break
    return tuple(headers)


class After(NamedTuple):
    """What has come after a snapshot."""

    headers: tuple[BatchHeader, ...]
    markers: tuple[Marker, ...]
    damaged: tuple[str, ...]
    """Places from which on a segment could not be read."""


def batches_after(segments: Sequence[Segment], first_offset: int) -> After:
    """The headers from ``first_offset`` on of batches with a producer, and what the control
    batches among them say. A damaged segment is left at its damage, and the next one read."""
    headers: list[BatchHeader] = []
    markers: list[Marker] = []
    damaged: list[str] = []
    for number, segment in enumerate(segments):
        passed = number + 1 < len(segments) and segments[number + 1].base_offset <= first_offset
        if passed or segment.size == 0:
            continue
        try:
            for found in segment.good_batches(*segment.locate(first_offset)):
                if found.header.producer_id < 0:
                    continue
                headers.append(found.header)
                if found.header.is_control:
                    batch = segment.file().pread(found.header.size_bytes, found.position)
                    marker = read_marker(found.header, batch)
                    if marker is not None:
                        markers.append(marker)
        except CorruptLog as damage:
            damaged.append(str(damage))
    return After(tuple(headers), tuple(markers), tuple(damaged))
