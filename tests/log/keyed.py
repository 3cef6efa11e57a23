"""A log of keyed records, and what must be left of it however it is compacted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cotidal.log import cleaning
from cotidal.log.compaction import CompactionRules
from cotidal.log.contract import Compacted, LogConfig
from cotidal.log.log import Log
from cotidal.values import Offset, WallMillis
from cotidal.wire.batch import read_batches, read_header
from cotidal.wire.compression import Compression
from cotidal.wire.records import Record, build_batch, read_records
from tests.log.shelf import NOW, everything, lead

DAY_MS = 24 * 60 * 60 * 1000

KEYED = LogConfig(
    segment_bytes=600,
    index_interval_bytes=100,
    file_delete_delay_ms=1000,
    compacted=True,
    compaction=CompactionRules(min_dirty_ratio=0.0, delete_retention_ms=DAY_MS),
)


class Kept(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int


def keyed_batch(
    records: Sequence[tuple[bytes | None, bytes | None]],
    *,
    timestamp: int = NOW,
    compression: Compression = Compression.NONE,
    producer_id: int = -1,
    sequence: int = -1,
    transactional: bool = False,
) -> bytes:
    return build_batch(
        [Record(key, value, timestamp=timestamp + at) for at, (key, value) in enumerate(records)],
        compression=compression,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=sequence,
        transactional=transactional,
    )


def put(log: Log, *records: tuple[bytes | None, bytes | None], epoch: int = 1) -> None:
    """One batch with these records."""
    lead(log, [keyed_batch(records)], epoch=epoch)


def roll(log: Log) -> None:
    """Close the segment, and have it on the disk, as the broker does."""
    log.roll(NOW)
    log.flush()


def kept(log: Log) -> list[Kept]:
    """Every record, as a reader finds it from the start to the end."""
    found = []
    data = everything(log)
    position = 0
    for header in read_batches(data).headers:
        found += [
            Kept(record.offset, record.key, record.value, record.timestamp)
            for record in read_records(data, position)
        ]
        position += header.size_bytes
    return found


def values(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(each.offset, each.key, each.value) for each in kept(log)]


def latest(records: Sequence[Kept]) -> dict[bytes, Kept]:
    """The newest record of each key."""
    return {each.key: each for each in records if each.key is not None}


def batch_at(log: Log, offset: int) -> bytes:
    data = bytes(log.read(Offset(offset), max_bytes=1, below=log.end_offset))
    return data[: read_header(data).size_bytes]


def compact(
    log: Log,
    *,
    below: int | None = None,
    now: int = NOW,
    keys_max: int = 1_000_000,
    producers: frozenset[int] = frozenset(),
) -> Compacted | None:
    """One cleaning from beginning to end; None if there is nothing worth it."""
    bound = log.end_offset if below is None else Offset(below)
    begun = log.begin_cleaning(WallMillis(now), below=bound, producers=producers)
    if begun is None:
        return None
    done = cleaning.run(begun, keys_max=keys_max, now_wall=WallMillis(now), breathe=_breathe)
    return log.end_cleaning(begun, done, WallMillis(now))


def _breathe(_: int) -> None:
    return None
