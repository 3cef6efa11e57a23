"""Offset and time index of a segment, in Kafka's formats.

  .index      i32 offset relative to the segment's base, i32 byte position.  Entry (o, p): the batch
              at p has last offset o. One entry after each index.interval.bytes of log.
  .timeindex  i64 timestamp, i32 relative offset.  Entry (t, o): no record up to offset o is
              younger than t, and the batch that ends with o holds t.

Both ascend strictly in their first field. Entries are found by bisection with small preads, so an
index costs no memory; new ones are buffered and written in groups. A file may end in zero
entries: Kafka preallocates its index files and trims them only on a clean close. A zero entry is
never a real one, since nothing is indexed before the first interval of bytes.

An index is a hint. It is rebuilt from the segment when it is missing, damaged or contradicted by
the batch it points to (segment.py), so nothing here is ever fatal.
"""

from __future__ import annotations

import contextlib
from struct import Struct
from typing import Final, NamedTuple

from cotidal import limits
from cotidal.log.filesystem import File, FileSystem
from cotidal.values import NO_TIMESTAMP, Offset, WallMillis

_OFFSET_ENTRY: Final = Struct(">ii")
_TIME_ENTRY: Final = Struct(">qi")


class EntryFile:
    """Entries of one size, appended in groups, read one by one. Opened when first needed."""

    __slots__ = ("_file", "_filesystem", "_pending", "_written", "entry_bytes", "path")

    def __init__(self, filesystem: FileSystem, path: str, entry_bytes: int) -> None:
        self._filesystem = filesystem
        self._file: File | None = None
        self._pending: list[bytes] = []
        self._written = -1
        self.path = path
        self.entry_bytes = entry_bytes

    def __len__(self) -> int:
        if self._written < 0:
            self._written = self._count_written()
        return self._written + len(self._pending)

    def entry(self, number: int) -> bytes:
        count = len(self)
        if number >= self._written:
            assert number < count
            return self._pending[number - self._written]
        return self._opened().pread(self.entry_bytes, number * self.entry_bytes)

    def all_entries(self) -> bytes:
        """Every entry, for a check or a listing."""
        count = len(self)
        if count == 0:
            return b""
        written = self._opened().pread(self._written * self.entry_bytes, 0)
        return written + b"".join(self._pending)

    def append(self, entry: bytes) -> None:
        self._pending.append(entry)
        if len(self._pending) >= limits.LOG_INDEX_ENTRIES_BUFFERED:
            self.write_pending()

    def write_pending(self) -> None:
        """Give the buffered entries to the operating system. Creates the file."""
        count = len(self)
        file = self._opened()
        if file.size != self._written * self.entry_bytes:
            file.truncate(self._written * self.entry_bytes)  # preallocated, or a torn entry
        if self._pending:
            file.append([b"".join(self._pending)])
            self._pending.clear()
            self._written = count

    def written_out(self) -> File:
        """The file, with nothing left in the buffer: ready to be synced."""
        self.write_pending()
        return self._opened()

    def truncate(self, count: int) -> None:
        if count >= len(self):
            return
        if count > self._written:
            del self._pending[count - self._written :]
            return
        self._pending.clear()
        self._opened().truncate(count * self.entry_bytes)
        self._written = count

    def has_torn_entry(self) -> bool:
        """Whether the file's length is not a whole number of entries."""
        return self._filesystem.size(self.path) % self.entry_bytes != 0

    def exists(self) -> bool:
        return bool(self._pending) or self._filesystem.exists(self.path)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def discard(self) -> None:
        """Forget and remove everything, as for a rebuild or the segment's deletion."""
        self.close()
        self._pending.clear()
        self._written = 0
        with contextlib.suppress(FileNotFoundError):
            self._filesystem.unlink(self.path)

    def forget(self) -> None:
        """Close without writing: the file is about to be renamed or removed by the caller."""
        self.close()
        self._pending.clear()
        self._written = 0

    def _opened(self) -> File:
        if self._file is None:
            self._file = self._filesystem.open(self.path, create=True)
        return self._file

    def _count_written(self) -> int:
        """Whole entries in the file, without the zero ones at its end."""
        try:
            size = self._filesystem.size(self.path)
        except FileNotFoundError:
            return 0
        count = size // self.entry_bytes
        if count == 0:
            return 0
        zero = bytes(self.entry_bytes)
        file = self._opened()
        low, high = 0, count
        if file.pread(self.entry_bytes, (count - 1) * self.entry_bytes) != zero:
            return count
        while low < high:
            middle = (low + high) // 2
            if file.pread(self.entry_bytes, middle * self.entry_bytes) == zero:
                high = middle
            else:
                low = middle + 1
        return low


def _count_below(entries: EntryFile, form: Struct, field: int, value: int) -> int:
    """How many entries, from the first on, have less than ``value`` in a field that ascends."""
    low, high = 0, len(entries)
    while low < high:
        middle = (low + high) // 2
        if form.unpack(entries.entry(middle))[field] < value:
            low = middle + 1
        else:
            high = middle
    return low


_ANYWHERE: Final = 1 << 31
"""No batch of a segment begins later: its index has four bytes for that."""


class IndexEntry(NamedTuple):
    offset: Offset
    position: int


class OffsetIndex:
    """Where in a segment to begin looking for an offset."""

    __slots__ = ("base_offset", "entries")

    def __init__(self, filesystem: FileSystem, path: str, base_offset: Offset) -> None:
        self.base_offset = base_offset
        self.entries = EntryFile(filesystem, path, _OFFSET_ENTRY.size)

    def append(self, last_offset: int, position: int) -> None:
        self.entries.append(_OFFSET_ENTRY.pack(last_offset - self.base_offset, position))

    def floor(self, offset: int) -> IndexEntry:
        """The last entry at or below ``offset``; the segment's beginning when there is none."""
        return self.within(_ANYWHERE, offset + 1)

    def within(self, position: int, below: int) -> IndexEntry:
        """The last entry of a batch that begins at ``position`` or before it and ends below this
        offset; the segment's beginning when there is none."""
        relative = below - self.base_offset
        low, high = 0, len(self.entries)
        found = IndexEntry(self.base_offset, 0)
        while low < high:
            middle = (low + high) // 2
            entry_offset, begins = _OFFSET_ENTRY.unpack(self.entries.entry(middle))
            if begins <= position and entry_offset < relative:
                found = IndexEntry(Offset(self.base_offset + entry_offset), begins)
                low = middle + 1
            else:
                high = middle
        return found

    def before(self, offset: int, count: int) -> Offset:
        """The offset of the entry so many before the last one below ``offset``; the segment's first
        offset when there are not so many."""
        number = _count_below(self.entries, _OFFSET_ENTRY, 0, offset - self.base_offset) - count
        if number < 0:
            return self.base_offset
        relative, _ = _OFFSET_ENTRY.unpack(self.entries.entry(number))
        return Offset(self.base_offset + relative)

    def truncate_at(self, position: int, offset: int) -> None:
        """Drop the entries of batches at or after ``position``, and those that claim to lie before
        it and to hold ``offset`` or more: a crash has torn them."""
        relative = offset - self.base_offset
        low, high = 0, len(self.entries)
        while low < high:
            middle = (low + high) // 2
            last, begins = _OFFSET_ENTRY.unpack(self.entries.entry(middle))
            if begins < position and last < relative:
                low = middle + 1
            else:
                high = middle
        self.entries.truncate(low)

    def last(self) -> IndexEntry | None:
        count = len(self.entries)
        if count == 0:
            return None
        offset, position = _OFFSET_ENTRY.unpack(self.entries.entry(count - 1))
        return IndexEntry(Offset(self.base_offset + offset), position)

    def fault(self, *, segment_bytes: int) -> str | None:
        """What is wrong with the file as a whole, cheaply: its length and its last entry."""
        if not self.entries.exists():
            return "missing" if segment_bytes else None
        if self.entries.has_torn_entry():
            return "its length is not a whole number of entries"
        last = self.last()
        if last is not None and last.offset < self.base_offset:
            return f"its last entry is for offset {last.offset}, below the segment"
        if last is not None and not 0 <= last.position < segment_bytes:
            return f"its last entry points to byte {last.position} of {segment_bytes}"
        return None

    def ascending_prefix(self) -> int:
        """How many entries from the first on ascend in both fields: what a crash left of it."""
        previous = (-1, -1)
        count = 0
        for entry in _OFFSET_ENTRY.iter_unpack(self.entries.all_entries()):
            if entry[0] <= previous[0] or entry[1] <= previous[1]:
                break
            previous = entry
            count += 1
        return count


class TimeEntry(NamedTuple):
    timestamp: WallMillis
    offset: Offset


class TimeIndex:
    """How young the records of a segment are up to an offset."""

    __slots__ = ("_last_timestamp", "base_offset", "entries")

    def __init__(self, filesystem: FileSystem, path: str, base_offset: Offset) -> None:
        self.base_offset = base_offset
        self.entries = EntryFile(filesystem, path, _TIME_ENTRY.size)
        self._last_timestamp: int | None = None

    def append_if_younger(self, timestamp: int, offset: int) -> None:
        if self._last_timestamp is None:
            last = self.last()
            self._last_timestamp = NO_TIMESTAMP if last is None else last.timestamp
        if timestamp > self._last_timestamp:
            self.entries.append(_TIME_ENTRY.pack(timestamp, offset - self.base_offset))
            self._last_timestamp = timestamp

    def floor(self, timestamp: int) -> TimeEntry:
        """The last entry at or below ``timestamp``; the segment's beginning when there is none."""
        low, high = 0, len(self.entries)
        found = TimeEntry(NO_TIMESTAMP, self.base_offset)
        while low < high:
            middle = (low + high) // 2
            entry_timestamp, offset = _TIME_ENTRY.unpack(self.entries.entry(middle))
            if entry_timestamp <= timestamp:
                found = TimeEntry(entry_timestamp, Offset(self.base_offset + offset))
                low = middle + 1
            else:
                high = middle
        return found

    def truncate_from(self, offset: int) -> None:
        """Drop the entries at or after ``offset``."""
        relative = offset - self.base_offset
        self.entries.truncate(_count_below(self.entries, _TIME_ENTRY, 1, relative))
        self._last_timestamp = None

    def last(self) -> TimeEntry | None:
        count = len(self.entries)
        if count == 0:
            return None
        timestamp, offset = _TIME_ENTRY.unpack(self.entries.entry(count - 1))
        return TimeEntry(timestamp, Offset(self.base_offset + offset))

    def discard(self) -> None:
        self.entries.discard()
        self._last_timestamp = None

    def fault(self, *, segment_bytes: int) -> str | None:
        if not self.entries.exists():
            return "missing" if segment_bytes else None
        if self.entries.has_torn_entry():
            return "its length is not a whole number of entries"
        count = len(self.entries)
        if count == 0:
            return None
        first, _ = _TIME_ENTRY.unpack(self.entries.entry(0))
        last, offset = _TIME_ENTRY.unpack(self.entries.entry(count - 1))
        if last < first or offset < 0:
            return "its last entry is older than its first or below the segment"
        return None

    def ascending_prefix(self) -> int:
        previous = (-1, -1)
        count = 0
        for entry in _TIME_ENTRY.iter_unpack(self.entries.all_entries()):
            if entry[0] <= previous[0] or entry[1] < previous[1]:
                break
            previous = entry
            count += 1
        return count
