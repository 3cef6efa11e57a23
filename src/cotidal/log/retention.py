"""Which segments at the front of a log have had their time. Pure.

A segment goes when its youngest record is older than retention.ms, or when the log without it is
still as large as retention.bytes, or when it lies wholly before the start offset. Only from the
front, and only what every replica in the ISR has (below the high watermark).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class SegmentFacts(NamedTuple):
    base_offset: int
    end_offset: int
    size_bytes: int
    youngest: int
    """Wall time of its youngest record, or when it came to be if no record has a time."""
    oldest: int = 1 << 62
    """Wall time of its first batch; only compaction asks."""


class Expired(NamedTuple):
    segments: int
    """How many at the front may go; the active one too, when it is counted."""
    reasons: tuple[str, ...]


def expired_segments(
    segments: Sequence[SegmentFacts],
    *,
    start_offset: int,
    below: int,
    now_wall: int,
    retention_ms: int,
    retention_bytes: int,
) -> Expired:
    """The active segment, last, goes only by age and only when it holds something."""
    count = 0
    reasons: list[str] = []
    surplus = sum(segment.size_bytes for segment in segments) - retention_bytes
    for number, segment in enumerate(segments):
        active = number == len(segments) - 1
        if segment.end_offset > below or (active and segment.size_bytes == 0):
            break
        age = now_wall - segment.youngest
        if not active and segment.end_offset <= start_offset:
            reason = f"the log starts at {start_offset}"
        elif retention_ms >= 0 and age > retention_ms:
            reason = f"its youngest record is {age} ms old, retention.ms is {retention_ms}"
        elif not active and retention_bytes >= 0 and surplus >= segment.size_bytes:
            reason = f"the log has {surplus} bytes more than retention.bytes ({retention_bytes})"
        else:
            break
        surplus -= segment.size_bytes
        count += 1
        offsets = f"offsets {segment.base_offset} to {segment.end_offset - 1}"
        reasons.append(f"removed segment {segment.base_offset:020d} ({offsets}): {reason}")
    return Expired(count, tuple(reasons))
