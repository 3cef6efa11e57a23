"""What a log holds, batch by batch, read from its (in-memory) files.

Kept up to date by reading on from where it ended, so that a log is read once however often it is
looked at; whoever cuts the log says so.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final, NamedTuple

from cotidal.invariants import IDEMPOTENT_ONCE, LOG_PREFIXES_MATCH, OFFSETS_CONTIGUOUS
from cotidal.log.log import Log
from cotidal.messages.batch import CONTROL_BIT
from cotidal.sim.violation import Violation
from cotidal.values import ZERO_UUID, Offset, Uuid
from cotidal.wire.batch import read_batches, stored_crc

READ_BYTES = 1 << 20
_new: Final = tuple.__new__


class Held(NamedTuple):
    """One batch of a log."""

    base_offset: int
    next_offset: int
    epoch: int
    crc: int
    producer: tuple[int, int, int] | None
    """Producer id, producer epoch, first sequence; None where batches have no sequence."""


class Mirror:
    __slots__ = (
        "_sequences",
        "bases",
        "batches",
        "compared",
        "deleted_below",
        "epochs",
        "log",
        "name",
        "numbered",
        "topic_id",
        "verified",
    )

    def __init__(
        self, log: Log, name: str, topic_id: Uuid = ZERO_UUID, *, numbered: bool = True
    ) -> None:
        self.log = log
        self.numbered = numbered
        """Producers number their batches here. Coordinators do not."""
        self.name = name
        self.topic_id = topic_id
        self.batches: list[Held] = []
        self.bases: list[int] = []
        self._sequences: dict[tuple[int, int, int], int] = {}
        self.verified = 0
        """How many acknowledged batches have been looked for here and found."""
        self.compared = 0
        """How many batches are known to be those that were committed."""
        self.deleted_below = 0
        """Records below are gone where they count, whatever is still held of them here."""
        self.epochs: list[tuple[int, int]] = []
        """Each epoch that wrote here, with the offset of its first batch."""

    @property
    def end(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.log.start_offset

    @property
    def is_current(self) -> bool:
        """Nothing has been written since the log was last read."""
        return self.log.start_offset <= self.end == self.log.end_offset

    def cut(self, end: int) -> None:
        self.verified = 0
        self._cut(end)
        self.compared = min(self.compared, len(self.batches))

    def _cut(self, end: int) -> None:
        while self.epochs and self.epochs[-1][1] >= end:
            self.epochs.pop()
        while self.batches and self.batches[-1].next_offset > end:
            held = self.batches.pop()
            self.bases.pop()
            if held.producer is not None:
                self._sequences.pop(held.producer, None)

    def read_on(self) -> list[Held]:
        """What has been written since; damaged or doubled batches are violations."""
        log = self.log
        if self.batches and log.end_offset < self.end:
            raise Violation(
                OFFSETS_CONTIGUOUS, f"{self.name} ends at {log.end_offset} and held {self.end}"
            )
        if self.end < log.start_offset:  # it has begun anew, further on
            self.cut(0)
        fresh: list[Held] = []
        while self.end < log.end_offset:
            before = self.end
            data = log.read(Offset(before), max_bytes=READ_BYTES, below=log.end_offset)
            found = read_batches(data)
            if found.fault is not None or not found.headers:
                raise Violation(OFFSETS_CONTIGUOUS, f"{self.name} at {before}: {found.fault}")
            position = 0
            for (
                base, size, epoch, attributes, delta, _, _, producer_id, producer_epoch, sequence, _
            ) in found.headers:  # fmt: skip
                producer = None
                if self.numbered and producer_id >= 0 and not attributes & CONTROL_BIT:
                    producer = (producer_id, producer_epoch, sequence)
                crc = stored_crc(data, position)
                held = _new(Held, (base, base + delta + 1, epoch, crc, producer))
                position += size
                self._add(held)
                fresh.append(held)
        return fresh

    def at(self, base_offset: int) -> Held | None:
        place = bisect_left(self.bases, base_offset)
        if place < len(self.bases) and self.bases[place] == base_offset:
            return self.batches[place]
        return None

    def before(self, held: Held) -> Held | None:
        place = bisect_left(self.bases, held.base_offset)
        return self.batches[place - 1] if place else None

    def epochs_from(self, start: int) -> list[tuple[int, int]]:
        """Epochs and where they begin, in a log that starts there."""
        ends = (*(first for _, first in self.epochs[1:]), self.end)
        return [
            (epoch, max(first, start))
            for (epoch, first), end in zip(self.epochs, ends, strict=False)
            if end > start
        ]

    def _add(self, held: Held) -> None:
        if self.batches:
            last = self.batches[-1]
            gap = held.base_offset > last.next_offset and self.log.config.compacted
            if held.base_offset != last.next_offset and not gap:
                raise Violation(
                    OFFSETS_CONTIGUOUS,
                    f"{self.name} has {held.base_offset} after {last.next_offset - 1}",
                )
            if held.epoch < last.epoch:
                raise Violation(
                    LOG_PREFIXES_MATCH,
                    f"{self.name} goes back from epoch {last.epoch} to {held.epoch} at"
                    f" {held.base_offset}",
                )
        if held.producer is not None:
            twin = self._sequences.setdefault(held.producer, held.base_offset)
            if twin < self.deleted_below:  # and with it what was known of its producer
                self._sequences[held.producer] = held.base_offset
            elif twin != held.base_offset:
                raise Violation(
                    IDEMPOTENT_ONCE,
                    f"{self.name} holds the batch of producer, epoch, sequence {held.producer} at"
                    f" {twin} and at {held.base_offset}",
                )
        if not self.epochs or self.epochs[-1][0] != held.epoch:
            self.epochs.append((held.epoch, held.base_offset))
        self.batches.append(held)
        self.bases.append(held.base_offset)
