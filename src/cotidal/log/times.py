"""Finding records by their time.

The time index leads to a batch; which record of it has the time is read from the records
themselves, off the fast path. A batch whose topic stamps LogAppendTime has one time for all.
"""

from __future__ import annotations

from collections.abc import Sequence

from cotidal.errors import MalformedFrame
from cotidal.log.contract import TimedOffset
from cotidal.log.scan import Found
from cotidal.log.segment import Segment
from cotidal.values import Offset, WallMillis
from cotidal.wire.records import read_records


def offset_for_time(
    segments: Sequence[Segment], timestamp: int, start: int, below: int
) -> TimedOffset | None:
    for segment in segments:
        if segment.base_offset >= below:
            break
        if segment.youngest().timestamp < timestamp:
            continue
        floor = max(segment.times.floor(timestamp).offset, start)
        for found in segment.good_batches(*segment.locate(floor)):
            if found.header.base_offset >= below:
                break
            if found.header.max_timestamp >= timestamp and found.header.last_offset >= start:
                record = _record(segment, found, timestamp, start, below)
                if record is not None:
                    return record
    return None


def max_timestamp(segments: Sequence[Segment], start: int, below: int) -> TimedOffset | None:
    best: tuple[int, int, Segment] | None = None
    for segment in segments:
        if segment.base_offset >= below:
            break
        youngest = segment.youngest_below(below)
        if youngest.timestamp >= 0 and (best is None or youngest.timestamp > best[0]):
            best = (youngest.timestamp, youngest.offset, segment)
    if best is None:
        return None
    timestamp, offset, segment = best
    for found in segment.good_batches(*segment.locate(offset)):
        return _record(segment, found, timestamp, start, below)
    return None


def _record(
    segment: Segment, found: Found, timestamp: int, start: int, below: int
) -> TimedOffset | None:
    """The first record of a batch that is at least this young and within the bounds."""
    header = found.header
    if header.has_log_append_time:
        offset = max(header.base_offset, start)
        if offset >= below:
            return None
        return TimedOffset(Offset(offset), header.max_timestamp, header.leader_epoch)
    batch = segment.file().pread(header.size_bytes, found.position)
    try:
        records = read_records(batch)
    except MalformedFrame:
        # Its checksum is right: a producer sent it so, and a broker does not look inside. What its
        # header says is all that can be told of it.
        offset = max(start, header.base_offset)
        return TimedOffset(Offset(offset), header.max_timestamp, header.leader_epoch)
    for record in records:
        if record.timestamp >= timestamp and start <= record.offset < below:
            return TimedOffset(
                Offset(record.offset), WallMillis(record.timestamp), header.leader_epoch
            )
    return None
