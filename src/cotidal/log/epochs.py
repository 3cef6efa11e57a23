"""Which leader epoch each offset of a log was written in. Pure.

Entries ascend in epoch and in start offset (EPOCHS_ASCEND). The core decides what they mean; the
log keeps them because every batch on disk must agree with them: the crc does not cover a batch's
epoch, so this is how a damaged one is found.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from operator import attrgetter

from cotidal.values import NO_EPOCH, EpochEntry, LeaderEpoch, Offset

_start_offset = attrgetter("start_offset")


class EpochLine:
    __slots__ = ("_entries", "latest")

    def __init__(self, entries: Iterable[EpochEntry] = ()) -> None:
        self._entries: list[EpochEntry] = []
        self.latest: LeaderEpoch = NO_EPOCH
        for entry in entries:
            self.assign(entry.epoch, entry.start_offset)

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        return tuple(self._entries)

    def assign(self, epoch: LeaderEpoch, start_offset: Offset) -> None:
        """From ``start_offset`` on it is ``epoch``. Evicts what contradicts that."""
        kept = self._entries
        while kept and (kept[-1].epoch >= epoch or kept[-1].start_offset >= start_offset):
            kept.pop()
        kept.append(EpochEntry(epoch, start_offset))
        self.latest = epoch

    def begin(self, epoch: LeaderEpoch, base_offset: Offset) -> None:
        """A batch of ``epoch`` is written at ``base_offset``, the end of the log: epochs that were
        to begin here did not."""
        self.truncate_end(base_offset)
        if epoch > self.latest:
            self.assign(epoch, base_offset)

    def truncate_end(self, end_offset: int) -> bool:
        """Drop the entries that begin at or after the end of the log. Whether there were any."""
        before = len(self._entries)
        while self._entries and self._entries[-1].start_offset >= end_offset:
            self._entries.pop()
        self.latest = self._entries[-1].epoch if self._entries else NO_EPOCH
        return len(self._entries) < before

    def truncate_start(self, start_offset: Offset) -> bool:
        """Drop the entries that end before the start of the log; the one it is in begins there.
        Whether that changed anything."""
        number = bisect_right(self._entries, start_offset, key=_start_offset)
        if number == 0 or self._entries[0].start_offset == start_offset:
            return False
        self._entries[:number] = [EpochEntry(self._entries[number - 1].epoch, start_offset)]
        return True

    def clear(self) -> None:
        self._entries.clear()
        self.latest = NO_EPOCH

    def epoch_at(self, offset: int) -> LeaderEpoch:
        """NO_EPOCH before the first entry."""
        number = bisect_right(self._entries, offset, key=_start_offset)
        return self._entries[number - 1].epoch if number else NO_EPOCH

    def next_start(self, offset: int) -> int:
        """Where the epoch that ``offset`` is in ends, as far as is known."""
        number = bisect_right(self._entries, offset, key=_start_offset)
        return self._entries[number].start_offset if number < len(self._entries) else 1 << 62
