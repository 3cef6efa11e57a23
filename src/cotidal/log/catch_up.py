"""Reads of those who are behind the tail: through the index, or on from where a reader stopped.

Where a read ended is remembered, for a few readers, so that one who reads on needs no index.
"""

from __future__ import annotations

from cotidal import limits
from cotidal.log.epochs import EpochLine
from cotidal.log.row import SegmentRow
from cotidal.log.segment import NOTHING, Place, Segment
from cotidal.messages.batch import Stretch


class CatchUp:
    __slots__ = ("_resume", "_row")

    def __init__(self, row: SegmentRow) -> None:
        self._row = row
        self._resume: dict[int, tuple[Segment, int]] = {}

    def forget(self) -> None:
        """Segments have gone or were cut."""
        self._resume.clear()

    def read(
        self,
        offset: int,
        max_bytes: int,
        below: int,
        *,
        whole_first: bool,
        epochs: EpochLine,
        log_end: int,
        leave: bool = False,
    ) -> bytes | memoryview | Stretch:
        row = self._row
        number = row.number_of(offset)
        resumed = self._resume.pop(offset, None)
        place = None
        if resumed is not None and resumed[0] is row.segments[number]:
            place = Place(resumed[1], offset)
        while offset < below and number < len(row):
            segment = row.segments[number]
            if place is None:
                recent = segment.read_recent(
                    offset, max_bytes, below, whole_first=whole_first, leave=leave
                )
                if recent:
                    return recent
                place = segment.locate(offset)
            if place.position < segment.size:
                cut = segment.read_at(
                    place,
                    max_bytes,
                    below,
                    end_offset=row.end_of(number, log_end),
                    whole_first=whole_first,
                    epochs=epochs,
                    leave=leave,
                )
                if cut is not NOTHING and cut.next.position < segment.size:
                    self._remember(segment, cut.next)
                return cut.data
            number += 1  # the offset lies in a gap at the segment's end
            place = None
        return b""

    def _remember(self, segment: Segment, place: Place) -> None:
        self._resume[place.offset] = (segment, place.position)
        if len(self._resume) > limits.LOG_RESUME_POINTS:
            del self._resume[next(iter(self._resume))]
