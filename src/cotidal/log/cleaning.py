"""One cleaning of a log: closed segments are read, and written anew without superseded records.

Two walks. The first takes the keys of the dirty part into a map, as many as fit. The second goes
from the start of the log to the last offset of that map, and writes what stays into `.cleaned`
files: of a key the record that the map calls newest and everything of which it knows nothing;
tombstones and markers until their delete horizon has passed. Records without a key go: no later one
can replace them.

Three kinds of batches stay although no record of theirs does, emptied, for others rest on them:

  the last of each producer still known  its next sequence follows from it (IDEMPOTENT_ONCE)
  the first of each leader epoch         replicas find where they part by it (EPOCHS_MATCH_LOG)
  the last of each new segment           so that it ends where the next one begins

The log itself is not touched: it is appended to, read and cut meanwhile, and decides at the end
whether what was made still fits (log.py, swap.py). A batch whose records cannot be read stays as it
is; one that fails its checksum ends the cleaning.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from cotidal.errors import MalformedFrame
from cotidal.log.compaction import group_by_size
from cotidal.log.failure import CorruptLog
from cotidal.log.filesystem import FileSystem
from cotidal.log.key_map import KeyMap
from cotidal.log.retention import SegmentFacts
from cotidal.log.roll import RELATIVE_OFFSET_MAX
from cotidal.log.scan import Damage, walk
from cotidal.log.segment import SUFFIXES, Segment, segment_name
from cotidal.log.transactions_seen import TransactionsSeen
from cotidal.messages.batch import HEADER_BYTES, BatchHeader
from cotidal.messages.producers import AbortedTransaction
from cotidal.values import NO_EPOCH, Offset, WallMillis
from cotidal.wire.batch import read_batches, read_header
from cotidal.wire.markers import read_marker
from cotidal.wire.thinning import (
    SPANS_AT_ONCE,
    Span,
    emptied,
    record_bytes,
    record_spans,
    thinned,
)

CLEANED: Final = ".cleaned"

IO_BYTES: Final = 512 * 1024
"""Read and written at once: Kafka's default of log.cleaner.io.buffer.size."""

Breathe = Callable[[int], None]
"""Told of so many bytes read or written: may pause, and may raise to end the cleaning."""


class Cleaning(NamedTuple):
    """What is to be cleaned, as the log was when it was asked."""

    filesystem: FileSystem
    directory: str
    sources: tuple[SegmentFacts, ...]
    first_dirty: Offset
    end_offset: Offset
    dirty_ratio: float
    aborted: tuple[AbortedTransaction, ...]
    producers: frozenset[int]
    """Those that are still known: the last batch of each stays."""
    segment_bytes: int
    index_interval_bytes: int
    delete_retention_ms: int
    generation: int
    """How many times the log had been cut."""


class CleanedSegment(NamedTuple):
    """A new segment, on the disk as `.cleaned`, and the bases of those whose place it takes."""

    base_offset: Offset
    size_bytes: int
    bytes_before: int
    replaces: tuple[Offset, ...]


class Cleaned(NamedTuple):
    segments: tuple[CleanedSegment, ...]
    """Ascending; only those that differ from what they replace."""
    end_offset: Offset
    """Up to here no older record of a key is left: the log is clean below it."""
    keys: int

    def __str__(self) -> str:
        before = sum(each.bytes_before for each in self.segments)
        after = sum(each.size_bytes for each in self.segments)
        return (
            f"compacted up to offset {self.end_offset}: {before} bytes in"
            f" {sum(len(each.replaces) for each in self.segments)} segments became {after} in"
            f" {len(self.segments)}, by {self.keys} keys"
        )


def run(cleaning: Cleaning, *, keys_max: int, now_wall: WallMillis, breathe: Breathe) -> Cleaned:
    """Read and write; everything made is synced. CorruptLog or OSError when it cannot be done, and
    whatever ``breathe`` raises: then nothing that was made is left."""
    try:
        return _Work(cleaning, keys_max, now_wall, breathe).run()
    except BaseException:
        discard(cleaning)
        raise


def discard(cleaning: Cleaning) -> None:
    """Remove what was made: the log has changed meanwhile, or the cleaning was not finished."""
    for source in cleaning.sources:
        for suffix in SUFFIXES:
            with contextlib.suppress(OSError):  # else the next open clears it away
                path = f"{cleaning.directory}/{segment_name(source.base_offset)}{suffix}{CLEANED}"
                cleaning.filesystem.unlink(path)


class _Read(NamedTuple):
    header: BatchHeader
    batch: bytes
    is_last: bool
    """Of its segment."""


class _Work:
    """One run."""

    def __init__(
        self, cleaning: Cleaning, keys_max: int, now_wall: WallMillis, breathe: Breathe
    ) -> None:
        self._cleaning = cleaning
        self._keys = KeyMap(keys_max)
        self._now = now_wall
        self._breathe = breathe
        self._last_of: dict[int, tuple[bool, int]] = {}
        """Of each producer that is still known, the last batch: whether it holds data, and its last
        offset. A marker counts only where there is no data: it has no sequence."""
        self._epoch: int = NO_EPOCH
        self._transactions = TransactionsSeen(cleaning.aborted)

    def run(self) -> Cleaned:
        self._take_keys()
        end = Offset(self._keys.latest + 1)
        reached = [each for each in self._cleaning.sources if each.base_offset < end]
        groups = group_by_size(
            reached, bytes_max=self._cleaning.segment_bytes, offsets_max=RELATIVE_OFFSET_MAX
        )
        made = [self._clean(group) for group in groups]
        if any(each is not None for each in made):
            self._cleaning.filesystem.sync_directory(self._cleaning.directory)
        return Cleaned(tuple(each for each in made if each is not None), end, len(self._keys))

    # The first walk

    def _take_keys(self) -> None:
        cleaning = self._cleaning
        seen = TransactionsSeen(cleaning.aborted)
        for source in cleaning.sources:
            if source.end_offset <= cleaning.first_dirty:
                self._note_producers(source)
                continue
            for header, batch, _ in self._batches(source):
                if self._keys.is_full:
                    return
                self._note_producer(header)
                if header.is_control:
                    seen.is_last_of_its_own(header, read_marker(header, batch))
                elif not seen.is_aborted(header) and header.last_offset >= cleaning.first_dirty:
                    self._note_keys(header, batch)
                self._keys.latest = header.last_offset

    def _note_keys(self, header: BatchHeader, batch: bytes) -> None:
        found = self._spans(header, batch)
        if found is None:
            return
        base, first = header.base_offset, self._cleaning.first_dirty
        note = self._keys.note
        for spans in self._by_turns(found[1]):
            for _, _, _, delta, key, _ in spans:
                if key is not None and base + delta >= first:
                    note(key, base + delta)

    def _note_producers(self, source: SegmentFacts) -> None:
        """Of a segment that is clean already: only the headers are looked at."""
        if not self._cleaning.producers:
            return
        file = self._cleaning.filesystem.open(self._path(source, ".log"))
        try:
            for found in walk(
                file,
                position=0,
                end=source.size_bytes,
                next_offset=source.base_offset,
                check_crc=False,
            ):
                if isinstance(found, Damage):
                    raise self._damaged(source, found.position, found.reason, source.base_offset)
                self._note_producer(found.header)
                self._breathe(HEADER_BYTES)
        finally:
            file.close()

    def _note_producer(self, header: BatchHeader) -> None:
        if header.producer_id in self._cleaning.producers:
            found = (not header.is_control, int(header.last_offset))
            known = self._last_of.get(header.producer_id, found)
            self._last_of[header.producer_id] = max(known, found)

    # The second walk

    def _clean(self, group: tuple[SegmentFacts, ...]) -> CleanedSegment | None:
        """None if it would be no different."""
        cleaning = self._cleaning
        base = Offset(group[0].base_offset)
        target = Segment(
            cleaning.filesystem,
            cleaning.directory,
            base,
            size=0,
            created=self._now,
            index_interval_bytes=cleaning.index_interval_bytes,
            suffix=CLEANED,
        )
        target.unlink()  # of an earlier cleaning that could not clear up after itself
        target.create()
        changed = len(group) > 1
        unwritten: list[bytes] = []
        size = 0
        try:
            for source in group:
                for read in self._batches(source):
                    stays = self._what_stays(read, is_last=read.is_last and source is group[-1])
                    changed = changed or stays is not read.batch
                    if stays is not None:
                        unwritten.append(stays)
                        size += len(stays)
                    if size >= IO_BYTES:
                        _write(target, unwritten)
                        size = 0
            _write(target, unwritten)
            self._keep_aborted(target, group)
            target.seal()
            if changed:
                for file in target.files_to_sync():
                    file.sync()
        finally:
            target.close()
        if not changed:
            target.unlink()
            return None
        before = sum(source.size_bytes for source in group)
        replaces = tuple(Offset(source.base_offset) for source in group)
        return CleanedSegment(base, target.size, before, replaces)

    def _keep_aborted(self, target: Segment, group: tuple[SegmentFacts, ...]) -> None:
        """Also when there are none left: the old index must not be taken for the new one's."""
        files = self._cleaning.filesystem
        if any(files.exists(self._path(source, ".txnindex")) for source in group):
            target.aborted.create()
        target.aborted.append(self._transactions.kept_aborted)
        self._transactions.kept_aborted.clear()

    def _what_stays(self, read: _Read, *, is_last: bool) -> bytes | None:
        """The batch itself, another one in its place, or None."""
        header, batch, _ = read
        begins_epoch = header.leader_epoch > self._epoch
        self._epoch = max(self._epoch, header.leader_epoch)
        if header.is_control:
            kept = self._marker_that_stays(header, batch)
        elif self._transactions.is_aborted(header):
            kept = None
        else:
            kept = self._records_that_stay(header, batch)
        if kept is not None:
            return kept
        this = (not header.is_control, header.last_offset)
        is_producers_last = self._last_of.get(header.producer_id) == this
        if not (begins_epoch or is_last or is_producers_last):
            return None
        return batch if header.record_count == 0 else emptied(header)

    def _marker_that_stays(self, header: BatchHeader, batch: bytes) -> bytes | None:
        marker = read_marker(header, batch)
        alone = self._transactions.is_last_of_its_own(header, marker)
        if header.record_count == 0:
            return None
        horizon = header.delete_horizon
        if not alone or marker is None:
            return batch
        if horizon is None:
            data, spans = record_bytes(header, batch), self._spans(header, batch)
            assert spans is not None, "its marker was read"
            return thinned(header, data, spans[1], delete_horizon=self._horizon())
        return None if horizon <= self._now else batch

    def _records_that_stay(self, header: BatchHeader, batch: bytes) -> bytes | None:
        if header.record_count == 0:
            return None
        if header.base_offset > self._keys.latest:
            return batch
        found = self._spans(header, batch)
        if found is None:
            return batch
        data, spans = found
        horizon = header.delete_horizon
        keeps_tombstones = horizon is None or self._now < horizon
        base, latest, newest = header.base_offset, self._keys.latest, self._keys.newest
        kept: list[Span] = []
        tombstones = False
        for some in self._by_turns(spans):
            for span in some:
                offset, key, has_value = base + span[3], span[4], span[5]
                if offset <= latest and (
                    key is None or newest(key) > offset or not (has_value or keeps_tombstones)
                ):
                    continue
                tombstones = tombstones or not has_value
                kept.append(span)
        if not kept:
            return None
        needs_horizon = tombstones and horizon is None
        if len(kept) == len(spans) and not needs_horizon:
            return batch
        return thinned(
            header, data, kept, delete_horizon=self._horizon() if needs_horizon else None
        )

    def _horizon(self) -> int:
        return self._now + self._cleaning.delete_retention_ms

    # Reading

    def _spans(self, header: BatchHeader, batch: bytes) -> tuple[bytes, list[Span]] | None:
        """The records of a batch; None if they cannot be read. Its checksum is right: a producer
        has sent it so, before the topic was compacted."""
        try:
            data = record_bytes(header, batch)
            return data, record_spans(header, data, self._pause)
        except MalformedFrame:
            return None

    def _by_turns(self, spans: list[Span]) -> Iterator[list[Span]]:
        for first in range(0, len(spans), SPANS_AT_ONCE):
            self._pause()
            yield spans[first : first + SPANS_AT_ONCE]

    def _pause(self) -> None:
        self._breathe(0)

    def _batches(self, source: SegmentFacts) -> Iterator[_Read]:
        """Every batch of a segment, its checksum compared, and its offsets, which no checksum
        covers, with those around it."""
        file = self._cleaning.filesystem.open(self._path(source, ".log"))
        try:
            position = 0
            wanted = IO_BYTES
            expected = source.base_offset
            while position < source.size_bytes:
                data = file.pread(min(wanted, source.size_bytes - position), position)
                found = read_batches(data)
                if not found.headers:
                    if found.fault is None and len(data) >= HEADER_BYTES:
                        size = read_header(data).size_bytes
                        if wanted < size <= source.size_bytes - position:
                            wanted = size
                            continue
                    reason = found.fault or "a batch is cut short"
                    raise self._damaged(source, position, reason, expected)
                wanted = IO_BYTES
                at = 0
                for header in found.headers:
                    self._breathe(header.size_bytes)
                    if not expected <= header.base_offset <= header.last_offset < source.end_offset:
                        reason = f"offsets {header.base_offset} to {header.last_offset}"
                        reason += f" where {expected} or more was due"
                        raise self._damaged(source, position + at, reason, expected)
                    batch = data[at : at + header.size_bytes]
                    at += header.size_bytes
                    expected = header.next_offset
                    yield _Read(header, batch, position + at == source.size_bytes)
                position += at
        finally:
            file.close()

    def _path(self, source: SegmentFacts, suffix: str) -> str:
        return f"{self._cleaning.directory}/{segment_name(source.base_offset)}{suffix}"

    def _damaged(self, source: SegmentFacts, position: int, reason: str, offset: int) -> CorruptLog:
        name = self._cleaning.directory.rpartition("/")[2]
        file = segment_name(source.base_offset)
        return CorruptLog(f"{name}: {file}.log is damaged at byte {position}: {reason}", offset)


def _write(target: Segment, batches: list[bytes]) -> None:
    if batches:
        target.append(batches)
        for batch in batches:
            header = read_header(batch)
            target.note(header.size_bytes, header.next_offset, header.max_timestamp)
        batches.clear()
