"""A range of offsets in one replica's log, and what it comes to. Pure.

Every replica of a partition holds the same batches, byte for byte, below the high watermark: so two
replicas agree on a range exactly when the digests of its batches are equal. A batch belongs to the
range in which it begins; whoever reads a range passes over the end of a batch that begins before.

Compaction makes its own batches in every replica. Of a compacted topic only what each replica must
keep by itself is looked at: checksums, ascending offsets and epochs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Final, NamedTuple

from cotidal.messages.batch import Batches, BatchHeader

DIGEST_BYTES: Final = 16


class Share(NamedTuple):
    """Offsets of one replica, to be read by one task."""

    topic: str
    topic_id: bytes
    partition: int
    broker: int
    place: str
    """Its broker's address, or the directory of its log."""
    on_disk: bool
    compacted: bool
    first: int
    below: int


class Stretch(NamedTuple):
    """What was found in a share."""

    topic: str
    partition: int
    broker: int
    first: int
    below: int
    batches: int = 0
    records: int = 0
    size_bytes: int = 0
    first_offset: int = -1
    """Of the first batch that begins here; -1 where none does."""
    end_offset: int = -1
    first_epoch: int = -1
    last_epoch: int = -1
    digest: bytes = b""
    """Empty where replicas need not be alike."""
    fault: str | None = None
    """What is wrong with this log by itself."""
    fault_offset: int = -1
    unread: str | None = None
    """Why its broker or directory could not be read."""


class Line(NamedTuple):
    """One batch, for a close look at where two logs part."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    records: int
    digest: bytes


class _Walk:
    """The batches that begin in a share, and what is wrong with them."""

    def __init__(self, share: Share) -> None:
        self._share = share
        self._expected: int | None = None
        self._epoch = -1
        self.fault: str | None = None
        self.fault_offset = -1

    def lines(self, pieces: Iterable[Batches]) -> Iterator[tuple[BatchHeader, memoryview]]:
        for piece in pieces:
            data, position = memoryview(piece.data), 0
            for header in piece.headers:
                batch = data[position : position + header.size_bytes]
                position += header.size_bytes
                if header.base_offset >= self._share.below:
                    return
                if header.base_offset >= self._share.first:
                    self._check(header)
                    yield header, batch
                self._expected, self._epoch = header.next_offset, header.leader_epoch
            if piece.fault is not None:
                at = self._share.first if self._expected is None else self._expected
                self._found(piece.fault, at)
                return

    def _check(self, header: BatchHeader) -> None:
        base, expected = header.base_offset, self._expected
        if expected is not None and base != expected:
            if base < expected:
                self._found(f"offset {base} comes again after {expected - 1}", base)
            elif not self._share.compacted:
                self._found(f"offsets {expected} to {base - 1} are missing", expected)
        if header.leader_epoch < self._epoch:
            self._found(f"leader epoch {header.leader_epoch} after {self._epoch}", base)

    def _found(self, fault: str, offset: int) -> None:
        if self.fault is None:
            self.fault, self.fault_offset = fault, offset


def measured(share: Share, pieces: Iterable[Batches]) -> Stretch:
    """Read a share and say what it comes to."""
    walk = _Walk(share)
    digest = blake2b(digest_size=DIGEST_BYTES)
    batches = records = size = 0
    first_offset = end_offset = first_epoch = last_epoch = -1
    for header, batch in walk.lines(pieces):
        if not batches:
            first_offset, first_epoch = header.base_offset, header.leader_epoch
        batches += 1
        records += header.record_count
        size += header.size_bytes
        end_offset, last_epoch = header.next_offset, header.leader_epoch
        digest.update(batch)
    return Stretch(
        share.topic,
        share.partition,
        share.broker,
        share.first,
        share.below,
        batches,
        records,
        size,
        first_offset,
        end_offset,
        first_epoch,
        last_epoch,
        b"" if share.compacted else digest.digest(),
        walk.fault,
        walk.fault_offset,
    )


def lines(share: Share, pieces: Iterable[Batches]) -> Iterator[Line]:
    """The batches of a share, one by one."""
    for header, batch in _Walk(share).lines(pieces):
        yield Line(
            header.base_offset,
            header.last_offset,
            header.leader_epoch,
            header.record_count,
            blake2b(batch, digest_size=DIGEST_BYTES).digest(),
        )
