"""What the quorum knows of its log: offsets and epochs, never records. Pure.

  EPOCHS_ASCEND  the epoch line ascends in epoch and in start offset.

``start_epoch`` is the epoch of the record before ``start_offset``: the epoch of the snapshot that
ends there, 0 for a log that starts at 0. The line holds only epochs above it. KIP-595's divergence
answer ("my last epoch not above yours ended there") is ``end_of``.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, NamedTuple

from cotidal.invariants import EPOCHS_ASCEND, OFFSETS_CONTIGUOUS
from cotidal.values import EpochEntry, LeaderEpoch, Offset

START: Final = Offset(0)
BEFORE_ALL_EPOCHS: Final = LeaderEpoch(0)
"""Of the record that is not there, below offset 0. The first leader's epoch is 1."""


class EpochEnd(NamedTuple):
    """An epoch and the offset at which it ended."""

    epoch: LeaderEpoch
    end_offset: Offset


class SnapshotId(NamedTuple):
    """What a snapshot contains: everything below ``end_offset``, whose last record is of ``epoch``.

    (0, 0) is the checkpoint that formatting leaves; it is never replicated.
    """

    end_offset: Offset
    epoch: LeaderEpoch


class LogEnd(NamedTuple):
    """How far a log reaches. Compares as elections compare: last epoch first, then length."""

    epoch: LeaderEpoch
    end_offset: Offset


class LogView:
    __slots__ = ("end_offset", "line", "start_epoch", "start_offset")

    def __init__(
        self,
        *,
        start_offset: Offset = START,
        start_epoch: LeaderEpoch = BEFORE_ALL_EPOCHS,
        end_offset: Offset = START,
        line: tuple[EpochEntry, ...] = (),
    ) -> None:
        self.start_offset = start_offset
        self.start_epoch = start_epoch
        self.end_offset = end_offset
        self.line = [entry for entry in line if entry.epoch > start_epoch]

    @property
    def last_epoch(self) -> LeaderEpoch:
        return self.line[-1].epoch if self.line else self.start_epoch

    @property
    def reach(self) -> LogEnd:
        return LogEnd(self.last_epoch, self.end_offset)

    def check(self) -> None:
        assert self.start_offset <= self.end_offset
        for before, after in zip(self.line, self.line[1:], strict=False):
            assert before.epoch < after.epoch, EPOCHS_ASCEND
            assert before.start_offset < after.start_offset, EPOCHS_ASCEND
        if self.line:
            assert self.start_epoch < self.line[0].epoch, EPOCHS_ASCEND
            assert self.start_offset <= self.line[0].start_offset, EPOCHS_ASCEND
            assert self.line[-1].start_offset < self.end_offset, EPOCHS_ASCEND

    def append(self, *, base_offset: Offset, next_offset: Offset, epoch: LeaderEpoch) -> None:
        assert base_offset == self.end_offset < next_offset, OFFSETS_CONTIGUOUS
        assert epoch >= self.last_epoch, EPOCHS_ASCEND
        if epoch > self.last_epoch:
            self.line.append(EpochEntry(epoch, base_offset))
        self.end_offset = next_offset

    def cut_from(self, offset: Offset) -> None:
        assert self.start_offset <= offset <= self.end_offset
        self.end_offset = offset
        while self.line and self.line[-1].start_offset >= offset:
            self.line.pop()

    def cut_below(self, offset: Offset) -> None:
        """Records below ``offset`` are gone; a snapshot holds them."""
        assert self.start_offset <= offset <= self.end_offset
        self.start_epoch = self.epoch_before(offset)
        self.start_offset = offset
        self.line = [entry for entry in self.line if entry.epoch > self.start_epoch]

    def replace(self, snapshot: SnapshotId) -> None:
        """Nothing but this snapshot is left."""
        self.start_offset = self.end_offset = snapshot.end_offset
        self.start_epoch = snapshot.epoch
        self.line = []

    def epoch_before(self, offset: Offset) -> LeaderEpoch:
        """The epoch of the record just below ``offset``."""
        after = bisect_right(self.line, offset - 1, key=lambda entry: entry.start_offset)
        return self.line[after - 1].epoch if after else self.start_epoch

    def end_of(self, epoch: LeaderEpoch) -> EpochEnd:
        """The largest epoch in this log that is not above ``epoch``, and where it ended."""
        after = bisect_right(self.line, epoch, key=lambda entry: entry.epoch)
        found = self.line[after - 1].epoch if after else self.start_epoch
        return EpochEnd(
            found, self.line[after].start_offset if after < len(self.line) else self.end_offset
        )

    def cut_for(self, leader: EpochEnd) -> Offset:
        """Where to cut this log when the leader's ``leader.epoch`` ended where it says.

        Several rounds may be needed (KIP-279); each cuts at least one epoch or stops.
        """
        if leader.epoch < self.start_epoch:
            return leader.end_offset  # below our own snapshot: the caller will not like it
        mine = self.end_of(leader.epoch)
        if mine.epoch == leader.epoch:
            return min(mine.end_offset, leader.end_offset)
        return mine.end_offset
