"""Headers for tests of the core, which never looks at payloads."""

from __future__ import annotations

from cotidal.messages.batch import Batches, BatchHeader
from cotidal.values import (
    NO_EPOCH,
    Offset,
    ProducerEpoch,
    ProducerId,
    Sequence,
    WallMillis,
)


def header(
    *,
    records: int = 1,
    base_offset: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    timestamp: int = 1_000,
    size_bytes: int = 100,
    attributes: int = 0,
) -> BatchHeader:
    return BatchHeader(
        base_offset=Offset(base_offset),
        size_bytes=size_bytes,
        leader_epoch=NO_EPOCH,
        attributes=attributes,
        last_offset_delta=records - 1,
        base_timestamp=WallMillis(timestamp),
        max_timestamp=WallMillis(timestamp),
        producer_id=ProducerId(producer_id),
        producer_epoch=ProducerEpoch(producer_epoch),
        base_sequence=Sequence(base_sequence),
        record_count=records,
    )


def one_batch(**fields: int) -> Batches:
    return Batches((header(**fields),), bytes(100))
