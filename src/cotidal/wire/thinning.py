"""A batch without some of its records, or in another compression. Pure. Never on the hot path.

Base and last offset, leader epoch, producer and sequence of a batch stay, whatever goes from it, so
that no offset is ever given twice and a producer's next sequence is known. Records that stay keep
their bytes: they hold distances from the batch's base offset and base timestamp.

A batch that holds tombstones, or a marker of a transaction of which nothing else is left, gets a
delete horizon when it is first rewritten (KIP-534): the time from which on they may go. It stands
in place of the base timestamp, told by a bit of the attributes; the distances are made anew.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final, TypeAlias

from cotidal.errors import MalformedFrame
from cotidal.messages.batch import (
    COMPRESSION_MASK,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    BatchHeader,
)
from cotidal.values import NO_TIMESTAMP
from cotidal.wire.batch import CRC_START, LENGTH_START, MAGIC, crc32c
from cotidal.wire.compression import Compression, compress, decompress
from cotidal.wire.primitives import (
    cut_short,
    read_varint,
    read_varlong,
    write_varint,
    write_varlong,
)
from cotidal.wire.records import RECORD_BYTES_MIN

Span: TypeAlias = "tuple[int, int, int, int, bytes | None, bool]"
"""Where a record begins and ends, its timestamp and offset as distances, its key, and whether it
has a value. A plain tuple, for one is made for every record."""

_pack_header: Final = Struct(">qiibIhiqqqhii").pack


def record_bytes(header: BatchHeader, batch: bytes) -> bytes:
    """The records of a batch, decompressed."""
    return bytes(decompress(header.compression, batch[HEADER_BYTES:]))


SPANS_AT_ONCE: Final = 100
"""Records walked between two pauses: some 0.1 ms of a core."""


def record_spans(
    header: BatchHeader, data: bytes, pause: Callable[[], None] = lambda: None
) -> list[Span]:
    """Every record of a batch, told without its value and headers. MalformedFrame if it cannot.
    ``pause`` is called now and then: a batch may have ten thousand records, and others wait.

    Numbers of one byte or two, which most are, are read in place: a call for each would take more
    than half the time of a compaction.
    """
    if header.record_count * RECORD_BYTES_MIN > len(data):
        raise MalformedFrame(f"a batch claims {header.record_count} records in {len(data)} bytes")
    spans: list[Span] = []
    pos = 0
    size = len(data)
    try:
        for number in range(header.record_count):
            if not number % SPANS_AT_ONCE:
                pause()
            start = pos
            byte, second = data[pos], data[pos + 1]
            if byte < 0x80:
                length, pos = (byte >> 1) ^ -(byte & 1), pos + 1
            elif second < 0x80:
                byte = byte & 0x7F | second << 7
                length, pos = (byte >> 1) ^ -(byte & 1), pos + 2
            else:
                length, pos = read_varint(data, pos)
            end = pos + length
            if length < 0 or end > size:
                raise cut_short("a record", length, size - pos)
            byte = data[pos + 1]  # after attributes: none is defined
            if byte < 0x80:
                timestamp_delta, pos = (byte >> 1) ^ -(byte & 1), pos + 2
            else:
                timestamp_delta, pos = read_varlong(data, pos + 1)
            byte, second = data[pos], data[pos + 1]
            if byte < 0x80:
                offset_delta, pos = (byte >> 1) ^ -(byte & 1), pos + 1
            elif second < 0x80:
                byte = byte & 0x7F | second << 7
                offset_delta, pos = (byte >> 1) ^ -(byte & 1), pos + 2
            else:
                offset_delta, pos = read_varint(data, pos)
            byte = data[pos]
            if byte < 0x80:
                length, pos = (byte >> 1) ^ -(byte & 1), pos + 1
            else:
                length, pos = read_varint(data, pos)
            key = None
            if length >= 0:
                key = data[pos : pos + length]
                pos += length
            if pos >= end:
                raise cut_short("a field of a record", pos - start, end - start)
            # A length of -1 stands as the byte 1; any other negative one counts as null too.
            spans.append((start, end, timestamp_delta, offset_delta, key, not data[pos] & 1))
            pos = end
    except IndexError:
        raise MalformedFrame("the records of a batch end within a field") from None
    if pos != size:
        raise MalformedFrame(f"{size - pos} bytes follow the last record of a batch")
    return spans


def thinned(
    header: BatchHeader, data: bytes, kept: list[Span], *, delete_horizon: int | None = None
) -> bytes:
    """The batch with no more than these of its records. ``delete_horizon``: it gets this one."""
    attributes = header.attributes
    base_timestamp: int = header.base_timestamp
    if delete_horizon is None:
        body = b"".join([data[span[0] : span[1]] for span in kept])
    else:
        attributes |= DELETE_HORIZON_BIT
        body = _rebased(data, kept, header.base_timestamp - delete_horizon)
        base_timestamp = delete_horizon
    max_timestamp: int = header.max_timestamp
    if not header.has_log_append_time:
        max_timestamp = header.base_timestamp + max(span[2] for span in kept)
    packed = compress(Compression(header.compression), body)
    return _batch(header, attributes, base_timestamp, max_timestamp, len(kept), bytes(packed))


def recompressed(header: BatchHeader, data: bytes, codec: int) -> bytes:
    """The same records in another compression. ``data``: as ``record_bytes`` gives them."""
    attributes = header.attributes & ~COMPRESSION_MASK | codec
    packed = bytes(compress(Compression(codec), data))
    times = header.base_timestamp, header.max_timestamp
    return _batch(header, attributes, *times, header.record_count, packed)


def emptied(header: BatchHeader) -> bytes:
    """The batch without a record: no compression, and no time for which one might look here."""
    attributes = header.attributes & ~(COMPRESSION_MASK | DELETE_HORIZON_BIT)
    return _batch(header, attributes, NO_TIMESTAMP, NO_TIMESTAMP, 0, b"")


def _batch(
    header: BatchHeader,
    attributes: int,
    base_timestamp: int,
    max_timestamp: int,
    count: int,
    records: bytes,
) -> bytes:
    out = bytearray(
        _pack_header(
            header.base_offset, HEADER_BYTES + len(records) - LENGTH_START, header.leader_epoch,
            MAGIC, 0, attributes, header.last_offset_delta, base_timestamp, max_timestamp,
            header.producer_id, header.producer_epoch, header.base_sequence, count,
        )
    )  # fmt: skip
    out += records
    out[17:CRC_START] = crc32c(memoryview(out)[CRC_START:]).to_bytes(4, "big")
    return bytes(out)


def _rebased(data: bytes, kept: list[Span], later: int) -> bytes:
    """The records with timestamps as distances from another base."""
    out = bytearray()
    for start, end, timestamp_delta, *_ in kept:
        _, pos = read_varint(data, start)
        _, after = read_varlong(data, pos + 1)
        body = bytearray(data[pos : pos + 1])
        write_varlong(body, timestamp_delta + later)
        body += data[after:end]
        write_varint(out, len(body))
        out += body
    return bytes(out)
