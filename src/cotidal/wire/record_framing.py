"""How records of the metadata log and of the coordinators are laid into keys and values. Pure.

  metadata     value = frame version 1, record key, version (unsigned varints), body; no key
  coordinator  key = int16 record key, body in version 0; value = int16 version, body; null value: a
               tombstone. Three coordinators, each with its own numbering: those of groups (classic,
               consumer, share and streams groups share a topic), transactions, and share state.

Versions written are those that Kafka 4.3 writes at metadata.version 30 (group.version 1,
transaction.version 2): the newest, with the exceptions below.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any, Final, NamedTuple

from cotidal.errors import MalformedFrame
from cotidal.wire.codec import codec_of, decode_record, encode_record, module_codecs, read_whole
from cotidal.wire.codec.entry import Codec, Reader
from cotidal.wire.primitives import Buffer, pack_h, read_uvarint, unpack_h, write_uvarint

FRAME_VERSION: Final = 1
METADATA_VERSION: Final = 30
"""The level of the metadata.version feature whose record versions we write."""

NO_EXPIRY: Final = -1


class Coordinator(Enum):
    """Whose record keys; the value names the modules that hold them."""

    GROUP = ("group", "share", "streams")
    TRANSACTION = ("transaction",)


def written_version(record: Any) -> int:
    """The version in which this record is written."""
    # Loaded when first needed: a node without groups starts without their records.
    from cotidal.messages.records.group import GroupMetadataValue, OffsetCommitValue

    if isinstance(record, GroupMetadataValue):
        return 3
    if isinstance(record, OffsetCommitValue) and record.expire_timestamp != NO_EXPIRY:
        return 1  # the only one with an expiry of its own: from clients of long ago
    return codec_of(type(record)).last_version


# The metadata log.


def encode_metadata(record: Any, version: int | None = None) -> bytes:
    codec = codec_of(type(record))
    if codec.kind != "metadata":
        raise ValueError(f"{type(record).__name__} is not a metadata record")
    if version is None:
        version = codec.last_version
    out = bytearray((FRAME_VERSION,))
    write_uvarint(out, codec.key)
    write_uvarint(out, version)
    return bytes(encode_record(record, version, out))


def decode_metadata(value: Buffer) -> Any:
    try:
        frame, pos = read_uvarint(value, 0)
        if frame != FRAME_VERSION:
            raise MalformedFrame(f"a metadata record has frame version {frame}")
        key, pos = read_uvarint(value, pos)
        version, pos = read_uvarint(value, pos)
    except IndexError:
        raise MalformedFrame("a metadata record ends within its frame") from None
    codec = _metadata_codecs().get(key)
    if codec is None:
        raise MalformedFrame(f"there is no metadata record with key {key}")
    return decode_record(codec.message, version, value, pos)


@cache
def _metadata_codecs() -> dict[int, Codec]:
    return {c.key: c for c in module_codecs("records", "metadata") if c.kind == "metadata"}


# Coordinators.


def encode_key(key: Any) -> bytes:
    codec = codec_of(type(key))
    if codec.kind != "key":
        raise ValueError(f"{type(key).__name__} is not the key of a coordinator record")
    return bytes(encode_record(key, codec.last_version, bytearray(pack_h(codec.key))))


def encode_value(value: Any, version: int | None = None) -> bytes:
    if version is None:
        version = written_version(value)
    if codec_of(type(value)).kind != "value":
        raise ValueError(f"{type(value).__name__} is not the value of a coordinator record")
    return bytes(encode_record(value, version, bytearray(pack_h(version))))


class RecordReader(NamedTuple):
    """How the key and the value of one kind of record are read."""

    read_key: Reader
    key_version: int
    name: str
    """Of the value, for whoever is told that it cannot be read."""
    first_version: int
    read_value: tuple[Reader, ...]
    """By version, from the first on."""


def decode_coordinator_record(
    readers: Mapping[int, RecordReader], key: Buffer, value: Buffer | None
) -> tuple[Any, Any | None] | None:
    """Key and value; None for a record key of a later version, which is to be skipped."""
    if len(key) < 2 or (value is not None and len(value) < 2):
        raise MalformedFrame("a coordinator record lacks its version")
    (number,) = unpack_h(key, 0)
    reader = readers.get(number)
    if reader is None:
        return None
    read_key = read_whole(reader.read_key, reader.key_version, key, 2)
    if value is None:
        return read_key, None
    (version,) = unpack_h(value, 0)
    index = version - reader.first_version
    if not 0 <= index < len(reader.read_value):
        raise MalformedFrame(f"{reader.name} has no version {version}")
    return read_key, read_whole(reader.read_value[index], version, value, 2)


@cache
def coordinator_readers(coordinator: Coordinator) -> Mapping[int, RecordReader]:
    """By record key. Asked for once a log, not once a record."""
    keys: dict[int, Codec] = {}
    values: dict[int, Codec] = {}
    for name in coordinator.value:
        for codec in module_codecs("records", name):
            if codec.kind == "key":
                keys[codec.key] = codec
            elif codec.kind == "value":
                values[codec.key] = codec
    return {
        number: RecordReader(
            key.readers[-1],
            key.last_version,
            values[number].message.__name__,
            values[number].first_version,
            values[number].readers,
        )
        for number, key in keys.items()
    }
