"""What one partition remembers of idempotent producers. Pure.

  IDEMPOTENT_ONCE  per producer id, epoch and sequence at most one copy is in the log.

Of each producer the last five batches are kept (Kafka's number: a client may have five requests in
flight). A batch that equals one of them is a duplicate and is answered with its original offsets;
one that does not follow the last is refused. A producer that is not known (a new one, or one whose
records were deleted or whose state expired) may begin with any sequence. KIP-98, KIP-360.

Which of their transactions are open is in ``transactions`` (transactions.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from cotidal.core.partition.transactions import Transactions
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.batch import BatchHeader, Marker
from cotidal.messages.producers import ProducerEntry, ProducerSnapshot
from cotidal.values import (
    NO_OFFSET,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Offset,
    ProducerEpoch,
    ProducerId,
    Sequence,
    WallMillis,
)

REMEMBERED_BATCHES: Final = 5
SEQUENCE_MAX: Final = 0x7FFFFFFF


class SeenBatch(NamedTuple):
    first_sequence: Sequence
    last_sequence: Sequence
    base_offset: Offset
    last_offset: Offset
    timestamp: WallMillis


class Producer:
    """One producer's last batches, oldest first."""

    __slots__ = ("batches", "coordinator_epoch", "ended_at", "epoch")

    def __init__(self, epoch: ProducerEpoch) -> None:
        self.epoch = epoch
        self.batches: list[SeenBatch] = []
        self.coordinator_epoch = -1
        self.ended_at = NO_TIMESTAMP
        """Time of the last marker."""

    @property
    def last(self) -> SeenBatch | None:
        return self.batches[-1] if self.batches else None

    @property
    def last_timestamp(self) -> WallMillis:
        last = self.last
        return self.ended_at if last is None else max(last.timestamp, self.ended_at)

    def see(self, batch: BatchHeader, *, base_offset: Offset) -> None:
        """Records, not a marker."""
        self._remember(
            SeenBatch(
                first_sequence=batch.base_sequence,
                last_sequence=batch.last_sequence,
                base_offset=base_offset,
                last_offset=Offset(base_offset + batch.last_offset_delta),
                timestamp=batch.max_timestamp,
            )
        )

    def end_with(self, entry: ProducerEntry) -> None:
        """The batch that a snapshot calls the last is the last, whatever was seen."""
        self.batches = [each for each in self.batches if each.last_offset < entry.last_offset]
        if entry.last_sequence == NO_SEQUENCE:
            return
        self._remember(
            SeenBatch(
                first_sequence=Sequence((entry.last_sequence - entry.offset_delta) & SEQUENCE_MAX),
                last_sequence=entry.last_sequence,
                base_offset=Offset(entry.last_offset - entry.offset_delta),
                last_offset=entry.last_offset,
                timestamp=entry.timestamp,
            )
        )

    def _remember(self, batch: SeenBatch) -> None:
        self.batches.append(batch)
        if len(self.batches) > REMEMBERED_BATCHES:
            del self.batches[0]


class ProducerDescription(NamedTuple):
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    last_sequence: Sequence
    last_timestamp: WallMillis
    coordinator_epoch: int
    transaction_first_offset: Offset


class Producers:
    """All producers that this partition remembers."""

    __slots__ = ("_by_id", "transactions")

    def __init__(self) -> None:
        self._by_id: dict[ProducerId, Producer] = {}
        self.transactions = Transactions()

    def __len__(self) -> int:
        return len(self._by_id)

    def ids(self) -> frozenset[int]:
        return frozenset(self._by_id)

    def check(self, batch: BatchHeader) -> SeenBatch | Refusal | None:
        """A duplicate's original, why the batch is refused, or None: it may be appended."""
        known = self._by_id.get(batch.producer_id)
        if known is None:
            return None
        if batch.producer_epoch < known.epoch:
            return _old_epoch(batch.producer_id, batch.producer_epoch, known.epoch)
        if batch.producer_epoch > known.epoch:
            return None if batch.base_sequence == 0 else _gap(batch, expected=0)
        last = known.last
        # Known by a marker alone: its epoch has begun, and no batch of it has come.
        expected = 0 if last is None else (last.last_sequence + 1) & SEQUENCE_MAX
        if batch.base_sequence == expected:
            return None
        for seen in known.batches:
            if (
                seen.first_sequence == batch.base_sequence
                and seen.last_sequence == batch.last_sequence
            ):
                return seen
        return _gap(batch, expected=expected)

    def check_epoch(self, batch: BatchHeader) -> Refusal | None:
        known = self._by_id.get(batch.producer_id)
        if known is None or batch.producer_epoch >= known.epoch:
            return None
        return _old_epoch(batch.producer_id, batch.producer_epoch, known.epoch)

    def remember(self, batch: BatchHeader, *, base_offset: Offset) -> None:
        """Take a batch into account that has been given ``base_offset``."""
        known = self._in_epoch(batch.producer_id, batch.producer_epoch)
        if batch.is_control:
            return
        known.see(batch, base_offset=base_offset)
        if batch.is_transactional and not self.transactions.is_open(batch.producer_id):
            self.transactions.open(batch.producer_id, base_offset)

    def has_open(self, producer_id: ProducerId, epoch: ProducerEpoch) -> bool:
        """Whether a transactional batch goes on with a transaction: one of its own epoch."""
        if not self.transactions.is_open(producer_id):
            return False
        return self._by_id[producer_id].epoch == epoch

    def end_transaction(
        self,
        producer_id: ProducerId,
        epoch: ProducerEpoch,
        marker: Marker,
        timestamp: WallMillis,
        *,
        raises_epoch: bool = False,
    ) -> None:
        """T3: a marker has been given its offset."""
        known = self._in_epoch(producer_id, epoch)
        known.coordinator_epoch = marker.coordinator_epoch
        known.ended_at = timestamp
        self.transactions.end(
            producer_id,
            marker.offset,
            committed=marker.committed,
            next_epoch=epoch if raises_epoch else None,
        )

    def replay(self, headers: Iterable[BatchHeader], markers: Iterable[Marker] = ()) -> None:
        """Rebuild from batches of the log, as a follower and as recovery do: never refuses."""
        ends = {marker.offset: marker for marker in markers}
        for header in headers:
            if header.producer_id < 0:
                continue
            marker = ends.get(header.base_offset) if header.is_control else None
            if marker is None:
                self.remember(header, base_offset=header.base_offset)
            else:
                self.end_transaction(
                    header.producer_id, header.producer_epoch, marker, header.max_timestamp
                )

    def check_marker(
        self,
        producer_id: ProducerId,
        epoch: ProducerEpoch,
        *,
        coordinator_epoch: int,
        raises_epoch: bool,
    ) -> Refusal | bool:
        """T4: why a marker is refused, or whether it is to be written: a repetition is not."""
        known = self._by_id.get(producer_id)
        if known is None:
            return True
        if coordinator_epoch < known.coordinator_epoch:
            return Refusal(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"coordinator epoch {coordinator_epoch} is older than {known.coordinator_epoch}, "
                f"which ended the last transaction of producer {producer_id} here",
            )
        if epoch < known.epoch:
            return _old_epoch(producer_id, epoch, known.epoch)
        if raises_epoch and epoch == known.epoch:
            if self.transactions.is_open(producer_id):
                return _old_epoch(producer_id, epoch, known.epoch)
            return False
        return True

    def _in_epoch(self, producer_id: ProducerId, epoch: ProducerEpoch) -> Producer:
        known = self._by_id.get(producer_id)
        if known is None or known.epoch != epoch:
            coordinator_epoch = -1 if known is None else known.coordinator_epoch
            known = self._by_id[producer_id] = Producer(epoch)
            known.coordinator_epoch = coordinator_epoch
        return known

    def load(self, snapshot: ProducerSnapshot) -> None:
        """Entries have the last batch of each producer; those before it are found in the log."""
        for entry in snapshot.entries:
            known = self._by_id[entry.producer_id] = Producer(entry.producer_epoch)
            known.coordinator_epoch = entry.coordinator_epoch
            known.ended_at = entry.timestamp
        for header in snapshot.before:
            writer = None if header.is_control else self._by_id.get(header.producer_id)
            if writer is not None and writer.epoch == header.producer_epoch:
                writer.see(header, base_offset=header.base_offset)
        for entry in snapshot.entries:
            self._by_id[entry.producer_id].end_with(entry)
        open_ = [each for each in snapshot.entries if each.transaction_first_offset != NO_OFFSET]
        for entry in sorted(open_, key=lambda each: each.transaction_first_offset):
            self.transactions.open(entry.producer_id, entry.transaction_first_offset)

    def snapshot(self, *, offset: Offset) -> ProducerSnapshot:
        return ProducerSnapshot(
            offset, tuple(self._entry(id_, producer) for id_, producer in self._by_id.items())
        )

    def forget_before(self, oldest: WallMillis) -> None:
        """T8: drop producers that last wrote before ``oldest`` (producer.id.expiration.ms)."""
        idle = [
            id_
            for id_, producer in self._by_id.items()
            if producer.last_timestamp < oldest and not self.transactions.is_open(id_)
        ]
        for id_ in idle:
            del self._by_id[id_]

    def describe(self) -> tuple[ProducerDescription, ...]:
        return tuple(
            ProducerDescription(
                entry.producer_id,
                entry.producer_epoch,
                entry.last_sequence,
                entry.timestamp,
                entry.coordinator_epoch,
                entry.transaction_first_offset,
            )
            for entry in self.snapshot(offset=Offset(0)).entries
        )

    def _entry(self, producer_id: ProducerId, producer: Producer) -> ProducerEntry:
        last = producer.last
        return ProducerEntry(
            producer_id=producer_id,
            producer_epoch=producer.epoch,
            last_sequence=NO_SEQUENCE if last is None else last.last_sequence,
            last_offset=NO_OFFSET if last is None else last.last_offset,
            offset_delta=0 if last is None else last.last_offset - last.base_offset,
            timestamp=producer.last_timestamp,
            coordinator_epoch=producer.coordinator_epoch,
            transaction_first_offset=self.transactions.first_offset(producer_id),
        )


def _old_epoch(producer_id: ProducerId, sent: ProducerEpoch, known: ProducerEpoch) -> Refusal:
    return Refusal(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"producer {producer_id} has epoch {known} here; the batch was sent with {sent}",
    )


def _gap(batch: BatchHeader, *, expected: int) -> Refusal:
    return Refusal(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"producer {batch.producer_id} (epoch {batch.producer_epoch}) sent sequence "
        f"{batch.base_sequence} where {expected} was expected",
    )
