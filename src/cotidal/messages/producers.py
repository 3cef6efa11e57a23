"""What a log remembers of producers and their transactions, as values: the contents of the files
``.snapshot`` and ``.txnindex``."""

from __future__ import annotations

from typing import NamedTuple

from cotidal.messages.batch import BatchHeader
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
    before: tuple[BatchHeader, ...] = ()
    """Batches shortly before ``offset``, ascending, where the log has been asked for them: the file
    knows only the last of each producer, and an earlier one may be sent again."""


class AbortedTransaction(NamedTuple):
    """A producer's records from ``first_offset`` up to its marker at ``last_offset`` are void.

    ``last_stable_offset`` is what it was after the marker: readers below it need look no further.
    """

    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    last_stable_offset: Offset
