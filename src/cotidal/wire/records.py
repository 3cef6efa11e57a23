"""The records inside a batch: read, build, and the control records. Pure. Never on the hot path.

A record is: length varint | attributes int8 | timestamp delta varlong | offset delta varint |
key | value | headers, where key and value have varint lengths (-1 for null).

Every reader raises MalformedFrame, and nothing else, for what cannot be read; the batch's crc is
the caller's to check (batch.read_batches has done so).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from struct import Struct
from typing import Any, Final, NamedTuple

from cotidal.errors import MalformedFrame
from cotidal.messages.batch import (
    CONTROL_BIT,
    HEADER_BYTES,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    Batches,
    BatchHeader,
)
from cotidal.messages.records.quorum import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from cotidal.messages.records.transaction import EndTxnMarker
from cotidal.values import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP
from cotidal.wire.batch import CRC_START, LENGTH_START, MAGIC, crc32c, read_batches, read_header
from cotidal.wire.codec import decode_record, encode_record
from cotidal.wire.compression import Compression, compress, decompress
from cotidal.wire.primitives import (
    Buffer,
    cut_short,
    read_varint,
    read_varlong,
    write_varint,
    write_varlong,
)

RECORD_BYTES_MIN: Final = 7
"""Length, attributes, two deltas, null key, null value, no headers: one byte each."""

NEXT_OFFSET: Final = -1
OFFSET_DELTA_MAX: Final = 2**31 - 1
"""Offsets within a batch are int32 distances from its base."""

_pack_header: Final = Struct(">qiibIhiqqqhii").pack
_pack_control: Final = Struct(">hh").pack
_unpack_control: Final = Struct(">hh").unpack_from


class Record(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    """Names that are not UTF-8 keep their bytes as surrogate escapes."""
    timestamp: int = 0
    offset: int = NEXT_OFFSET
    """When building: NEXT_OFFSET for the one after the record before."""


class ControlType(IntEnum):
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


_CONTROL_CLASSES: Final[dict[int, type[Any]]] = {
    ControlType.ABORT: EndTxnMarker,
    ControlType.COMMIT: EndTxnMarker,
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}
CONTROL_VERSION: Final = 0
"""Of every control record: Kafka 4.3 still writes and reads version 0 of all of them."""


def read_records(batch: Buffer, position: int = 0) -> list[Record]:
    """All records of the batch at a position, decompressed, with whole offsets and timestamps."""
    header = read_header(batch, position)
    data = _inside(header, batch, position)
    append_time = header.max_timestamp if header.has_log_append_time else None
    records = []
    pos = 0
    try:
        for _ in range(header.record_count):
            record, pos = _read_record(
                data, pos, header.base_offset, header.base_timestamp, append_time
            )
            records.append(record)
    except IndexError:
        raise MalformedFrame("the records of a batch end within a field") from None
    if pos != len(data):
        raise MalformedFrame(f"{len(data) - pos} bytes follow the last record of a batch")
    return records


def read_pairs(
    header: BatchHeader, batch: Buffer, position: int = 0
) -> list[tuple[bytes | None, bytes | None]]:
    """The key and the value of every record of a batch whose header is read: all that whoever loads
    a log of a hundred thousand of them needs. What comes after the value is stepped over.

    Numbers of one byte, which most are, are read in place.
    """
    data = bytes(_inside(header, batch, position))
    pairs: list[tuple[bytes | None, bytes | None]] = []
    size = len(data)
    end = 0
    try:
        for _ in range(header.record_count):
            length, pos = read_varint(data, end)
            end = pos + length
            if length < 0 or end > size:
                raise cut_short("a record", length, size - pos)
            pos += 2  # attributes, and the first byte of the timestamp
            while data[pos - 1] >= 0x80:
                pos += 1
            pos += 1
            while data[pos - 1] >= 0x80:  # the offset
                pos += 1
            length = data[pos]
            if length < 0x80:
                length, pos = (length >> 1) ^ -(length & 1), pos + 1
            else:
                length, pos = read_varint(data, pos)
            key = None
            if length >= 0:
                key = data[pos : pos + length]
                pos += length
            length = data[pos]
            if length < 0x80:
                length, pos = (length >> 1) ^ -(length & 1), pos + 1
            else:
                length, pos = read_varint(data, pos)
            value = None
            if length >= 0:
                value = data[pos : pos + length]
                pos += length
            if pos >= end:  # the number of headers at least
                raise cut_short("a field of a record", pos, end)
            pairs.append((key, value))
    except IndexError:
        raise MalformedFrame("the records of a batch end within a field") from None
    if end != size:
        raise MalformedFrame(f"{size - end} bytes follow the last record of a batch")
    return pairs


def _inside(header: BatchHeader, batch: Buffer, position: int) -> Buffer:
    """What comes after a batch's header, decompressed, if it can be so many records."""
    end = position + header.size_bytes
    if end > len(batch):
        raise cut_short("a batch", header.size_bytes, len(batch) - position)
    if header.record_count == 0 and header.size_bytes == HEADER_BYTES:
        return b""  # compaction has emptied it
    data = decompress(header.compression, batch[position + HEADER_BYTES : end])
    if header.record_count < 0 or header.record_count * RECORD_BYTES_MIN > len(data):
        raise MalformedFrame(f"a batch claims {header.record_count} records in {len(data)} bytes")
    return data


def _read_record(
    data: Buffer, pos: int, base_offset: int, base_timestamp: int, append_time: int | None
) -> tuple[Record, int]:
    length, pos = read_varint(data, pos)
    end = pos + length
    if length < 0 or end > len(data):
        raise cut_short("a record", length, len(data) - pos)
    timestamp_delta, pos = read_varlong(data, pos + 1)  # after attributes: none is defined
    offset_delta, pos = read_varint(data, pos)
    key, pos = _read_bytes(data, pos, end)
    value, pos = _read_bytes(data, pos, end)
    count, pos = read_varint(data, pos)
    if not 0 <= count <= end - pos:
        raise MalformedFrame(f"a record claims {count} headers in {end - pos} bytes")
    headers = []
    for _ in range(count):
        name, pos = _read_bytes(data, pos, end)
        if name is None:
            raise MalformedFrame("a record header has no name")
        header_value, pos = _read_bytes(data, pos, end)
        headers.append((name.decode("utf-8", "surrogateescape"), header_value))
    if pos != end:
        raise MalformedFrame(f"a record ends {end - pos} bytes after its last field")
    timestamp = base_timestamp + timestamp_delta if append_time is None else append_time
    told = (key, value, tuple(headers), timestamp, base_offset + offset_delta)
    return tuple.__new__(Record, told), pos


def _read_bytes(data: Buffer, pos: int, end: int) -> tuple[bytes | None, int]:
    length, pos = read_varint(data, pos)
    if length < 0:
        return None, pos
    if length > end - pos:
        raise cut_short("a field of a record", length, end - pos)
    return bytes(data[pos : pos + length]), pos + length


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    compression: Compression = Compression.NONE,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    leader_epoch: int = -1,
    transactional: bool = False,
    control: bool = False,
    append_time: int | None = None,
    last_offset: int | None = None,
) -> bytes:
    """A batch of these records.

    ``append_time`` makes it a LogAppendTime batch. ``last_offset`` keeps the end of a batch from
    which compaction removed the last records; without records it is needed.
    """
    body = bytearray()
    count = 0
    base_timestamp = max_timestamp = int(NO_TIMESTAMP)
    delta = -1
    for record in records:
        before = delta
        delta = delta + 1 if record.offset == NEXT_OFFSET else record.offset - base_offset
        if not before < delta <= OFFSET_DELTA_MAX:
            raise ValueError(f"offset {record.offset} cannot follow in a batch at {base_offset}")
        if count == 0:
            base_timestamp = record.timestamp
        max_timestamp = max(max_timestamp, record.timestamp)
        _write_record(body, record, record.timestamp - base_timestamp, delta)
        count += 1
    if last_offset is not None:
        delta = last_offset - base_offset
    if delta < 0:
        raise ValueError("a batch without records needs last_offset")
    attributes = int(compression)
    attributes |= TRANSACTIONAL_BIT if transactional else 0
    attributes |= CONTROL_BIT if control else 0
    if append_time is not None:
        attributes |= TIMESTAMP_TYPE_BIT
        max_timestamp = append_time
    return seal_batch(
        compress(compression, bytes(body)) if count else b"",
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=attributes,
        last_offset_delta=delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        count=count,
    )


def seal_batch(
    records: Buffer,
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    count: int,
) -> bytes:
    """A header and its checksum before records that are encoded, and compressed, already."""
    size = HEADER_BYTES + len(records)
    fields = (
        attributes, last_offset_delta, base_timestamp, max_timestamp,
        producer_id, producer_epoch, base_sequence, count,
    )  # fmt: skip
    out = bytearray(_pack_header(base_offset, size - LENGTH_START, leader_epoch, MAGIC, 0, *fields))
    out += records
    out[17:CRC_START] = crc32c(memoryview(out)[CRC_START:]).to_bytes(4, "big")
    return bytes(out)


def values_batch(values: Iterable[tuple[int, bytes]]) -> Batches:
    """A batch of values with their times, as a producer sends it. gzip, which every client reads
    without a further library."""
    records = (Record(None, value, timestamp=time) for time, value in values)
    return read_batches(build_batch(records, compression=Compression.GZIP))


def _write_record(out: bytearray, record: Record, timestamp_delta: int, offset_delta: int) -> None:
    body = bytearray(1)  # attributes
    write_varlong(body, timestamp_delta)
    write_varint(body, offset_delta)
    _write_bytes(body, record.key)
    _write_bytes(body, record.value)
    write_varint(body, len(record.headers))
    for name, value in record.headers:
        _write_bytes(body, name.encode("utf-8", "surrogateescape"))
        _write_bytes(body, value)
    write_varint(out, len(body))
    out += body


def _write_bytes(out: bytearray, value: bytes | None) -> None:
    if value is None:
        write_varint(out, -1)
    else:
        write_varint(out, len(value))
        out += value


# Control records.


def control_record(kind: ControlType, value: Any, *, timestamp: int = 0) -> Record:
    """A control record; the value is of the class that goes with its type."""
    expected = _CONTROL_CLASSES[kind]
    if not isinstance(value, expected):
        raise ValueError(f"{kind.name} needs {expected.__name__}, not {type(value).__name__}")
    # A transaction's end is prefixed with its version; the quorum's records carry it as a field.
    prefix = bytearray(2) if expected is EndTxnMarker else bytearray()
    data = bytes(encode_record(value, CONTROL_VERSION, prefix))
    return Record(_pack_control(CONTROL_VERSION, kind), data, timestamp=timestamp)


def read_control_record(record: Record) -> tuple[ControlType, Any] | None:
    """Type and value; None for a type of some later version, which is to be skipped."""
    key, value = record.key, record.value
    if key is None or len(key) < 4 or value is None:
        raise MalformedFrame("a control record lacks a key of four bytes or a value")
    version, number = _unpack_control(key)
    if version < 0:
        raise MalformedFrame(f"a control record has version {version}")
    if number not in _CONTROL_CLASSES:
        return None
    kind = ControlType(number)
    expected = _CONTROL_CLASSES[kind]
    return kind, decode_record(
        expected, CONTROL_VERSION, value, 2 if expected is EndTxnMarker else 0
    )
