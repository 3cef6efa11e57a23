"""The disk of one quorum node, in memory: what survives its process. Shipped."""

from __future__ import annotations

from typing import Final, NamedTuple, assert_never

from cotidal.core.quorum import effects as want
from cotidal.core.quorum.dialogue import FetchedBatch, FetchedRecords, RecordRange
from cotidal.core.quorum.events import LogFacts, SnapshotFacts, Started
from cotidal.core.quorum.log_view import SnapshotId
from cotidal.messages.records.quorum import KRaftVersionRecord, QuorumStateData, VotersRecord
from cotidal.values import EpochEntry, LeaderEpoch, Offset

SNAPSHOT_BYTES: Final = 10
"""Every snapshot is so large, and sent in one piece."""


class Batch(NamedTuple):
    base_offset: Offset
    epoch: LeaderEpoch
    records: tuple[object, ...]

    @property
    def next_offset(self) -> Offset:
        return Offset(self.base_offset + len(self.records))


class QuorumDisk:
    def __init__(self) -> None:
        self.state: QuorumStateData | None = None
        self.start = Offset(0)
        self.batches: list[Batch] = []
        self.snapshots: dict[SnapshotId, SnapshotFacts] = {}

    @property
    def end(self) -> Offset:
        return self.batches[-1].next_offset if self.batches else self.start

    def started(self) -> Started:
        """What a new process finds."""
        epochs: list[EpochEntry] = []
        for batch in self.batches:
            if not epochs or epochs[-1].epoch < batch.epoch:
                epochs.append(EpochEntry(batch.epoch, batch.base_offset))
        control = [
            (offset, record)
            for offset, record in self.records()
            if isinstance(record, VotersRecord | KRaftVersionRecord)
        ]
        log = LogFacts(self.start, self.end, tuple(epochs), tuple(control))
        return Started(
            self.state, log, tuple(self.snapshots[id_] for id_ in sorted(self.snapshots))
        )

    def records(self) -> list[tuple[Offset, object]]:
        return [
            (Offset(batch.base_offset + delta), record)
            for batch in self.batches
            for delta, record in enumerate(batch.records)
        ]

    def apply(self, write: want.Write) -> SnapshotFacts | None:
        """Make it durable; the snapshot if it installed one."""
        match write:
            case want.WriteState(state):
                self.state = state
            case want.AppendOwn(base, epoch, handle):
                assert isinstance(handle, tuple)
                self.batches.append(Batch(base, epoch, handle))
            case want.AppendControl(base, epoch, records):
                self.batches.append(Batch(base, epoch, records))
            case want.AppendFetched(base, below, handle):
                assert isinstance(handle, tuple)
                self.batches += [b for b in handle if base <= b.base_offset < below]
            case want.TruncateTo(offset):
                self.batches = [b for b in self.batches if b.next_offset <= offset]
            case want.InstallSnapshot(id_):
                self.batches, self.start = [], id_.end_offset
                return self.snapshots[id_]
            case want.CleanTo(offset):
                self.batches = [b for b in self.batches if b.base_offset >= offset]
                self.start = offset
            case _:
                assert_never(write)
        return None

    def read(self, wanted: RecordRange) -> FetchedRecords:
        found = tuple(
            batch
            for batch in self.batches
            if wanted.offset <= batch.base_offset and batch.next_offset <= wanted.below
        )
        return FetchedRecords(tuple(_fetched(batch) for batch in found), found)


def _fetched(batch: Batch) -> FetchedBatch:
    control = tuple(
        (Offset(batch.base_offset + delta), record)
        for delta, record in enumerate(batch.records)
        if isinstance(record, VotersRecord | KRaftVersionRecord)
    )
    size = len(batch.records)
    return FetchedBatch(batch.base_offset, batch.next_offset, batch.epoch, size, control)
