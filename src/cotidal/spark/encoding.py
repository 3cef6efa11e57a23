"""Arrow columns into the records of a batch, a column at a time instead of a row at a time. Pure.

The twin of decoding.py: the numbers of all records are written as varints at once, and Arrow joins
them with keys, values and headers, record by record, into one buffer that is the batch's inside.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cotidal.client.idempotent import Encoded
from cotidal.spark.decoding import Bytes, Ints
from cotidal.wire.primitives import write_varint

NO_HEADERS: Final = b"\0"
RECORD_OVERHEAD_BYTES: Final = 24
"""At most, of a record without headers: lengths, deltas, attributes."""


class Rows(NamedTuple):
    """Columns to be written; ``headers`` is encoded already, None where no record has any."""

    keys: pa.Array
    values: pa.Array
    headers: pa.Array | None
    timestamps_ms: Ints

    def take(self, which: Ints) -> Rows:
        indices = pa.array(which)
        return Rows(
            self.keys.take(indices),
            self.values.take(indices),
            None if self.headers is None else self.headers.take(indices),
            self.timestamps_ms[which],
        )

    def slice(self, begin: int, end: int) -> Rows:
        return Rows(
            self.keys[begin:end],
            self.values[begin:end],
            None if self.headers is None else self.headers[begin:end],
            self.timestamps_ms[begin:end],
        )


def encode(rows: Rows) -> Encoded:
    """The inside of one batch of these rows, in their order."""
    count = len(rows.timestamps_ms)
    base = int(rows.timestamps_ms[0])
    timestamp_deltas = _zigzag(rows.timestamps_ms - base)
    offset_deltas = _zigzag(np.arange(count))
    key_sizes, value_sizes = _lengths(rows.keys), _lengths(rows.values)
    key_lengths, value_lengths = _zigzag(key_sizes), _zigzag(value_sizes)
    headers = rows.headers if rows.headers is not None else pa.scalar(NO_HEADERS, pa.binary())
    header_sizes = 1 if rows.headers is None else _lengths(rows.headers)
    bodies = 1 + _sizes(timestamp_deltas) + _sizes(offset_deltas)
    bodies += _sizes(key_lengths) + np.maximum(key_sizes, 0)
    bodies += _sizes(value_lengths) + np.maximum(value_sizes, 0) + header_sizes
    attributes = np.zeros(count, np.uint64)
    joined = pc.binary_join_element_wise(
        _varints(_zigzag(bodies), attributes, timestamp_deltas, offset_deltas, key_lengths),
        rows.keys.fill_null(b""),
        _varints(value_lengths),
        rows.values.fill_null(b""),
        headers,
        pa.scalar(b"", pa.binary()),
    )
    assert joined.offset == 0
    size = int(bodies.sum() + _sizes(_zigzag(bodies)).sum())
    records = memoryview(joined.buffers()[2])[:size]
    return Encoded(records, count, base, int(rows.timestamps_ms.max()))


def batch_edges(rows: Rows, *, bytes_max: int) -> list[int]:
    """Where to cut rows so that a batch has at most so many bytes, or one record."""
    sizes = np.maximum(_lengths(rows.keys), 0) + np.maximum(_lengths(rows.values), 0)
    sizes += RECORD_OVERHEAD_BYTES
    if rows.headers is not None:
        sizes += _lengths(rows.headers)
    ends = np.cumsum(sizes)
    edges = [0]
    while edges[-1] < len(ends):
        before = int(ends[edges[-1] - 1]) if edges[-1] else 0
        fits = int(ends.searchsorted(before + bytes_max, side="right"))
        edges.append(max(fits, edges[-1] + 1))
    return edges


def encode_headers(column: pa.Array) -> pa.Array | None:
    """Lists of name and value, each as it stands at the end of a record."""
    listed = column.to_pylist()
    if not any(listed):
        return None
    encoded: list[bytes] = []
    for headers in listed:
        out = bytearray()
        write_varint(out, len(headers or ()))
        for header in headers or ():
            for part in ((header["key"] or "").encode(), header["value"]):
                write_varint(out, -1 if part is None else len(part))
                out += part or b""
        encoded.append(bytes(out))
    return pa.array(encoded, pa.binary())


def _lengths(column: pa.Array) -> Ints:
    """Of each value; -1 for null."""
    lengths: Ints = (
        pc.binary_length(column).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    )
    return lengths


def _zigzag(numbers: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
    return ((numbers << 1) ^ (numbers >> 63)).astype(np.uint64)


def _sizes(numbers: np.ndarray[tuple[int, ...], np.dtype[np.uint64]]) -> Ints:
    """How many bytes each takes as a varint."""
    sizes = np.ones(len(numbers), np.int64)
    greatest = int(numbers.max())
    for shift in range(7, 64, 7):
        if greatest >> shift == 0:
            break
        sizes += numbers >= np.uint64(1 << shift)
    return sizes


def _varints(*columns: np.ndarray[tuple[int, ...], np.dtype[np.uint64]]) -> pa.Array:
    """For each record its numbers as varints, one after the other."""
    sizes = [_sizes(column) for column in columns]
    ends = np.cumsum(sum(sizes))
    edges = np.concatenate((np.zeros(1, np.int64), ends))
    out: Bytes = np.zeros(int(ends[-1]), np.uint8)
    pos = edges[:-1]
    for column, size in zip(columns, sizes, strict=True):
        for at in range(int(size.max())):
            longer = size > at
            septets = ((column >> np.uint64(7 * at)) & np.uint64(0x7F)).astype(np.uint8)
            septets |= (size > at + 1).astype(np.uint8) << 7
            if longer.all():
                out[pos + at] = septets
            else:
                out[pos[longer] + at] = septets[longer]
        pos = pos + size
    return pa.Array.from_buffers(
        pa.binary(), len(pos), [None, pa.py_buffer(edges.astype(np.int32)), pa.py_buffer(out)]
    )
