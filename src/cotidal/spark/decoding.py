"""Record batches into Arrow columns, a column at a time instead of a record at a time. Pure.

The records of many batches are laid end to end, their beginnings found in one walk
(wire/record_bounds.py), and from then on each field is read for all of them at once: a varint at
each of these positions, then the next one after it. Keys and values are copied by Arrow, which is
handed views of them. Cost is per column, so small batches are gathered before they are decoded.

A damaged record cannot lead out of its bounds: positions only grow, reads past the end are clipped,
and every record must end where its length says, else MalformedFrame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numpy.lib.stride_tricks import sliding_window_view

from cotidal.errors import MalformedFrame
from cotidal.messages.batch import HEADER_BYTES, BatchHeader
from cotidal.wire.compression import decompress
from cotidal.wire.primitives import Buffer, cut_short, read_varint
from cotidal.wire.record_bounds import record_bounds
from cotidal.wire.records import RECORD_BYTES_MIN

INLINE_BYTES: Final = 12
"""A view of at most this many bytes holds them itself (Arrow's variable-size binary view)."""
_PADDING: Final = bytes(INLINE_BYTES)
"""After the records, so that a window of so many bytes exists at every position."""

HEADER_FIELDS: Final = (pa.field("key", pa.string()), pa.field("value", pa.binary()))

Ints: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]


class Section(NamedTuple):
    """The records of one batch, decompressed."""

    header: BatchHeader
    records: Buffer


class Decoded(NamedTuple):
    """Columns of consecutive records. ``headers`` is None unless it was asked for."""

    offsets: Ints
    timestamps_ms: Ints
    keys: pa.Array
    values: pa.Array
    headers: pa.Array | None
    timestamp_types: npt.NDArray[np.int32]
    leader_epochs: npt.NDArray[np.int32]
    producer_ids: Ints


def section(header: BatchHeader, batch: Buffer) -> Section:
    """The inside of one whole batch whose crc has been checked."""
    records = decompress(header.compression, batch[HEADER_BYTES:])
    count = header.record_count
    if count < 0 or count * RECORD_BYTES_MIN > len(records):
        raise MalformedFrame(f"a batch claims {count} records in {len(records)} bytes")
    return Section(header, records)


def decode(sections: list[Section], *, with_headers: bool = False) -> Decoded:
    """All records of these batches, in order."""
    counts = np.array([each.header.record_count for each in sections], np.int64)
    data = b"".join([*(each.records for each in sections), _PADDING])
    size = len(data) - len(_PADDING)
    bounds = np.array(record_bounds(data, size, int(counts.sum())), np.int64).reshape(-1, 2)
    begins, ends = bounds[:, 0], bounds[:, 1]
    _check_sections(sections, counts, ends)
    buffer = np.frombuffer(data, np.uint8)
    # After attributes, of which none is defined.
    timestamp_deltas, pos = _varints(buffer, begins + 1, bits=64)
    offset_deltas, pos = _varints(buffer, pos)
    key_lengths, key_starts = _varints(buffer, pos)
    value_lengths, value_starts = _varints(buffer, key_starts + np.maximum(key_lengths, 0))
    header_counts, pos = _varints(buffer, value_starts + np.maximum(value_lengths, 0))
    # Without headers a record ends here; with some, wherever the last of them does.
    if (pos > ends).any() or ((pos != ends) & (header_counts == 0)).any():
        raise MalformedFrame("the fields of a record do not end where it does")
    headers = _headers(data, pos, ends, header_counts) if with_headers else None
    timestamps, types = _timestamps(sections, counts, timestamp_deltas)
    base_offsets = _each_record([each.header.base_offset for each in sections], counts, np.int64)
    return Decoded(
        offsets=base_offsets + offset_deltas,
        timestamps_ms=timestamps,
        keys=_binary(buffer, key_starts, key_lengths),
        values=_binary(buffer, value_starts, value_lengths),
        headers=headers,
        timestamp_types=types,
        leader_epochs=_each_record(
            [each.header.leader_epoch for each in sections], counts, np.int32
        ),
        producer_ids=_each_record([each.header.producer_id for each in sections], counts, np.int64),
    )


def _check_sections(sections: list[Section], counts: Ints, ends: Ints) -> None:
    """Every batch has as many records as it claims, not only all of them together."""
    edges = np.concatenate((np.zeros(1, np.int64), ends))[np.cumsum(counts)]
    if (edges != np.cumsum([len(each.records) for each in sections])).any():
        raise MalformedFrame("a batch has more or fewer records than it claims")


def _each_record(values: Sequence[int], counts: Ints, kind: Any) -> Any:
    """A value of each batch, as one of each of its records."""
    return np.repeat(np.array(values, kind), counts)


def _timestamps(
    sections: list[Section], counts: Ints, deltas: Ints
) -> tuple[Ints, npt.NDArray[np.int32]]:
    """The producer's time of each record, or its batch's where the broker has set that; and
    which of the two (0, 1)."""
    by_broker = [each.header.has_log_append_time for each in sections]
    bases = [
        each.header.max_timestamp if appended else each.header.base_timestamp
        for each, appended in zip(sections, by_broker, strict=True)
    ]
    types = _each_record(by_broker, counts, np.int32)
    return _each_record(bases, counts, np.int64) + np.where(types, 0, deltas), types


def _varints(buffer: Bytes, pos: Ints, *, bits: int = 32) -> tuple[Ints, Ints]:
    """The signed number at each position, and the position after it."""
    byte = buffer.take(pos, mode="clip")
    pos = pos + 1
    more = byte >= 0x80
    if not more.any():
        small = byte.astype(np.int64)
        return (small >> 1) ^ -(small & 1), pos
    value = (byte & 0x7F).astype(np.uint64)
    which = np.flatnonzero(more)
    shift = 7
    while which.size:
        if shift > bits or (shift == 63 and (buffer.take(pos[which], mode="clip") > 1).any()):
            raise MalformedFrame(f"a number of a record is larger than {bits} bits")
        byte = buffer.take(pos[which], mode="clip")
        value[which] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        pos[which] += 1
        which = which[byte >= 0x80]
        shift += 7
    if bits < 64 and (value >> np.uint64(bits)).any():
        raise MalformedFrame(f"a number of a record is larger than {bits} bits")
    signs = -(value & np.uint64(1)).astype(np.int64)
    return (value >> np.uint64(1)).astype(np.int64) ^ signs, pos


def _binary(buffer: Bytes, starts: Ints, lengths: Ints) -> pa.Array:
    """The bytes at these places; null where the length is negative."""
    count = len(starts)
    missing = lengths < 0
    validity = None
    if missing.any():
        validity = pa.py_buffer(np.packbits(~missing, bitorder="little"))
        lengths = np.where(missing, 0, lengths)
    views = np.zeros((count, 16), np.uint8)
    words = views.view(np.int32)
    words[:, 0] = lengths
    windows = sliding_window_view(buffer, INLINE_BYTES)[
        np.minimum(starts, buffer.size - INLINE_BYTES)
    ]
    short = lengths <= INLINE_BYTES
    if short.any():
        windows = windows * (np.arange(INLINE_BYTES) < lengths[:, None])
    views[:, 4:] = windows
    long = ~short
    words[long, 2] = 0
    words[long, 3] = starts[long]
    viewed = pa.Array.from_buffers(
        pa.binary_view(), count, [validity, pa.py_buffer(views), pa.py_buffer(buffer)]
    )
    return viewed.cast(pa.binary())


def _headers(data: bytes, starts: Ints, ends: Ints, counts: Ints) -> pa.Array:
    """Lists of name and value; empty where a record has none."""
    names: list[bytes] = []
    values: list[bytes | None] = []
    for which in np.flatnonzero(counts).tolist():
        pos, end, count = int(starts[which]), int(ends[which]), int(counts[which])
        if not 0 <= count <= end - pos:
            raise MalformedFrame(f"a record claims {count} headers in {end - pos} bytes")
        try:
            for _ in range(count):
                name, pos = _field(data, pos, end)
                value, pos = _field(data, pos, end)
                if name is None:
                    raise MalformedFrame("a record header has no name")
                names.append(name.decode("utf-8", "replace").encode())
                values.append(value)
        except IndexError:
            raise MalformedFrame("the headers of a record end within a field") from None
        if pos != end:
            raise MalformedFrame("the headers of a record do not end where it does")
    pairs = pa.StructArray.from_arrays(
        [pa.array(names, pa.binary()).cast(pa.string()), pa.array(values, pa.binary())],
        fields=list(HEADER_FIELDS),
    )
    edges = np.concatenate((np.zeros(1, np.int32), np.cumsum(counts, dtype=np.int32)))
    return pa.ListArray.from_arrays(pa.array(edges), pairs)


def _field(data: bytes, pos: int, end: int) -> tuple[bytes | None, int]:
    length, pos = read_varint(data, pos)
    if length < 0:
        return None, pos
    if length > end - pos:
        raise cut_short("a header of a record", length, end - pos)
    return data[pos : pos + length], pos + length
