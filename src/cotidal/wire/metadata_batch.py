"""Batches of the metadata log: records and control records of the quorum, to bytes and back. Pure.

A batch holds either metadata records or control records, never both. A control record of some
later version is read as None: it is stepped over and keeps its offset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from cotidal.errors import MalformedFrame
from cotidal.messages.batch import Batches
from cotidal.messages.records.quorum import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from cotidal.values import LeaderEpoch, Offset, WallMillis
from cotidal.wire.batch import read_header
from cotidal.wire.primitives import Buffer
from cotidal.wire.record_framing import decode_metadata, encode_metadata
from cotidal.wire.records import (
    ControlType,
    Record,
    build_batch,
    control_record,
    read_control_record,
    read_records,
)

_CONTROL_TYPES: Final[dict[type, ControlType]] = {
    LeaderChangeMessage: ControlType.LEADER_CHANGE,
    SnapshotHeaderRecord: ControlType.SNAPSHOT_HEADER,
    SnapshotFooterRecord: ControlType.SNAPSHOT_FOOTER,
    KRaftVersionRecord: ControlType.KRAFT_VERSION,
    VotersRecord: ControlType.KRAFT_VOTERS,
}


class ReadMetadata(NamedTuple):
    """One batch as it was read, in the order of node.effects.MetadataBatch's fields."""

    base_offset: Offset
    leader_epoch: LeaderEpoch
    records: tuple[Any, ...]
    control: bool
    wall: WallMillis


def encode_metadata_batch(
    records: Sequence[Any],
    *,
    base_offset: Offset,
    leader_epoch: LeaderEpoch,
    control: bool,
    wall: WallMillis,
) -> bytes:
    framed = [
        control_record(_CONTROL_TYPES[type(record)], record, timestamp=wall)
        if control
        else Record(None, encode_metadata(record), timestamp=wall)
        for record in records
    ]
    return build_batch(framed, base_offset=base_offset, leader_epoch=leader_epoch, control=control)


def decode_metadata_batch(data: Buffer) -> ReadMetadata:
    """The batch at the beginning of these bytes, whose checksum has been looked at."""
    header = read_header(data)
    values: list[Any] = []
    for record in read_records(data):
        if header.is_control:
            known = read_control_record(record)
            values.append(None if known is None else known[1])
        elif record.value is None:
            raise MalformedFrame(f"the metadata record at {record.offset} has no value")
        else:
            values.append(decode_metadata(record.value))
    return ReadMetadata(
        header.base_offset,
        header.leader_epoch,
        tuple(values),
        header.is_control,
        header.max_timestamp,
    )


def read_metadata_batches(
    batches: Batches, decode: Callable[[Buffer], ReadMetadata] = decode_metadata_batch
) -> tuple[ReadMetadata, ...]:
    """Every batch of what was fetched."""
    found = []
    at = 0
    data = memoryview(batches.data)
    for header in batches.headers:
        found.append(decode(data[at : at + header.size_bytes]))
        at += header.size_bytes
    return tuple(found)
