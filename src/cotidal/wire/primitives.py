"""The types that every message is made of: numbers, strings, bytes, counts, tagged fields. Pure.

Readers take ``(buf, pos)`` and return ``(value, next position)``; writers append to a bytearray.

A claimed length is compared with the bytes that remain before anything is allocated, and a claimed
number of elements with the bytes that so many of the smallest elements would take. What cannot be
read raises MalformedFrame, with two exceptions that cost nothing on the way of well-formed frames:
a read past the end may raise IndexError or struct.error. ``cotidal.wire.codec`` turns these (and
bad UTF-8) into MalformedFrame, so only code below it ever sees them.

As in Kafka, any negative length of a plain nullable string, array or byte field means null, and a
varint may carry padding as long as it stays within five (ten) bytes and its type's range.
"""

from __future__ import annotations

import struct
from struct import Struct
from typing import Final

from cotidal.errors import MalformedFrame
from cotidal.values import Uuid

Buffer = bytes | memoryview

STRING_BYTES_MAX: Final = 0x7FFF
"""A string's length is an int16 on the wire; the compact form keeps the bound, as Kafka does."""

SPLICE_BYTES_MIN: Final = 4096
"""Record data shorter than this is copied into the response: one more buffer costs more."""

unpack_b: Final = Struct(">b").unpack_from
unpack_h: Final = Struct(">h").unpack_from
unpack_i: Final = Struct(">i").unpack_from
pack_h: Final = Struct(">h").pack
pack_i: Final = Struct(">i").pack

SHORT: Final = 8
"""Replica sets and the like are shorter than this: their formats are made beforehand."""
_unpack_int32s: Final = tuple(Struct(f">{count}i").unpack_from for count in range(SHORT))
_pack_int32s: Final = tuple(Struct(f">{count}i").pack for count in range(SHORT))


# What goes wrong, one sentence each.


def cut_short(what: str, claimed: int, left: int) -> MalformedFrame:
    return MalformedFrame(f"{what} claims {claimed} bytes where {left} are left")


def string_refused(length: int, left: int) -> MalformedFrame:
    if length > left:
        return cut_short("a string", length, left)
    return MalformedFrame(f"a string of {length} bytes is longer than {STRING_BYTES_MAX}")


def data_refused(length: int, left: int) -> MalformedFrame:
    return cut_short("a records field", length, left)


def count_refused(count: int, left: int) -> MalformedFrame:
    if count < 0:
        return null_refused("an array")
    if count <= left:
        return MalformedFrame(f"{count} elements are more than {left} bytes or a message can hold")
    return MalformedFrame(f"an array claims {count} elements where {left} bytes are left")


def null_refused(field: str) -> MalformedFrame:
    return MalformedFrame(f"{field} is null, which this version does not allow")


def null_field(field: str, version: int) -> ValueError:
    return ValueError(f"{field} must not be null in version {version}")


def absent_field(field: str, version: int) -> ValueError:
    return ValueError(f"{field} is set, but version {version} has no such field")


# Varints.


def read_uvarint(buf: Buffer, pos: int) -> tuple[int, int]:
    """An unsigned number of up to 32 bits."""
    byte = buf[pos]
    if byte < 0x80:
        return byte, pos + 1
    value = byte & 0x7F
    for shift in (7, 14, 21, 28):
        pos += 1
        byte = buf[pos]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                raise MalformedFrame("a varint is larger than 32 bits")
            return value, pos + 1
    raise MalformedFrame("a varint does not end within 5 bytes")


def read_uvarlong(buf: Buffer, pos: int) -> tuple[int, int]:
    """An unsigned number of up to 64 bits."""
    value = 0
    for shift in (0, 7, 14, 21, 28, 35, 42, 49, 56, 63):
        byte = buf[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFFFFFFFFFF:
                raise MalformedFrame("a varlong is larger than 64 bits")
            return value, pos
    raise MalformedFrame("a varlong does not end within 10 bytes")


def read_varint(buf: Buffer, pos: int) -> tuple[int, int]:
    """A signed number of 32 bits in zigzag form."""
    byte = buf[pos]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), pos + 1
    value, pos = read_uvarint(buf, pos)
    return (value >> 1) ^ -(value & 1), pos


def read_varlong(buf: Buffer, pos: int) -> tuple[int, int]:
    """A signed number of 64 bits in zigzag form."""
    value, pos = read_uvarlong(buf, pos)
    return (value >> 1) ^ -(value & 1), pos


def write_uvarint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)


def write_varint(out: bytearray, value: int) -> None:
    value = (value << 1) ^ (value >> 31)
    if value < 0x80:
        out.append(value)
    else:
        write_uvarint(out, value)


def write_varlong(out: bytearray, value: int) -> None:
    write_uvarint(out, (value << 1) ^ (value >> 63))


# Strings and bytes: plain (int16 or int32 length) and compact (uvarint, length + 1, 0 for null).


def read_length(buf: Buffer, pos: int) -> tuple[int, int]:
    """A compact length or count; -1 for null."""
    byte = buf[pos]
    if byte < 0x80:
        return byte - 1, pos + 1
    value, pos = read_uvarint(buf, pos)
    return value - 1, pos


def read_text(buf: Buffer, pos: int, length: int) -> tuple[str, int]:
    end = pos + length
    if end > len(buf) or length > STRING_BYTES_MAX:
        raise string_refused(length, len(buf) - pos)
    return str(buf[pos:end], "utf-8"), end


def read_blob(buf: Buffer, pos: int, length: int) -> tuple[bytes, int]:
    end = pos + length
    if end > len(buf):
        raise cut_short("a byte field", length, len(buf) - pos)
    return bytes(buf[pos:end]), end


def read_data(buf: Buffer, pos: int, length: int) -> tuple[Buffer, int]:
    """Bytes that are passed on: a view where the frame is one."""
    end = pos + length
    if end > len(buf):
        raise data_refused(length, len(buf) - pos)
    return buf[pos:end], end


def read_string(buf: Buffer, pos: int) -> tuple[str, int]:
    (length,) = unpack_h(buf, pos)
    if length < 0:
        raise null_refused("a string")
    return read_text(buf, pos + 2, length)


def read_nullable_string(buf: Buffer, pos: int) -> tuple[str | None, int]:
    (length,) = unpack_h(buf, pos)
    if length < 0:
        return None, pos + 2
    return read_text(buf, pos + 2, length)


def read_compact_string(buf: Buffer, pos: int) -> tuple[str, int]:
    length, pos = read_length(buf, pos)
    if length < 0:
        raise null_refused("a string")
    return read_text(buf, pos, length)


def read_compact_nullable_string(buf: Buffer, pos: int) -> tuple[str | None, int]:
    length, pos = read_length(buf, pos)
    if length < 0:
        return None, pos
    return read_text(buf, pos, length)


def read_bytes(buf: Buffer, pos: int) -> tuple[bytes, int]:
    (length,) = unpack_i(buf, pos)
    if length < 0:
        raise null_refused("a byte field")
    return read_blob(buf, pos + 4, length)


def read_nullable_bytes(buf: Buffer, pos: int) -> tuple[bytes | None, int]:
    (length,) = unpack_i(buf, pos)
    if length < 0:
        return None, pos + 4
    return read_blob(buf, pos + 4, length)


def read_compact_bytes(buf: Buffer, pos: int) -> tuple[bytes, int]:
    length, pos = read_length(buf, pos)
    if length < 0:
        raise null_refused("a byte field")
    return read_blob(buf, pos, length)


def read_compact_nullable_bytes(buf: Buffer, pos: int) -> tuple[bytes | None, int]:
    length, pos = read_length(buf, pos)
    if length < 0:
        return None, pos
    return read_blob(buf, pos, length)


def read_records(buf: Buffer, pos: int) -> tuple[Buffer, int]:
    (length,) = unpack_i(buf, pos)
    if length < 0:
        raise null_refused("a records field")
    return read_data(buf, pos + 4, length)


def read_nullable_records(buf: Buffer, pos: int) -> tuple[Buffer | None, int]:
    (length,) = unpack_i(buf, pos)
    if length < 0:
        return None, pos + 4
    return read_data(buf, pos + 4, length)


def read_compact_records(buf: Buffer, pos: int) -> tuple[Buffer, int]:
    length, pos = read_length(buf, pos)
    if length < 0:
        raise null_refused("a records field")
    return read_data(buf, pos, length)


def read_compact_nullable_records(buf: Buffer, pos: int) -> tuple[Buffer | None, int]:
    length, pos = read_length(buf, pos)
    if length < 0:
        return None, pos
    return read_data(buf, pos, length)


def write_string(out: bytearray, value: str) -> None:
    raw = value.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise ValueError(f"a string of {len(raw)} bytes is longer than {STRING_BYTES_MAX}")
    out += pack_h(len(raw))
    out += raw


def write_nullable_string(out: bytearray, value: str | None) -> None:
    if value is None:
        out += b"\xff\xff"
    else:
        write_string(out, value)


def write_string_length(out: bytearray, length: int) -> None:
    """The compact length of a string that is not null."""
    if length > STRING_BYTES_MAX:
        raise ValueError(f"a string of {length} bytes is longer than {STRING_BYTES_MAX}")
    write_uvarint(out, length + 1)


def write_compact_string(out: bytearray, value: str) -> None:
    raw = value.encode()
    write_string_length(out, len(raw))
    out += raw


def write_compact_nullable_string(out: bytearray, value: str | None) -> None:
    if value is None:
        out.append(0)
    else:
        write_compact_string(out, value)


def write_bytes(out: bytearray, value: Buffer) -> None:
    out += pack_i(len(value))
    out += value


def write_nullable_bytes(out: bytearray, value: Buffer | None) -> None:
    if value is None:
        out += b"\xff\xff\xff\xff"
    else:
        write_bytes(out, value)


def write_compact_bytes(out: bytearray, value: Buffer) -> None:
    write_uvarint(out, len(value) + 1)
    out += value


def write_compact_nullable_bytes(out: bytearray, value: Buffer | None) -> None:
    if value is None:
        out.append(0)
    else:
        write_compact_bytes(out, value)


def splice(out: bytearray, parts: list[Buffer | bytearray], data: Buffer) -> bytearray:
    """Append record data without copying it, unless it is short; return what to write to next."""
    if len(data) < SPLICE_BYTES_MIN:
        out += data
        return out
    parts.append(out)
    parts.append(data)
    return bytearray()


# Arrays: a count, then elements of at least ``smallest`` bytes each.


def checked_count(buf: Buffer, pos: int, count: int, smallest: int) -> int:
    if count * smallest > len(buf) - pos:
        raise count_refused(count, len(buf) - pos)
    return count


def read_count(buf: Buffer, pos: int, smallest: int) -> tuple[int, int]:
    (count,) = unpack_i(buf, pos)
    if count < 0:
        raise null_refused("an array")
    return checked_count(buf, pos + 4, count, smallest), pos + 4


def read_nullable_count(buf: Buffer, pos: int, smallest: int) -> tuple[int, int]:
    (count,) = unpack_i(buf, pos)
    if count < 0:
        return -1, pos + 4
    return checked_count(buf, pos + 4, count, smallest), pos + 4


def read_compact_count(buf: Buffer, pos: int, smallest: int) -> tuple[int, int]:
    count, pos = read_length(buf, pos)
    if count < 0:
        raise null_refused("an array")
    return checked_count(buf, pos, count, smallest), pos


def read_compact_nullable_count(buf: Buffer, pos: int, smallest: int) -> tuple[int, int]:
    count, pos = read_length(buf, pos)
    if count < 0:
        return -1, pos
    return checked_count(buf, pos, count, smallest), pos


def read_int8s(buf: Buffer, pos: int, count: int) -> tuple[tuple[int, ...], int]:
    return struct.unpack_from(f">{count}b", buf, pos), pos + count


def read_int16s(buf: Buffer, pos: int, count: int) -> tuple[tuple[int, ...], int]:
    return struct.unpack_from(f">{count}h", buf, pos), pos + 2 * count


def read_int32s(buf: Buffer, pos: int, count: int) -> tuple[tuple[int, ...], int]:
    if count < SHORT:
        return _unpack_int32s[count](buf, pos), pos + 4 * count
    return struct.unpack_from(f">{count}i", buf, pos), pos + 4 * count


def read_int64s(buf: Buffer, pos: int, count: int) -> tuple[tuple[int, ...], int]:
    return struct.unpack_from(f">{count}q", buf, pos), pos + 8 * count


def read_uuids(buf: Buffer, pos: int, count: int) -> tuple[tuple[Uuid, ...], int]:
    end = pos + 16 * count
    if end > len(buf):
        raise count_refused(count, len(buf) - pos)
    return tuple(Uuid(bytes(buf[at : at + 16])) for at in range(pos, end, 16)), end


def read_strings(buf: Buffer, pos: int, count: int) -> tuple[tuple[str, ...], int]:
    values = []
    for _ in range(count):
        value, pos = read_string(buf, pos)
        values.append(value)
    return tuple(values), pos


def read_compact_strings(buf: Buffer, pos: int, count: int) -> tuple[tuple[str, ...], int]:
    values = []
    for _ in range(count):
        value, pos = read_compact_string(buf, pos)
        values.append(value)
    return tuple(values), pos


def write_int8s(out: bytearray, values: tuple[int, ...]) -> None:
    out += struct.pack(f">{len(values)}b", *values)


def write_int16s(out: bytearray, values: tuple[int, ...]) -> None:
    out += struct.pack(f">{len(values)}h", *values)


def write_int32s(out: bytearray, values: tuple[int, ...]) -> None:
    count = len(values)
    if count < SHORT:
        out += _pack_int32s[count](*values)
    else:
        out += struct.pack(f">{count}i", *values)


def write_int64s(out: bytearray, values: tuple[int, ...]) -> None:
    out += struct.pack(f">{len(values)}q", *values)


def write_uuids(out: bytearray, values: tuple[Uuid, ...]) -> None:
    for value in values:
        out += value


def write_strings(out: bytearray, values: tuple[str, ...]) -> None:
    for value in values:
        write_string(out, value)


def write_compact_strings(out: bytearray, values: tuple[str, ...]) -> None:
    for value in values:
        write_compact_string(out, value)


# Tagged fields: a count, then tag, size and data of each.


def read_tag(buf: Buffer, pos: int) -> tuple[int, int, int]:
    """The tag, where its data begins and where it ends."""
    tag, pos = read_uvarint(buf, pos)
    size, pos = read_uvarint(buf, pos)
    if size > len(buf) - pos:
        raise cut_short(f"tagged field {tag}", size, len(buf) - pos)
    return tag, pos, pos + size


def tag_misread(tag: int, pos: int, end: int) -> MalformedFrame:
    return MalformedFrame(f"tagged field {tag} ends {end - pos} bytes after its data")


def skip_tags(buf: Buffer, pos: int) -> int:
    """The position after a section of tagged fields of which none is known."""
    count, pos = read_uvarint(buf, pos)
    for _ in range(count):
        _, _, pos = read_tag(buf, pos)
    return pos


def write_tag(out: bytearray, tag: int, data: bytearray) -> None:
    write_uvarint(out, tag)
    write_uvarint(out, len(data))
    out += data
