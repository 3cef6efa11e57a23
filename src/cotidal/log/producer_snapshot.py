"""What a log knew of its producers at an offset, in Kafka's format. Pure.

  <offset, 20 digits>.snapshot   i16 version 1, u32 crc32c of what follows, i32 count, and for each
      producer: i64 id, i16 epoch, i32 last sequence, i64 last offset, i32 offset delta,
      i64 timestamp, i32 coordinator epoch, i64 first offset of its open transaction or -1.

It covers the batches below its offset. The core owns the meaning; the log stores and finds it.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from cotidal.values import NO_OFFSET, Offset, ProducerEpoch, ProducerId, Sequence, WallMillis
from cotidal.wire.batch import crc32c

_FRONT: Final = Struct(">hI")
_COUNT: Final = Struct(">i")
_ENTRY: Final = Struct(">qhiqiqiq")
_VERSION: Final = 1


class ProducerEntry(NamedTuple):
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    last_sequence: Sequence
    last_offset: Offset
    offset_delta: int
    """Last offset less base offset of its last batch: with the sequence, the whole batch."""
    timestamp: WallMillis
    coordinator_epoch: int = -1
    transaction_first_offset: Offset = NO_OFFSET


class ProducerSnapshot(NamedTuple):
    offset: Offset
    entries: tuple[ProducerEntry, ...] = ()


def encode_snapshot(snapshot: ProducerSnapshot) -> bytes:
    parts = [_COUNT.pack(len(snapshot.entries))]
    parts.extend(_ENTRY.pack(*entry) for entry in snapshot.entries)
    body = b"".join(parts)
    return _FRONT.pack(_VERSION, crc32c(body)) + body


def decode_snapshot(offset: Offset, data: bytes) -> ProducerSnapshot:
    """ValueError, with a sentence, for anything that is not a whole snapshot."""
    if len(data) < _FRONT.size + _COUNT.size:
        raise ValueError(f"{len(data)} bytes are no producer snapshot")
    version, crc = _FRONT.unpack_from(data)
    if version != _VERSION:
        raise ValueError(f"producer snapshots of version {version} are not known")
    body = memoryview(data)[_FRONT.size :]
    if crc32c(body) != crc:
        raise ValueError("the producer snapshot fails its crc")
    (count,) = _COUNT.unpack_from(body)
    if count < 0 or _COUNT.size + count * _ENTRY.size != len(body):
        raise ValueError(f"{len(data)} bytes do not hold {count} producers")
    return ProducerSnapshot(
        offset, tuple(ProducerEntry(*fields) for fields in _ENTRY.iter_unpack(body[_COUNT.size :]))
    )
