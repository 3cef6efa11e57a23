"""The four compressions of record batches, in the framings that Kafka's clients use. Pure.

  gzip     RFC 1952, by the standard library, whose decompressor takes a bound
  snappy   written in xerial's blocks as Java does; read in these and plain (librdkafka writes both)
  lz4      frames of independent blocks of 64 KB, written here block by block: Java refuses the
           dependent blocks that the library's own frame writer makes; any frame is read
  zstd     one frame

A bound on the decompressed size is part of every call: a small batch may claim to be anything.
"""

from __future__ import annotations

import zlib
from enum import IntEnum
from typing import Any, Final

from cotidal.errors import MalformedFrame
from cotidal.limits import DECOMPRESSED_BATCH_BYTES_MAX
from cotidal.wire.primitives import Buffer

XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
XERIAL_HEADER: Final = XERIAL_MAGIC + b"\0\0\0\x01\0\0\0\x01"
XERIAL_BLOCK_BYTES: Final = 32 * 1024
"""The block size of Java's stream."""

LZ4_HEADER: Final = b"\x04\x22\x4d\x18\x60\x40\x82"
"""Magic; version 1 with independent blocks; blocks of 64 KB; checksum of these two bytes."""
LZ4_BLOCK_BYTES: Final = 64 * 1024
LZ4_UNCOMPRESSED: Final = 0x80000000

_FIRST_GUESS_BYTES: Final = 64 * 1024
_NO_ROOM: Final = "failed to write whole buffer"
"""What the library says when the output is too small; anything else means bad input."""


class Compression(IntEnum):
    """As in the lowest three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: Compression, data: Buffer) -> Buffer:
    match codec:
        case Compression.NONE:
            return data
        case Compression.GZIP:
            stream = zlib.compressobj(wbits=31)
            return stream.compress(data) + stream.flush()
        case Compression.SNAPPY:
            return _compress_xerial(data)
        case Compression.LZ4:
            return _compress_lz4(data)
        case Compression.ZSTD:
            return bytes(_cramjam().zstd.compress(data))


def decompress(
    codec: int, data: Buffer, *, bytes_max: int = DECOMPRESSED_BATCH_BYTES_MAX
) -> Buffer:
    """MalformedFrame if the data is damaged, larger than the bound, or of no known codec."""
    match codec:
        case Compression.NONE:
            return data
        case Compression.GZIP:
            return _decompress_gzip(data, bytes_max)
        case Compression.SNAPPY:
            return _decompress_snappy(data, bytes_max)
        case Compression.LZ4:
            return _decompress_growing(_cramjam().lz4, "lz4", data, bytes_max)
        case Compression.ZSTD:
            return _decompress_growing(_cramjam().zstd, "zstd", data, bytes_max)
        case _:
            raise MalformedFrame(f"there is no compression with number {codec}")


def _cramjam() -> Any:
    """Imported when first needed: a broker that only passes batches on never needs it."""
    import cramjam

    return cramjam


def _too_large(name: str, bytes_max: int) -> MalformedFrame:
    return MalformedFrame(f"{name} data is larger than {bytes_max} bytes when decompressed")


def _compress_lz4(data: Buffer) -> bytes:
    compress_block = _cramjam().lz4.compress_block
    out = bytearray(LZ4_HEADER)
    for at in range(0, len(data), LZ4_BLOCK_BYTES):
        block = data[at : at + LZ4_BLOCK_BYTES]
        packed = bytes(compress_block(block, store_size=False))
        if len(packed) < len(block):
            out += len(packed).to_bytes(4, "little")
            out += packed
        else:
            out += (len(block) | LZ4_UNCOMPRESSED).to_bytes(4, "little")
            out += block
    out += b"\0\0\0\0"
    return bytes(out)


def _compress_xerial(data: Buffer) -> bytes:
    compress_raw = _cramjam().snappy.compress_raw
    out = bytearray(XERIAL_HEADER)
    for at in range(0, len(data), XERIAL_BLOCK_BYTES):
        packed = bytes(compress_raw(data[at : at + XERIAL_BLOCK_BYTES]))
        out += len(packed).to_bytes(4, "big")
        out += packed
    return bytes(out)


def _decompress_gzip(data: Buffer, bytes_max: int) -> bytes:
    out = bytearray()
    rest: Buffer = data
    while rest:  # a file may hold several members
        stream = zlib.decompressobj(wbits=31)
        try:
            out += stream.decompress(rest, bytes_max + 1 - len(out))
        except zlib.error as wrong:
            raise MalformedFrame(f"gzip data is damaged: {wrong}") from None
        if len(out) > bytes_max:
            raise _too_large("gzip", bytes_max)
        if not stream.eof:
            raise MalformedFrame("gzip data is cut short")
        rest = stream.unused_data
    return bytes(out)


def _decompress_snappy(data: Buffer, bytes_max: int) -> bytes:
    if bytes(data[: len(XERIAL_MAGIC)]) != XERIAL_MAGIC:
        return _decompress_block(data, bytes_max)
    out = bytearray()
    pos = len(XERIAL_HEADER)
    while pos < len(data):
        length = int.from_bytes(data[pos : pos + 4], "big")
        pos += 4
        if length > len(data) - pos or length == 0:
            raise MalformedFrame("a block of snappy data is cut short")
        out += _decompress_block(data[pos : pos + length], bytes_max - len(out))
        pos += length
    return bytes(out)


def _decompress_block(data: Buffer, bytes_max: int) -> bytes:
    library = _cramjam()
    try:
        if library.snappy.decompress_raw_len(data) > bytes_max:
            raise _too_large("snappy", bytes_max)
        return bytes(library.snappy.decompress_raw(data))
    except library.DecompressionError as wrong:
        raise MalformedFrame(f"snappy data is damaged: {wrong}") from None


def _decompress_growing(codec: Any, name: str, data: Buffer, bytes_max: int) -> memoryview:
    """Decompress into a buffer that grows by fours up to the bound."""
    room = min(bytes_max, max(_FIRST_GUESS_BYTES, 8 * len(data)))
    while True:
        out = bytearray(room)
        try:
            size = codec.decompress_into(data, out)
            return memoryview(out)[:size].toreadonly()
        except _cramjam().DecompressionError as wrong:
            if str(wrong) != _NO_ROOM:
                raise MalformedFrame(f"{name} data is damaged: {wrong}") from None
        if room >= bytes_max:
            raise _too_large(name, bytes_max)
        room = min(bytes_max, 4 * room)
