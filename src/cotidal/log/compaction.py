"""Which segments of a compacted log are worth cleaning now, and in what groups. Pure.

  clean part    below the offset up to which the log was cleaned last
  dirty part    from there to the first segment that may not be cleaned yet

A segment may be cleaned when it is closed, when all of it lies below the high watermark (what is
above may still be cut), and when its youngest record is older than min.compaction.lag.ms. It is
worth it when the dirty part is a larger share of both than min.cleanable.dirty.ratio, or when it
holds a record older than max.compaction.lag.ms.

The dirty part tells which keys are newer; the clean part is cleaned again with it, and the segments
of both are laid together in groups that do not exceed segment.bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cotidal.log.retention import SegmentFacts


class CompactionRules(NamedTuple):
    """The topic settings that compaction depends on, by Kafka's names and with its defaults."""

    min_dirty_ratio: float = 0.5
    min_lag_ms: int = 0
    max_lag_ms: int = 2**63 - 1
    delete_retention_ms: int = 24 * 60 * 60 * 1000


class Cleanable(NamedTuple):
    segments: int
    """How many from the first on may be cleaned."""
    first_dirty: int
    end_offset: int
    dirty_ratio: float
    overdue: bool
    """A record has waited for longer than max.compaction.lag.ms."""


def cleanable(
    segments: Sequence[SegmentFacts],
    *,
    cleaned_to: int,
    start_offset: int,
    below: int,
    now_wall: int,
    rules: CompactionRules,
) -> Cleanable | None:
    """None when nothing is worth it. The active segment is the last one, and is never cleaned.

    ``cleaned_to`` may lie before the log's start, or past its end after a cut: then all is dirty.
    """
    end_offset = segments[-1].end_offset
    first_dirty = max(cleaned_to, start_offset)
    if first_dirty > end_offset:
        first_dirty = start_offset
    count = 0
    clean_bytes = dirty_bytes = 0
    oldest_dirty = now_wall
    for segment in segments[:-1]:
        dirty = segment.end_offset > first_dirty
        too_young = rules.min_lag_ms > 0 and segment.youngest > now_wall - rules.min_lag_ms
        if segment.end_offset > below or (dirty and too_young):
            break
        count += 1
        if dirty:
            dirty_bytes += segment.size_bytes
            oldest_dirty = min(oldest_dirty, segment.oldest)
        else:
            clean_bytes += segment.size_bytes
    if dirty_bytes == 0:
        return None
    ratio = dirty_bytes / (clean_bytes + dirty_bytes)
    overdue = now_wall - oldest_dirty > rules.max_lag_ms
    if ratio <= rules.min_dirty_ratio and not overdue:
        return None
    return Cleanable(count, first_dirty, segments[count - 1].end_offset, ratio, overdue)


def group_by_size(
    segments: Sequence[SegmentFacts], *, bytes_max: int, offsets_max: int
) -> list[tuple[SegmentFacts, ...]]:
    """Neighbours that make one segment of at most ``bytes_max``, even if nothing goes from them,
    and of no more offsets than its indexes can hold."""
    groups: list[tuple[SegmentFacts, ...]] = []
    group: list[SegmentFacts] = []
    size = 0
    for segment in segments:
        too_long = group and segment.end_offset - group[0].base_offset > offsets_max
        if group and (size + segment.size_bytes > bytes_max or too_long):
            groups.append(tuple(group))
            group, size = [], 0
        group.append(segment)
        size += segment.size_bytes
    if group:
        groups.append(tuple(group))
    return groups
