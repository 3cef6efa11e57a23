"""Where the records of a batch begin and end: the one thing that only a walk can tell. Pure.

A record says how long it is, so the next one is found from it; once all are found, every other
field of all records can be read at once, column by column (spark/decoding.py). This walk is kept
apart so that the compiled build makes C of all of it.
"""

from __future__ import annotations

from cotidal.errors import MalformedFrame


def record_bounds(data: bytes, size: int, count: int) -> list[int]:
    """For each of ``count`` records where its fields begin, after its length, and where it ends.

    MalformedFrame unless the records fill the first ``size`` bytes exactly.
    """
    bounds: list[int] = []
    append = bounds.append
    pos = 0
    try:
        for _ in range(count):
            length = data[pos]
            pos += 1
            if length >= 0x80:
                byte = data[pos]
                pos += 1
                length = length & 0x7F | (byte & 0x7F) << 7
                shift = 14
                while byte >= 0x80:
                    if shift > 28:
                        raise MalformedFrame("the length of a record does not end within 5 bytes")
                    byte = data[pos]
                    pos += 1
                    length |= (byte & 0x7F) << shift
                    shift += 7
            if length & 1:
                raise MalformedFrame("a record has a negative length")
            append(pos)
            pos += length >> 1
            append(pos)
    except IndexError:
        raise MalformedFrame("the records of a batch end within a field") from None
    if pos < size:
        raise MalformedFrame(f"{size - pos} bytes follow the last record of a batch")
    if pos > size:
        raise MalformedFrame(f"the last record of a batch lacks {pos - size} bytes")
    return bounds
