"""When a batch goes into a new segment. Pure.

The bounds are worked out once for a segment and compared with each batch: size, index room,
offsets that no longer fit 31 bits, and age. Age is counted between records' times, from that of
the segment's first batch; where records have no time, by the clock.
"""

from __future__ import annotations

import zlib
from typing import Final, NamedTuple

from cotidal.log.contract import LogConfig
from cotidal.log.segment import Segment

RELATIVE_OFFSET_MAX: Final = 2**31 - 1
"""Indexes hold offsets relative to their segment's base in 31 bits."""

NEVER: Final = 1 << 62


class RollBounds(NamedTuple):
    """What a batch must not pass to go into the segment."""

    size: int
    next_offset: int
    timestamp: int
    wall: int


def roll_bounds(name: str, segment: Segment, config: LogConfig) -> RollBounds:
    size = -1 if segment.index_is_full(config.segment_index_bytes) else config.segment_bytes
    next_offset = segment.base_offset + RELATIVE_OFFSET_MAX + 1
    if segment.size == 0:
        return RollBounds(size, next_offset, NEVER, NEVER)
    age = config.roll_ms - _jitter(name, segment.base_offset, config)
    if segment.first_timestamp is not None and segment.first_timestamp >= 0:
        return RollBounds(size, next_offset, segment.first_timestamp + age, NEVER)
    return RollBounds(size, next_offset, NEVER, segment.created + age)


def _jitter(name: str, base_offset: int, config: LogConfig) -> int:
    """So that segments of many partitions do not all roll at once; the same in every run."""
    if config.segment_jitter_ms <= 0:
        return 0
    seed = zlib.crc32(f"{name}/{base_offset}".encode())
    return seed % min(config.segment_jitter_ms, config.roll_ms)
