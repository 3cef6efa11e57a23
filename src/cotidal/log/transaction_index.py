"""The aborted transactions of a segment, in Kafka's format.

  .txnindex   i16 version 0, i64 producer id, i64 first offset, i64 last offset (that of the abort
              marker), i64 last stable offset after it.

Entries ascend in last offset. A transaction stands in the segment that holds its marker. Segments
without aborted transactions have no file. What a crash cut off is handed over again by the core
when it replays the batches after its producer snapshot; a snapshot is only written after the
entries below it are synced (log.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from struct import Struct
from typing import Final

from cotidal.log.filesystem import File, FileSystem
from cotidal.messages.producers import AbortedTransaction
from cotidal.values import Offset, ProducerId

_ENTRY: Final = Struct(">hqqqq")


class TransactionIndex:
    __slots__ = ("_entries", "_file", "_filesystem", "_unsynced", "path")

    def __init__(self, filesystem: FileSystem, path: str) -> None:
        self._filesystem = filesystem
        self._file: File | None = None
        self._entries: list[AbortedTransaction] | None = None
        self._unsynced = False
        self.path = path

    def entries(self) -> list[AbortedTransaction]:
        if self._entries is None:
            self._entries = self._read()[0]
        return self._entries

    def append(self, transactions: Iterable[AbortedTransaction]) -> None:
        """Those that the index already holds are passed over."""
        known = self.entries()
        last = known[-1].last_offset if known else -1
        new = [transaction for transaction in transactions if transaction.last_offset > last]
        if not new:
            return
        self._opened().append([b"".join(_ENTRY.pack(0, *transaction) for transaction in new)])
        known.extend(new)
        self._unsynced = True

    def create(self) -> None:
        """Make the file, also without an entry."""
        self._opened()
        self._unsynced = True

    def truncate_from(self, offset: int) -> None:
        """Drop the transactions whose marker is at or after ``offset``."""
        known = self.entries()
        kept = [transaction for transaction in known if transaction.last_offset < offset]
        if len(kept) < len(known):
            self._opened().truncate(len(kept) * _ENTRY.size)
            self._entries = kept
            self._unsynced = True

    def written_out(self) -> File | None:
        """The file if there is something to sync. Counts as synced from here on: should the sync
        fail, the log is offline."""
        if not self._unsynced:
            return None
        self._unsynced = False
        return self._opened()

    def sync(self) -> None:
        if self._unsynced:
            self._opened().sync()
            self._unsynced = False

    @property
    def unsynced(self) -> bool:
        return self._unsynced

    def mend(self, base_offset: int) -> str | None:
        """Keep the good entries before the first bad one; returns what was wrong with it."""
        entries, fault = self._read()
        if fault is None and entries and entries[0].last_offset < base_offset:
            fault = f"its first marker, at {entries[0].last_offset}, is below the segment"
            entries = []
        if fault is not None:
            self._opened().truncate(len(entries) * _ENTRY.size)
            self._unsynced = True
        self._entries = entries
        return fault

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def discard(self) -> None:
        self.close()
        self._entries = []
        self._unsynced = False
        with contextlib.suppress(FileNotFoundError):
            self._filesystem.unlink(self.path)

    def _opened(self) -> File:
        if self._file is None:
            self._file = self._filesystem.open(self.path, create=True)
        return self._file

    def _read(self) -> tuple[list[AbortedTransaction], str | None]:
        try:
            data = self._filesystem.read(self.path)
        except FileNotFoundError:
            return [], None
        entries: list[AbortedTransaction] = []
        last = -1
        whole = len(data) // _ENTRY.size * _ENTRY.size
        for version, producer, first, marker, stable in _ENTRY.iter_unpack(data[:whole]):
            if version != 0:
                return entries, f"an entry has version {version}"
            if marker <= last or first > marker or first < 0:
                return entries, f"the marker at {marker} does not follow the one at {last}"
            last = marker
            entries.append(
                AbortedTransaction(
                    ProducerId(producer), Offset(first), Offset(marker), Offset(stable)
                )
            )
        if whole != len(data):
            return entries, "its length is not a whole number of entries"
        return entries, None
