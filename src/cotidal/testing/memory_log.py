"""What a disk keeps of one partition, in memory: batches, epochs, and a checkpoint.

Obeys a replica's effects as cotidal.log does: a cut drops the whole batch that holds the offset,
what a follower fetched is kept as it is. A record's value is one word of its batch's data.
"""

from __future__ import annotations

from typing import NamedTuple

from cotidal.core.partition.epochs import EpochCache
from cotidal.invariants import OFFSETS_CONTIGUOUS
from cotidal.messages.batch import Batches, BatchHeader
from cotidal.values import (
    NO_EPOCH,
    EpochEntry,
    LeaderEpoch,
    Offset,
    ProducerEpoch,
    ProducerId,
    Sequence,
    WallMillis,
)


class Record(NamedTuple):
    offset: Offset
    epoch: LeaderEpoch
    value: str


def batch_of(
    values: tuple[str, ...], *, producer_id: int = -1, producer_epoch: int = 0, sequence: int = 0
) -> Batches:
    """One batch as a producer sends it, without offset and epoch."""
    data = " ".join(values).encode()
    has_producer = producer_id >= 0
    header = BatchHeader(
        base_offset=Offset(0),
        size_bytes=len(data),
        leader_epoch=NO_EPOCH,
        attributes=0,
        last_offset_delta=len(values) - 1,
        base_timestamp=WallMillis(0),
        max_timestamp=WallMillis(0),
        producer_id=ProducerId(producer_id),
        producer_epoch=ProducerEpoch(producer_epoch if has_producer else -1),
        base_sequence=Sequence(sequence if has_producer else -1),
        record_count=len(values),
    )
    return Batches((header,), data)


class MemoryLog:
    """Survives its broker. ``epochs`` and ``checkpoint`` are what was last written of them."""

    __slots__ = ("_batches", "_end", "checkpoint", "epochs", "start")

    def __init__(self, start: Offset = Offset(0)) -> None:  # noqa: B008 - an int
        self.start = start
        self._end = start
        self._batches: list[tuple[BatchHeader, bytes]] = []
        self.epochs: tuple[EpochEntry, ...] = ()
        self.checkpoint = Offset(0)
        """The high watermark that will be found at the next start."""

    @property
    def end(self) -> Offset:
        return self._end

    @property
    def headers(self) -> tuple[BatchHeader, ...]:
        return tuple(header for header, _ in self._batches)

    def write(self, batches: Batches, *, base_offset: Offset, epoch: LeaderEpoch) -> None:
        """A leader's write: the batch gets its offset and epoch."""
        (header,) = batches.headers
        placed = header._replace(base_offset=base_offset, leader_epoch=epoch)
        self._add(placed, bytes(batches.data))

    def append(self, batches: Batches) -> None:
        """A follower's write."""
        position = 0
        for header in batches.headers:
            self._add(header, bytes(batches.data[position : position + header.size_bytes]))
            position += header.size_bytes

    def read(self, offset: Offset, *, below: Offset, batches_max: int = 1 << 30) -> Batches:
        """Whole batches, from the one that holds ``offset``."""
        found = [
            (header, data)
            for header, data in self._batches
            if header.next_offset > offset and header.next_offset <= below
        ][:batches_max]
        return Batches(tuple(header for header, _ in found), b"".join(data for _, data in found))

    def truncate(self, offset: Offset) -> None:
        while self._batches and self._batches[-1][0].next_offset > offset:
            self._end = self._batches.pop()[0].base_offset
        self.start = min(self.start, self._end)
        epochs = EpochCache(self.epochs)
        epochs.cut_from(min(offset, self._end))
        self.epochs = tuple(epochs.entries)

    def start_over(self, offset: Offset) -> None:
        self._batches.clear()
        self.start = self._end = offset
        self.epochs = ()

    def advance_start(self, offset: Offset) -> None:
        """Batches that lie wholly below go; the one that ``offset`` cuts through stays."""
        self.start = max(self.start, offset)
        self._batches = [each for each in self._batches if each[0].next_offset > self.start]

    def records(self) -> tuple[Record, ...]:
        return tuple(
            Record(Offset(header.base_offset + number), header.leader_epoch, value)
            for header, data in self._batches
            for number, value in enumerate(data.decode().split(" "))
            if header.base_offset + number >= self.start
        )

    def _add(self, header: BatchHeader, data: bytes) -> None:
        assert header.base_offset == self._end, OFFSETS_CONTIGUOUS
        self._batches.append((header, data))
        self._end = header.next_offset
