"""The segments of a log in their order, the active one last. Never empty once the log is open."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from cotidal.log.retention import SegmentFacts
from cotidal.log.roll import NEVER
from cotidal.log.scan import Damage
from cotidal.log.segment import Segment
from cotidal.messages.producers import AbortedTransaction


class SegmentRow:
    __slots__ = ("bases", "segments")

    def __init__(self, segments: Iterable[Segment]) -> None:
        self.segments: list[Segment] = list(segments)
        self.bases: list[int] = [segment.base_offset for segment in self.segments]

    def __len__(self) -> int:
        return len(self.segments)

    def number_of(self, offset: int) -> int:
        """Which segment holds ``offset``; the first one for what lies before it."""
        return max(0, bisect_right(self.bases, offset) - 1)

    def end_of(self, number: int, log_end: int) -> int:
        """Where a segment ends: at the base of the next one, or with the log."""
        return self.bases[number + 1] if number + 1 < len(self.bases) else log_end

    def add(self, segment: Segment) -> None:
        self.segments.append(segment)
        self.bases.append(segment.base_offset)

    def drop_from(self, first: int) -> int:
        """Remove all from the one numbered ``first`` on, the last one first, so that a crash
        leaves a log that is merely shorter. Returns how many there were."""
        count = len(self.segments) - first
        while len(self.segments) > first:
            self.bases.pop()
            self.segments.pop().unlink()
        return max(0, count)

    def replace(self, bases: tuple[int, ...], segment: Segment) -> list[Segment]:
        """Put one segment in the place of several neighbours, and return those."""
        first = self.bases.index(bases[0])
        behind = first + len(bases)
        assert tuple(self.bases[first:behind]) == bases
        taken = self.segments[first:behind]
        self.segments[first:behind] = [segment]
        self.bases[first:behind] = [segment.base_offset]
        return taken

    def take_front(self, count: int) -> list[Segment]:
        taken = self.segments[:count]
        del self.segments[:count]
        del self.bases[:count]
        return taken

    def facts(self, log_end: int, *, oldest: bool = False) -> list[SegmentFacts]:
        """What retention and compaction decide by; ``oldest``: with the time of first batches."""
        return [
            SegmentFacts(
                each.base_offset,
                self.end_of(number, log_end),
                each.size,
                each.born(),
                each.oldest() if oldest else NEVER,
            )
            for number, each in enumerate(self.segments)
        ]

    def aborted_between(self, first: int, below: int) -> tuple[AbortedTransaction, ...]:
        """The aborted transactions that a reader of ``first`` up to ``below`` must know."""
        found: list[AbortedTransaction] = []
        for segment in self.segments[self.number_of(first) :]:
            for each in segment.aborted.entries():
                if each.last_offset >= first and each.first_offset < below:
                    found.append(each)
                if each.last_stable_offset >= below:
                    return tuple(found)
        return tuple(found)

    def damages(self, from_offset: int, log_end: int) -> tuple[str, ...]:
        """Walk everything with crc, and say in a sentence each what is damaged. A segment is
        given up at its first damaged batch."""
        sentences: list[str] = []
        for number in range(self.number_of(from_offset), len(self.segments)):
            segment = self.segments[number]
            end: int = segment.base_offset
            for found in segment.batches(check_crc=True, below=self.end_of(number, log_end)):
                if isinstance(found, Damage):
                    sentences.append(segment.damage_sentence(found.position, found.reason, end))
                else:
                    end = found.header.next_offset
        return tuple(sentences)
