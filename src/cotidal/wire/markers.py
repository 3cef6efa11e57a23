"""The end of a transaction inside its control batch. Pure.

Commit or abort, and by which coordinator. Read straight from the bytes, because a follower reads
it between two batches of its fetch: one record, never compressed, whose key is (version int16,
type int16) and whose value is (version int16, coordinator epoch int32).
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import Final

from cotidal.errors import MalformedFrame
from cotidal.messages.batch import COMPRESSION_MASK, HEADER_BYTES, BatchHeader, Marker
from cotidal.wire.primitives import Buffer, read_varint, read_varlong

ABORT: Final = 0
COMMIT: Final = 1
KEY_BYTES: Final = 4

_unpack_key: Final = Struct(">hh").unpack_from
_unpack_value: Final = Struct(">hi").unpack_from


def read_marker(header: BatchHeader, batch: Buffer, position: int = 0) -> Marker | None:
    """None for a control batch that ends no transaction, or that cannot be read."""
    if header.attributes & COMPRESSION_MASK:
        return None
    try:
        at = position + HEADER_BYTES
        _, at = read_varint(batch, at)  # the record's length
        _, at = read_varlong(batch, at + 1)  # after its attributes: the timestamp's delta
        _, at = read_varint(batch, at)  # the offset's delta
        key_bytes, at = read_varint(batch, at)
        version, kind = _unpack_key(batch, at)
        if key_bytes < KEY_BYTES or version < 0 or kind not in (ABORT, COMMIT):
            return None
        _, at = read_varint(batch, at + key_bytes)  # the value's length
        _, coordinator_epoch = _unpack_value(batch, at)
    except (IndexError, StructError, MalformedFrame):
        return None
    return Marker(header.base_offset, kind == COMMIT, coordinator_epoch)
