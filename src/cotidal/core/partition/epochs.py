"""The epoch cache of one replica: which leader wrote from which offset on. Pure.

  EPOCHS_ASCEND  entries ascend in epoch and in start offset.

A new leader enters its epoch when it takes over, before it has written a record (the entry stands
at the end of the log), so that a follower asking about that epoch gets an answer. Entries are cut
with the log, even when the log itself needs no cut. KIP-101, KIP-279.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, NamedTuple

from cotidal.invariants import EPOCHS_ASCEND
from cotidal.values import NO_EPOCH, NO_OFFSET, EpochEntry, LeaderEpoch, Offset


class EpochEnd(NamedTuple):
    """The largest known epoch not above the one asked for, and the offset at which it ended."""

    epoch: LeaderEpoch
    end_offset: Offset


UNDEFINED = EpochEnd(NO_EPOCH, NO_OFFSET)

_new: Final = tuple.__new__


class EpochCache:
    """Ascending (epoch, start offset) entries of one log."""

    __slots__ = ("entries",)

    def __init__(self, entries: tuple[EpochEntry, ...] = ()) -> None:
        self.entries: list[EpochEntry] = list(entries)
        self.check()

    def check(self) -> None:
        for before, after in zip(self.entries, self.entries[1:], strict=False):
            assert before.epoch < after.epoch, EPOCHS_ASCEND
            assert before.start_offset < after.start_offset, EPOCHS_ASCEND

    @property
    def latest(self) -> LeaderEpoch:
        return self.entries[-1].epoch if self.entries else NO_EPOCH

    def assign(self, epoch: LeaderEpoch, *, start_offset: Offset) -> bool:
        """Enter an epoch; True if that changed anything. What contradicts it is evicted."""
        if epoch == self.latest and self.entries[-1].start_offset <= start_offset:
            return False
        entries = self.entries
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        entries.append(EpochEntry(epoch, start_offset))
        return True

    def end_of(self, epoch: LeaderEpoch, *, log_end: Offset) -> EpochEnd:
        """Where ``epoch`` ended; UNDEFINED for one above all entries or when there are none.

        An epoch below all entries ended where the first known one begins.
        """
        entries = self.entries
        if not entries or epoch > entries[-1].epoch or epoch == NO_EPOCH:
            return UNDEFINED
        if epoch == entries[-1].epoch:
            return _new(EpochEnd, (epoch, log_end))
        after = bisect_right(entries, epoch, key=lambda entry: entry.epoch)
        if after == 0:
            return EpochEnd(epoch, entries[0].start_offset)
        return EpochEnd(entries[after - 1].epoch, entries[after].start_offset)

    def epoch_at(self, offset: Offset) -> LeaderEpoch:
        """The epoch in which the record at ``offset`` was written."""
        after = bisect_right(self.entries, offset, key=lambda entry: entry.start_offset)
        return self.entries[after - 1].epoch if after else NO_EPOCH

    def cut_from(self, offset: Offset) -> bool:
        """The log now ends at ``offset``."""
        entries = self.entries
        changed = False
        while entries and entries[-1].start_offset >= offset:
            entries.pop()
            changed = True
        return changed

    def cut_below(self, offset: Offset) -> bool:
        """The log now starts at ``offset``: the epoch in force there begins there."""
        after = bisect_right(self.entries, offset, key=lambda entry: entry.start_offset)
        if after == 0 or (after == 1 and self.entries[0].start_offset == offset):
            return False
        in_force = self.entries[after - 1]
        self.entries[:after] = [EpochEntry(in_force.epoch, offset)]
        return True
