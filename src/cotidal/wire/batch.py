"""Record batches, version 2, as the broker sees them: header and opaque records. Pure.

    base offset int64 | length int32 | leader epoch int32 | magic int8 | crc uint32 |
    attributes int16 | last offset delta int32 | base timestamp int64 | max timestamp int64 |
    producer id int64 | producer epoch int16 | base sequence int32 | record count int32 | records

``length`` counts from the leader epoch on. The crc covers everything after itself, so base offset
and leader epoch can be set by replacing the first 16 bytes (`stamp_prefix`); the rest of a batch
is never changed, except where the topic asks for LogAppendTime.

Records inside a batch are not read here: see records.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from struct import Struct
from typing import Final

from cotidal.errors import MalformedFrame
from cotidal.messages.batch import (
    CONTROL_BIT,
    HEADER_BYTES,
    TIMESTAMP_TYPE_BIT,
    Batches,
    BatchHeader,
    Marker,
)
from cotidal.wire.markers import read_marker
from cotidal.wire.primitives import Buffer

MAGIC: Final = 2
PREFIX_BYTES: Final = 16
"""Base offset, length and leader epoch: all that may change outside the crc."""
LENGTH_START: Final = 12
"""The length field counts from here."""
SLICE_BYTES_MAX: Final = 4096
"""Below this a slice of bytes is cheaper than a view; above it the copy is what costs."""
CRC_PLACE: Final = 17
CRC_START: Final = 21
"""First byte that the crc covers."""

unpack_header: Final = Struct(">qiibIhiqqqhii").unpack_from
"""All fields, in the order of their bytes."""
_unpack_length: Final = Struct(">i").unpack_from
_unpack_crc: Final = Struct(">I").unpack_from
_pack_prefix: Final = Struct(">qii").pack
_pack_append_time: Final = Struct(">hiqq").pack_into
_unpack_append_time: Final = Struct(">hiqq").unpack_from
_pack_crc: Final = Struct(">I").pack_into
_new: Final = tuple.__new__


@cache
def _table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return tuple(table)


def slow_crc32c(buffer: Buffer | bytearray) -> int:
    """CRC-32C in plain Python: for places without the extension, such as a browser."""
    value = 0xFFFFFFFF
    table = _table()
    for byte in buffer:
        value = table[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF


def _fast_crc32c() -> Callable[[Buffer | bytearray], int]:
    """The extension alone: its package reads its own version from disk and defines a command line,
    which would be a tenth of a broker's start."""
    package = PathFinder.find_spec("crc32c")
    if package is None or package.submodule_search_locations is None:
        return slow_crc32c
    extension = PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
    if extension is None or extension.loader is None:
        return slow_crc32c
    module = module_from_spec(extension)
    extension.loader.exec_module(module)
    return module.crc32c  # type: ignore[no-any-return]


crc32c: Final = _fast_crc32c()


def read_batches(data: Buffer) -> Batches:
    """Scan the headers of whole batches and check each crc. Never raises: see ``Batches``."""
    size = len(data)
    view = data if size < SLICE_BYTES_MAX else memoryview(data)
    headers: list[BatchHeader] = []
    markers: tuple[Marker, ...] = ()
    pos = 0
    fault: str | None = None
    while size - pos >= HEADER_BYTES:
        (
            base_offset, length, leader_epoch, magic, crc, attributes, last_offset_delta,
            base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count,
        ) = unpack_header(data, pos)  # fmt: skip
        end = pos + LENGTH_START + length
        if magic != MAGIC or end - pos < HEADER_BYTES:
            fault = _shape_fault(magic, length)
            break
        if end > size:
            break
        # The checksum first: in a damaged batch no other field means anything.
        if crc32c(view[pos + CRC_START : end]) != crc:
            fault = f"the batch at byte {pos} fails its checksum"
            break
        if last_offset_delta < 0 or count < 0 or base_offset < 0:
            fault = f"the batch at byte {pos} has a negative offset, offset delta or record count"
            break
        headers.append(
            _new(
                BatchHeader,
                (
                    base_offset, end - pos, leader_epoch, attributes, last_offset_delta,
                    base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence,
                    count,
                ),
            )
        )  # fmt: skip
        if attributes & CONTROL_BIT:
            marker = read_marker(headers[-1], data, pos)
            if marker is not None:
                markers += (marker,)
        pos = end
    if fault is None and pos < size < pos + HEADER_BYTES:
        fault = _remnant_fault(data, pos)
    whole = data if pos == size else data[:pos]
    return _new(Batches, (tuple(headers), whole, fault, fault is None and pos < size, markers))


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at a position; MalformedFrame if there is none of this version. No crc check."""
    if len(buffer) - position < HEADER_BYTES:
        raise MalformedFrame(f"{len(buffer) - position} bytes are too few for a batch header")
    (
        base_offset, length, leader_epoch, magic, _, attributes, last_offset_delta,
        base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count,
    ) = unpack_header(buffer, position)  # fmt: skip
    if magic != MAGIC or length + LENGTH_START < HEADER_BYTES:
        raise MalformedFrame(_shape_fault(magic, length))
    return _new(
        BatchHeader,
        (
            base_offset, length + LENGTH_START, leader_epoch, attributes, last_offset_delta,
            base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count,
        ),
    )  # fmt: skip


def stored_crc(batch: Buffer, position: int = 0) -> int:
    """What the batch claims as its checksum."""
    crc: int = _unpack_crc(batch, position + CRC_PLACE)[0]
    return crc


def stamp_prefix(*, base_offset: int, size: int, leader_epoch: int) -> bytes:
    """The first 16 bytes of a batch of ``size`` bytes at its place in the log."""
    return _pack_prefix(base_offset, size - LENGTH_START, leader_epoch)


def with_append_time(batch: Buffer, now_wall: int) -> bytes:
    """The batch with LogAppendTime: its type bit, its greatest timestamp, and a new checksum."""
    out = bytearray(batch)
    attributes, delta, base_timestamp, _ = _unpack_append_time(out, CRC_START)
    _pack_append_time(
        out, CRC_START, attributes | TIMESTAMP_TYPE_BIT, delta, base_timestamp, now_wall
    )
    _pack_crc(out, CRC_PLACE, crc32c(memoryview(out)[CRC_START:]))
    return bytes(out)


def _shape_fault(magic: int, length: int) -> str:
    if magic != MAGIC:
        return f"a batch has format version {magic}; only {MAGIC} is accepted"
    return f"a batch claims {length} bytes, fewer than a header"


def _remnant_fault(data: Buffer, pos: int) -> str | None:
    """Bytes too few for a header are a batch cut short, unless they already contradict one."""
    left = len(data) - pos
    if left > PREFIX_BYTES and data[pos + PREFIX_BYTES] != MAGIC:
        return _shape_fault(data[pos + PREFIX_BYTES], 0)
    if left >= LENGTH_START:
        (length,) = _unpack_length(data, pos + 8)
        if length + LENGTH_START < HEADER_BYTES:
            return _shape_fault(MAGIC, length)
    return None
