"""A snapshot of the metadata log, as bytes. Pure. KIP-630, KIP-853.

    control batch   SnapshotHeaderRecord; with kraft.version 1 KRaftVersionRecord and VotersRecord
    batches         metadata records that make the image
    control batch   SnapshotFooterRecord

Offsets count from 0 inside a snapshot; every batch has the epoch of the last record that it sums
up. A reader refuses one that lacks its header or its footer, or holds a batch that fails its crc.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from cotidal.errors import MalformedFrame
from cotidal.messages.records.quorum import SnapshotFooterRecord, SnapshotHeaderRecord
from cotidal.values import LeaderEpoch, Offset, WallMillis
from cotidal.wire.batch import read_batches
from cotidal.wire.metadata_batch import (
    ReadMetadata,
    encode_metadata_batch,
    read_metadata_batches,
)
from cotidal.wire.primitives import Buffer

BATCH_RECORDS: Final = 1024
"""As many as Kafka's writer gathers: a batch stays far below what a reader allocates for one."""


def encode_metadata_snapshot(
    records: Iterable[Any],
    *,
    control: Sequence[Any],
    epoch: LeaderEpoch,
    log_wall: WallMillis,
    wall: WallMillis,
) -> Iterator[bytes]:
    """Batch by batch. ``control``: what goes beside the header. ``log_wall``: the time of the last
    record of the log that is summed up."""
    offset = Offset(0)
    for body, is_control in _bodies(records, control, log_wall):
        yield encode_metadata_batch(
            body, base_offset=offset, leader_epoch=epoch, control=is_control, wall=wall
        )
        offset = Offset(offset + len(body))


def _bodies(
    records: Iterable[Any], control: Sequence[Any], log_wall: WallMillis
) -> Iterator[tuple[tuple[Any, ...], bool]]:
    header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=log_wall)
    yield (header, *control), True
    left = iter(records)
    while body := tuple(islice(left, BATCH_RECORDS)):
        yield body, False
    yield (SnapshotFooterRecord(version=0),), True


def decode_metadata_snapshot(data: Buffer) -> tuple[ReadMetadata, ...]:
    """Every batch of a whole snapshot; MalformedFrame with a sentence for any other bytes."""
    found = read_batches(data)
    if found.fault is not None:
        raise MalformedFrame(found.fault)
    if found.cut or not found.headers:
        raise MalformedFrame("it ends before its footer")
    batches = read_metadata_batches(found)
    if not _holds(batches[0], SnapshotHeaderRecord):
        raise MalformedFrame("it does not begin with a header")
    if not _holds(batches[-1], SnapshotFooterRecord):
        raise MalformedFrame("it ends before its footer")
    return batches


def _holds(batch: ReadMetadata, kind: type) -> bool:
    return batch.control and any(isinstance(record, kind) for record in batch.records)
