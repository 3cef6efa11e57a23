"""What a log remembers of idempotent producers, as a value: the content of a ``.snapshot`` file."""

from __future__ import annotations

from typing import NamedTuple

from cotidal.values import NO_OFFSET, Offset, ProducerEpoch, ProducerId, Sequence, WallMillis


class ProducerEntry(NamedTuple):
    """One producer as Kafka's snapshot file keeps it: of its batches only the last."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    last_sequence: Sequence
    last_offset: Offset
    offset_delta: int
    """last_offset minus the batch's base offset."""
    timestamp: WallMillis
    coordinator_epoch: int = -1
    transaction_first_offset: Offset = NO_OFFSET


class ProducerSnapshot(NamedTuple):
    """Everything known of producers from the records below ``offset``."""

    offset: Offset
    entries: tuple[ProducerEntry, ...] = ()
