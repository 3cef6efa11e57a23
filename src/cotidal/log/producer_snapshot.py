"""What a log knew of its producers at an offset, in Kafka's format. Pure.

  <offset, 20 digits>.snapshot   i16 version 1, u32 crc32c of what follows, i32 count, and for each
      producer: i64 id, i16 epoch, i32 last sequence, i64 last offset, i32 offset delta,
      i64 timestamp, i32 coordinator epoch, i64 first offset of its open transaction or -1.

It covers the batches below its offset. The core owns the meaning; the log stores and finds it.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from cotidal.messages.producers import ProducerEntry, ProducerSnapshot
from cotidal.values import Offset
from cotidal.wire.batch import crc32c

__all__ = ["ProducerEntry", "ProducerSnapshot", "decode_snapshot", "encode_snapshot"]

_FRONT: Final = Struct(">hI")
_COUNT: Final = Struct(">i")
_ENTRY: Final = Struct(">qhiqiqiq")
_VERSION: Final = 1


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
