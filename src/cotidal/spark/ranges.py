"""Ranges of offsets, and how they are divided among tasks and among triggers. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cotidal.values import LeaderEpoch, Offset, TopicPartition, Uuid


class OffsetRange(NamedTuple):
    """Records of one partition, from ``begin`` on and before ``end``."""

    topic: str
    topic_id: Uuid
    partition: int
    begin: Offset
    end: Offset
    leader_epoch: LeaderEpoch
    """Of the leader that named the end: no record of the range has a later one. -1: not known."""

    @property
    def at(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def size(self) -> int:
        return max(0, self.end - self.begin)


def split_ranges(
    ranges: Sequence[OffsetRange], *, partitions_min: int | None, records_max: int | None
) -> list[OffsetRange]:
    """One task a range, unless more are asked for: then large ranges are cut into equal parts."""
    pieces = [each for each in ranges if each.size]
    if records_max is not None:
        pieces = [cut for each in pieces for cut in _cut(each, -(-each.size // records_max))]
    if partitions_min is None or len(pieces) >= partitions_min or not pieces:
        return pieces
    total = sum(each.size for each in pieces)
    # Ranges that are smaller than a fair share stay whole; the others share what is left.
    fair = total / partitions_min
    large = [each for each in pieces if each.size > fair]
    left = partitions_min - (len(pieces) - len(large))
    large_total = sum(each.size for each in large)
    return [
        cut
        for each in pieces
        for cut in _cut(each, max(1, round(left * each.size / large_total)) if each in large else 1)
    ]


def shared_tasks(
    ranges: Sequence[OffsetRange], *, records_min: int
) -> list[tuple[OffsetRange, ...]]:
    """The work of each task: small ranges in a row share one, up to so many offsets."""
    tasks: list[list[OffsetRange]] = []
    held = 0
    for each in ranges:
        if tasks and held + each.size <= records_min:
            tasks[-1].append(each)
            held += each.size
        else:
            tasks.append([each])
            held = each.size
    return [tuple(task) for task in tasks]


def _cut(whole: OffsetRange, parts: int) -> list[OffsetRange]:
    parts = max(1, min(parts, whole.size))
    edges = [whole.begin + whole.size * part // parts for part in range(parts + 1)]
    return [
        whole._replace(begin=Offset(begin), end=Offset(end))
        for begin, end in itertools.pairwise(edges)
    ]


def limited_ends(
    begins: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], *, most: int
) -> dict[TopicPartition, int]:
    """Ends so that at most ``most`` offsets lie between: each partition gives in proportion to
    what it has, and at least one offset while there are any to give."""
    sizes = {at: max(0, end - begins.get(at, end)) for at, end in ends.items()}
    total = sum(sizes.values())
    if total <= most:
        return dict(ends)
    limited: dict[TopicPartition, int] = {}
    left = most
    for at, size in sorted(sizes.items()):
        share = min(size, max(1, size * most // total) if size else 0, left)
        left -= share
        limited[at] = ends[at] - size + share
    return limited
