"""One segment: a run of batches in a file named after its first offset, with its indexes.

  <base offset, 20 digits>.log .index .timeindex .txnindex

The batches at the tail have their positions in memory (``_ends``, ``_positions``), so a reader who
keeps up costs two bisections and one pread and no batch is looked at. Elsewhere a read walks the
headers in the bytes it has just read, to end at a batch boundary; the crc of a batch is checked
when it lies outside ``_verified``, the range of the file that this process wrote or has checked.
For a reader who only sends on what he reads (``leave``), many bytes within that range are not read
at all: memory, or the index, says where they end. What was appended last, if it is little, is
still in memory: followers that have all the rest ask for just that.

Invariant: ``_positions[i]`` is where the batch begins whose next offset is ``_ends[i]``; both
ascend; the batches are the last ones of the file; offsets from ``_recent_floor`` on are in them.
Not here: when to roll, what to delete, failures' fate (log.py).
"""

from __future__ import annotations

import contextlib
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from cotidal import limits
from cotidal.log.epochs import EpochLine
from cotidal.log.failure import CorruptLog
from cotidal.log.filesystem import File, FileSystem
from cotidal.log.index import OffsetIndex, TimeEntry, TimeIndex
from cotidal.log.scan import (
    Damage,
    Found,
    Front,
    crc_fault,
    front_at,
    front_fault,
    jump_fault,
    unpack_front,
    walk,
)
from cotidal.log.transaction_index import TransactionIndex
from cotidal.messages.batch import HEADER_BYTES, Stretch
from cotidal.values import NO_EPOCH, NO_TIMESTAMP, LeaderEpoch, Offset, WallMillis
from cotidal.wire.batch import CRC_START, LENGTH_START, MAGIC, crc32c

SUFFIXES: Final = (".log", ".index", ".timeindex", ".txnindex")

SEEK_BYTES: Final = 8192
"""Read at once when looking for a batch from an index entry on: two default index intervals."""

LEAVE_BYTES_MIN: Final = 64 * 1024
"""Fewer bytes than this are read although they are only sent on: one system call for them and for
what is around them."""


class Place(NamedTuple):
    """Where a batch begins in the file, and the least offset that it may have."""

    position: int
    offset: int


class Cut(NamedTuple):
    """What a read found: whole batches, and where the next read goes on."""

    data: bytes | memoryview | Stretch
    next: Place


NOTHING: Final = Cut(b"", Place(-1, -1))
_new: Final = tuple.__new__


def segment_name(base_offset: int) -> str:
    return f"{base_offset:020d}"


class Segment:
    __slots__ = (
        "_ends",
        "_file",
        "_filesystem",
        "_positions",
        "_recent_floor",
        "_since_index",
        "_suffix",
        "_tail",
        "_tail_at",
        "_verified_from",
        "_verified_to",
        "_youngest",
        "aborted",
        "base_offset",
        "created",
        "first_timestamp",
        "index_interval_bytes",
        "offsets",
        "path",
        "size",
        "synced",
        "times",
    )

    def __init__(
        self,
        filesystem: FileSystem,
        directory: str,
        base_offset: Offset,
        *,
        size: int,
        created: WallMillis,
        index_interval_bytes: int,
        suffix: str = "",
    ) -> None:
        """``suffix``: of all its files, while it is not one of the log's (cleaning.py)."""
        self._filesystem = filesystem
        self._suffix = suffix
        self.base_offset = base_offset
        self.path = f"{directory}/{segment_name(base_offset)}"
        self.size = size
        self.created = created
        """Wall time when this process made or opened it: its age when no record has a time."""
        self.index_interval_bytes = index_interval_bytes
        self.offsets = OffsetIndex(filesystem, self.path + ".index" + suffix, base_offset)
        self.times = TimeIndex(filesystem, self.path + ".timeindex" + suffix, base_offset)
        self.aborted = TransactionIndex(filesystem, self.path + ".txnindex" + suffix)
        self.first_timestamp: WallMillis | None = None
        """Largest timestamp of the first batch; the segment's age for rolling counts from it."""
        self.synced = False
        self._file: File | None = None
        self._youngest: TimeEntry | None = None if size else TimeEntry(NO_TIMESTAMP, base_offset)
        self._since_index = 0
        self._ends = array("q")
        self._positions = array("q")
        self._recent_floor: int = base_offset if size == 0 else 1 << 62
        self._tail = b""
        """What was appended last, if it was little."""
        self._tail_at = 0
        """Where it stands in the file."""
        self._verified_from = 0
        self._verified_to = 0

    # writing

    def create(self) -> None:
        self._file = self._filesystem.open(self.path + ".log" + self._suffix, create=True)

    def append(self, buffers: Sequence[bytes | memoryview]) -> None:
        """Write; the caller then calls ``note`` for each batch, or ``cut_back`` after an error."""
        self.file().append(buffers)
        self.synced = False
        little = sum(map(len, buffers)) <= limits.LOG_TAIL_BYTES
        self._tail = b"".join(buffers) if little else b""
        self._tail_at = self.size

    def note(self, size_bytes: int, next_offset: int, max_timestamp: WallMillis) -> None:
        """Take in a batch that was written at ``self.size``."""
        position = self.size
        self._ends.append(next_offset)
        self._positions.append(position)
        if len(self._ends) > 2 * limits.LOG_RECENT_BATCHES:
            self._recent_floor = self._ends[limits.LOG_RECENT_BATCHES - 1]
            del self._ends[: limits.LOG_RECENT_BATCHES]
            del self._positions[: limits.LOG_RECENT_BATCHES]
        if position == 0:
            self.first_timestamp = max_timestamp
        youngest = self._youngest or self.youngest()
        if max_timestamp > youngest.timestamp:
            youngest = self._youngest = _new(TimeEntry, (max_timestamp, Offset(next_offset - 1)))
        if self._since_index > self.index_interval_bytes:
            self.offsets.append(next_offset - 1, position)
            self.times.append_if_younger(youngest.timestamp, youngest.offset)
            self._since_index = 0
        self._since_index += size_bytes
        self.size = position + size_bytes
        if self._verified_to == position:
            self._verified_to = self.size

    def index_is_full(self, segment_index_bytes: int) -> bool:
        """One place of the time index is kept for its last entry."""
        return (
            len(self.offsets.entries) >= segment_index_bytes // 8
            or len(self.times.entries) >= segment_index_bytes // 12 - 1
        )

    def cut_back(self) -> None:
        """Remove what is in the file past the last batch noted, such as part of a failed write."""
        if self.file().size > self.size:
            self.file().truncate(self.size)

    def seal(self) -> None:
        """No more batches will come. Ends the time index with the youngest record, as Kafka does,
        and leaves both index files on disk, whole, and no more of the log's than is in it."""
        youngest = self.youngest()
        self.times.append_if_younger(youngest.timestamp, youngest.offset)
        self.offsets.entries.write_pending()
        self.times.entries.write_pending()
        if self._file is not None:
            self._file.finish()

    def forget_recent(self) -> None:
        """Readers have moved on: give the tail's memory back."""
        self._tail = b""
        self._ends = array("q")
        self._positions = array("q")
        self._recent_floor = 1 << 62

    def files_to_sync(self) -> list[File]:
        """Everything buffered is given to the operating system first."""
        files = [self.file(), self.offsets.entries.written_out(), self.times.entries.written_out()]
        aborted = self.aborted.written_out()
        return files if aborted is None else [*files, aborted]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self.offsets.entries.close()
        self.times.entries.close()
        self.aborted.close()

    def unlink(self) -> None:
        self.close()
        for suffix in SUFFIXES:
            with contextlib.suppress(FileNotFoundError):
                self._filesystem.unlink(self.path + suffix + self._suffix)

    def doom(self) -> list[str]:
        """Rename its files to ``.deleted``, the batches first: without them the rest is debris that
        the next open clears away. Returns the paths to unlink later."""
        self.close()
        doomed = []
        for suffix in SUFFIXES:
            with contextlib.suppress(FileNotFoundError):
                self._filesystem.rename(self.path + suffix, self.path + suffix + ".deleted")
                doomed.append(self.path + suffix + ".deleted")
        return doomed

    # reading

    def read_recent(
        self, offset: int, max_bytes: int, below: int, *, whole_first: bool, leave: bool = False
    ) -> bytes | Stretch | None:
        """The read of one who keeps up. None: the offset is not among the recent batches."""
        if offset < self._recent_floor:
            return None
        ends = self._ends
        positions = self._positions
        first = bisect_right(ends, offset)
        after = bisect_right(ends, below)
        if after <= first:
            return b""
        start = positions[first]
        stop = positions[after] if after < len(ends) else self.size
        if stop - start > max_bytes:
            after = bisect_right(positions, start + max_bytes) - 1
            if after > first:
                stop = positions[after]
            elif not whole_first:
                return b""
            elif first + 1 < len(ends):
                stop = positions[first + 1]
            else:
                stop = self.size
        since = start - self._tail_at
        if since >= 0 and stop <= self._tail_at + len(self._tail):
            return self._tail[since : stop - self._tail_at]
        if leave and stop - start >= LEAVE_BYTES_MIN:
            return self.file().leave(stop - start, start)
        return self.file().pread(stop - start, start)

    def read_at(
        self,
        place: Place,
        max_bytes: int,
        below: int,
        *,
        end_offset: int,
        whole_first: bool,
        epochs: EpochLine,
        leave: bool = False,
    ) -> Cut:
        """Whole batches from ``place`` on. Raises CorruptLog when the first one is damaged; a
        later one merely ends the answer. ``end_offset`` is the segment's."""
        left = self._leave_at(place, max_bytes, below) if leave else None
        if left is not None:
            return left
        position, expected = place
        file = self.file()
        data = file.pread(min(max(max_bytes, HEADER_BYTES), self.size - position), position)
        view = memoryview(data)
        at = 0
        epoch = NO_EPOCH
        epoch_end = -1
        while at + HEADER_BYTES <= len(data):
            base, length, batch_epoch, magic, crc, _, delta = unpack_front(data, at)
            size = length + LENGTH_START
            # The ordinary batch, quickly: it follows the last one, in the same epoch, and is whole.
            if not (
                base == expected
                and batch_epoch == epoch
                and base < epoch_end
                and magic == MAGIC
                and 0 <= delta < end_offset - base
                and HEADER_BYTES <= size <= len(data) - at
                and (
                    self._verified_from <= position + at < self._verified_to
                    or crc32c(view[at + CRC_START : at + size]) == crc
                )
            ):
                front = front_at(data, at)
                fault = front_fault(front, next_offset=expected, epoch=epoch, below=end_offset)
                if fault is None and position + at + size > self.size:
                    fault = f"a batch of {size} bytes where {self.size - position - at} are left"
                if fault is None and at + size > len(data):
                    if at > 0 or not whole_first:
                        break
                    data = file.pread(size, position)
                    view = memoryview(data)
                fault = fault or self._fault(front, data, at, position, expected, epochs)
                if fault is not None and at == 0:
                    raise self._damaged(position, fault, expected)
                if fault is not None:
                    break
                epoch, epoch_end = LeaderEpoch(batch_epoch), epochs.next_start(base)
            if base + delta >= below:
                break
            expected = base + delta + 1
            at += size
            if at >= max_bytes:
                break
        else:
            if at == 0:
                raise self._damaged(position, _no_header(len(data)), expected)
        if at == 0:
            return NOTHING
        self._mark_verified(position, position + at)
        return Cut(data if at == len(data) else view[:at], Place(position + at, expected))

    def _leave_at(self, place: Place, max_bytes: int, below: int) -> Cut | None:
        """As many whole batches from ``place`` on as the index tells of, left where they are; None
        when that is not most of what may be read, or they are not known to be good."""
        position = place.position
        if position < self._verified_from:
            return None
        last = self.offsets.within(min(position + max_bytes, self._verified_to - 1), below)
        stop = last.position
        most = min(max_bytes, self.size - position)
        if stop - position < max(LEAVE_BYTES_MIN, most // 2):
            return None
        front = self._front(stop)
        if front is None or front.magic != MAGIC or front.last_offset != last.offset:
            return None  # the ordinary way finds out why
        return Cut(self.file().leave(stop - position, position), Place(stop, front.base_offset))

    def _fault(
        self,
        front: Front,
        data: bytes,
        at: int,
        position: int,
        expected: int,
        epochs: EpochLine,
    ) -> str | None:
        """What is wrong with a batch that lies wholly in ``data``, whose first fields are sane."""
        if self._verified_from <= position + at < self._verified_to:
            return None
        fault = crc_fault(front, data, at) or _epoch_fault(front, epochs)
        if fault is None and front.base_offset > expected:
            fault = jump_fault(
                self.file(),
                front,
                position + at,
                self.size,
                next_offset=expected,
                epoch=NO_EPOCH,
            )
        return fault

    def locate(self, offset: int) -> Place:
        """Where the first batch begins that ends at or after ``offset``; the file's size if none
        does. Makes the indexes anew when they contradict the batches."""
        entry = self.offsets.floor(offset)
        if entry.position:
            front = self._front(entry.position)
            if front is None or front.magic != MAGIC or front.last_offset != entry.offset:
                for _ in self.good_batches(0, self.base_offset):
                    pass  # if a batch is at fault, this raises and the index stays
                self.rebuild_indexes()
                entry = self.offsets.floor(offset)
                front = self._front(entry.position)
            if entry.position and front is not None:
                return self._seek(offset, Place(entry.position, front.base_offset))
        return self._seek(offset, Place(0, self.base_offset))

    def place_to_cut(self, offset: int) -> Place:
        """The same for one who cuts there: that the batch itself is damaged is no matter then.
        CorruptLog when the damage begins before it, at a lesser offset."""
        try:
            return self.locate(offset)
        except CorruptLog:
            place = Place(0, self.base_offset)
            for found in self.batches():
                if isinstance(found, Damage):
                    if place.offset < offset:
                        raise self._damaged(found.position, found.reason, place.offset) from None
                    break
                if found.header.last_offset >= offset:
                    break
                place = Place(found.position + found.header.size_bytes, found.header.next_offset)
            return place

    def _front(self, position: int) -> Front | None:
        """The first fields of what stands at ``position``; None when too little does."""
        data = self.file().pread(HEADER_BYTES, position) if 0 <= position < self.size else b""
        return front_at(data, 0) if len(data) == HEADER_BYTES else None

    def batches(
        self,
        position: int = 0,
        next_offset: int | None = None,
        *,
        check_crc: bool = False,
        below: int = 1 << 62,
        end: int | None = None,
        epoch: int = NO_EPOCH,
        synced_below: int = 0,
    ) -> Iterator[Found | Damage]:
        """Every batch from ``position`` on; at the first damaged one its Damage, and no more."""
        return walk(
            self.file(),
            position=position,
            end=self.size if end is None else end,
            next_offset=self.base_offset if next_offset is None else next_offset,
            below=min(below, self.base_offset + 2**31),  # what indexes can hold
            epoch=epoch,
            check_crc=check_crc,
            synced_below=synced_below,
        )

    def good_batches(self, position: int, next_offset: int) -> Iterator[Found]:
        """The same, but damage raises CorruptLog."""
        for found in self.batches(position, next_offset):
            if isinstance(found, Damage):
                raise self._damaged(found.position, found.reason, next_offset)
            next_offset = found.header.next_offset
            yield found

    def youngest(self) -> TimeEntry:
        """The largest timestamp, and the last offset of the first batch that holds it."""
        if self._youngest is None:
            self._youngest = self.times.last()
        if self._youngest is None:
            self._youngest = self._scan_youngest(1 << 62)
        return self._youngest

    def born(self) -> int:
        """Wall time from which its age counts for retention."""
        timestamp = self.youngest().timestamp
        return timestamp if timestamp >= 0 else self.created

    def oldest(self) -> int:
        """Wall time of its first batch, or when it came to be if that has no time."""
        if self.first_timestamp is None:
            for found in self.batches():
                if not isinstance(found, Damage):
                    self.first_timestamp = found.header.max_timestamp
                break
        has_time = self.first_timestamp is not None and self.first_timestamp >= 0
        return self.first_timestamp if has_time else self.created  # type: ignore[return-value]

    def youngest_below(self, below: int) -> TimeEntry:
        youngest = self.youngest()
        return youngest if youngest.offset < below else self._scan_youngest(below)

    def file(self) -> File:
        if self._file is None:
            self._file = self._filesystem.open(self.path + ".log" + self._suffix)
        return self._file

    # mending

    def rebuild_indexes(self) -> None:
        """From the batches' headers, as if they were appended now."""
        self.reset_indexes()
        size, self.size = self.size, 0
        recent = self._ends, self._positions, self._recent_floor
        verified = self._verified_from, self._verified_to
        for found in self.batches(end=size):
            if isinstance(found, Damage):
                break
            self.note(found.header.size_bytes, found.header.next_offset, found.header.max_timestamp)
        self.seal()
        self.size = size
        self._ends, self._positions, self._recent_floor = recent
        self._verified_from, self._verified_to = verified

    def reset_indexes(self) -> None:
        self.offsets.entries.discard()
        self.times.discard()
        self._since_index = 0
        self._youngest = TimeEntry(NO_TIMESTAMP, self.base_offset)
        self.synced = False

    def cut_at(self, place: Place) -> None:
        """Drop what stands at ``place`` and after it: from the file, the indexes, the aborted
        transactions and memory."""
        self.aborted.truncate_from(place.offset)
        self.rewind(place)
        self.cut_back()
        self.begin_tail(place.offset)

    def rewind(self, place: Place) -> None:
        """Take ``place`` as the end, but leave the file: recovery walks on from here and notes
        the batches that are good."""
        position, offset = place
        self.offsets.truncate_at(position, offset)
        self.times.truncate_from(offset)
        self.size = position
        self._since_index = 0
        self.synced = False
        if position == 0:
            self.first_timestamp = None
            self._youngest = TimeEntry(NO_TIMESTAMP, self.base_offset)
        else:
            self._youngest = self._youngest_after_cut()
        self.begin_tail(offset)

    def begin_tail(self, end_offset: int) -> None:
        """The next batch comes at ``end_offset``, and none of those before are in memory."""
        self._tail = b""
        self._ends = array("q")
        self._positions = array("q")
        self._recent_floor = end_offset
        if self.size and self.first_timestamp is None:
            for found in self.batches():
                self.first_timestamp = (
                    None if isinstance(found, Damage) else found.header.max_timestamp
                )
                break
        if self._verified_to != self.size:
            self._verified_from = self._verified_to = self.size

    def damage_sentence(self, position: int, reason: str, offset: int) -> str:
        directory, _, name = self.path.rpartition("/")
        partition = directory.rpartition("/")[2]
        return (
            f"{partition}: {name}.log is damaged at byte {position}: {reason}; "
            f"offsets from {offset} to the next good segment are not served"
        )

    def _damaged(self, position: int, reason: str, offset: int) -> CorruptLog:
        return CorruptLog(self.damage_sentence(position, reason, offset), offset)

    def _youngest_after_cut(self) -> TimeEntry:
        """The time index tells the youngest up to its last entry; the batches after it the rest."""
        last = self.times.last()
        if last is None:
            return self._scan_youngest(1 << 62)
        youngest = last
        for found in self.batches(*self.locate(last.offset)):
            if isinstance(found, Damage):
                break
            if found.header.max_timestamp > youngest.timestamp:
                youngest = TimeEntry(found.header.max_timestamp, found.header.last_offset)
        return youngest

    def _scan_youngest(self, below: int) -> TimeEntry:
        youngest = TimeEntry(NO_TIMESTAMP, self.base_offset)
        for found in self.batches():
            if isinstance(found, Damage) or found.header.last_offset >= below:
                break
            if found.header.max_timestamp > youngest.timestamp:
                youngest = TimeEntry(found.header.max_timestamp, found.header.last_offset)
        return youngest

    def _seek(self, offset: int, start: Place) -> Place:
        """Step from batch to batch. A gap in the offsets may be compaction's, or a damaged length
        or offset that the crc of the batches stepped over will show."""
        position, expected = start
        data = b""
        chunk = position
        gap = False
        while position < self.size:
            at = position - chunk
            if at + HEADER_BYTES > len(data):
                chunk, at = position, 0
                data = self.file().pread(SEEK_BYTES, position)
            if len(data) < HEADER_BYTES:
                raise self._damaged(position, _no_header(len(data)), expected)
            front = front_at(data, at)
            fault = front_fault(front, next_offset=expected, epoch=NO_EPOCH)
            gap = gap or front.base_offset > expected
            if fault is None and gap and front.last_offset >= offset:
                fault = jump_fault(
                    self.file(),
                    front,
                    position,
                    self.size,
                    next_offset=start.offset,
                    epoch=NO_EPOCH,
                )
                self._check_crcs(start, position)
            if fault is not None:
                raise self._damaged(position, fault, expected)
            if front.last_offset >= offset:
                return Place(position, expected)
            expected = front.last_offset + 1
            position += front.size_bytes
        self._check_crcs(start, self.size)  # compaction may have left a gap at the end
        return Place(self.size, expected)

    def _check_crcs(self, start: Place, end: int) -> None:
        for found in self.batches(*start, check_crc=True, end=end):
            if isinstance(found, Damage):
                raise self._damaged(found.position, found.reason, start[1])

    def _mark_verified(self, start: int, stop: int) -> None:
        """One range is remembered: grown when the new one touches it, else replaced."""
        if start <= self._verified_to and stop >= self._verified_from:
            self._verified_from = min(start, self._verified_from)
            self._verified_to = max(stop, self._verified_to)
        else:
            self._verified_from, self._verified_to = start, stop


def _no_header(left: int) -> str:
    return f"{left} bytes are no whole batch header"


def _epoch_fault(front: Front, epochs: EpochLine) -> str | None:
    known = epochs.epoch_at(front.base_offset)
    if known in (NO_EPOCH, front.leader_epoch):
        return None
    return f"leader epoch {front.leader_epoch} where the epoch checkpoint says {known}"
