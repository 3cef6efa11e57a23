"""Batches on their way to a file: cut apart, and stamped with their place. Pure.

Bytes are never copied: a leader's batch becomes its new first 16 bytes and a view of the rest.
"""

from __future__ import annotations

from cotidal.invariants import OFFSETS_CONTIGUOUS
from cotidal.messages.batch import Placed
from cotidal.values import LeaderEpoch, WallMillis
from cotidal.wire.batch import PREFIX_BYTES, stamp_prefix, with_append_time

Piece = tuple[int, int, int, WallMillis, LeaderEpoch, tuple[bytes | memoryview, ...]]
"""Size, base offset, next offset, largest timestamp, leader epoch, bytes of one batch. A plain
tuple, for one is made for every batch."""


def stamp(
    placed: Placed, end: int, pieces: list[Piece], append_time: WallMillis | None = None
) -> int:
    """A leader's batches: each gets the next offset, and all the leader's epoch. Returns the end
    offset after them. ``append_time``: every record takes it (LogAppendTime)."""
    assert placed.base_offset == end, OFFSETS_CONTIGUOUS
    data = memoryview(placed.batches.data)
    epoch = placed.leader_epoch
    at = 0
    for header in placed.batches.headers:
        size = header.size_bytes
        prefix = stamp_prefix(base_offset=end, size=size, leader_epoch=epoch)
        next_offset = end + header.last_offset_delta + 1
        if append_time is None:
            timestamp = header.max_timestamp
            body = data[at + PREFIX_BYTES : at + size]
        else:
            timestamp = append_time
            body = memoryview(with_append_time(data[at : at + size], append_time))[PREFIX_BYTES:]
        pieces.append((size, end, next_offset, timestamp, epoch, (prefix, body)))
        at += size
        end = next_offset
    return end


def keep(placed: Placed, end: int, pieces: list[Piece]) -> int:
    """A follower's batches, as the leader wrote them; compaction there may have left gaps."""
    data = memoryview(placed.batches.data)
    at = 0
    for header in placed.batches.headers:
        base = header.base_offset
        assert base >= end, OFFSETS_CONTIGUOUS
        size = header.size_bytes
        end = base + header.last_offset_delta + 1
        body = data[at : at + size]
        pieces.append((size, base, end, header.max_timestamp, header.leader_epoch, (body,)))
        at += size
    return end
