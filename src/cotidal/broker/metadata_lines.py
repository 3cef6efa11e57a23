"""The metadata log of a directory, one line a record: from its files alone, never changing them.

A record is told as the trace tells it, with what it changed: so the newest snapshot that the log
reaches back to is replayed first, without being told.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from cotidal.core.cluster.image import Image
from cotidal.core.trace import Json, tell, tell_record
from cotidal.errors import MalformedFrame
from cotidal.log.metadata_snapshots import SnapshotKey, key_of
from cotidal.wire.batch import read_batches
from cotidal.wire.metadata_batch import ReadMetadata, read_metadata_batches
from cotidal.wire.metadata_snapshot import decode_metadata_snapshot


class Unreadable(Exception):
    """No metadata log, or a damaged one; one sentence."""


class Line(NamedTuple):
    offset: int
    epoch: int
    text: str
    fields: Json


def lines_of(directory: str, first: int) -> Iterator[Line]:
    """Unreadable where the files cannot be read."""
    segments = sorted(name for name in os.listdir(directory) if name.endswith(".log"))
    if not segments:
        raise Unreadable(f"{directory} holds no metadata log; name a node's data directory")
    begins = int(segments[0].removesuffix(".log"))
    image, after = _summed(directory, begins)
    for name in segments:
        for batch in _batches(os.path.join(directory, name)):
            for number, record in enumerate(batch.records):
                offset = batch.base_offset + number
                if offset >= after:
                    told = _told(record, image, control=batch.control)
                    if offset >= first:
                        yield Line(offset, batch.leader_epoch, *told)


def _told(record: Any, image: Image, *, control: bool) -> tuple[str, Json]:
    if record is None:
        return "control-record of a later version", {"what": "unknown"}
    if control:
        moment = tell(record)
        return moment.line, moment.json
    told = tell_record(record, image)
    image.replay(record)
    return told.line, told.json


def _summed(directory: str, begins: int) -> tuple[Image, int]:
    """The image of the oldest snapshot that the log goes on from, and where that ends."""
    image = Image()
    if begins == 0:
        return image, 0
    keys = [key for name in os.listdir(directory) if (key := key_of(name))]
    reaching = sorted(key for key in keys if key.end_offset >= begins)
    if not reaching:
        raise Unreadable(
            f"the log in {directory} begins at {begins}, and no snapshot reaches that far"
        )
    for batch in _snapshot(directory, reaching[0]):
        if not batch.control:
            for record in batch.records:
                image.replay(record)
    return image, reaching[0].end_offset


def _snapshot(directory: str, key: SnapshotKey) -> tuple[ReadMetadata, ...]:
    path = os.path.join(directory, f"{key.name}.checkpoint")
    try:
        with open(path, "rb") as file:
            return decode_metadata_snapshot(file.read())
    except MalformedFrame as wrong:
        raise Unreadable(f"{path} is damaged: {wrong}") from None


def _batches(path: str) -> tuple[ReadMetadata, ...]:
    with open(path, "rb") as file:
        found = read_batches(file.read())
    if found.fault is not None:
        raise Unreadable(f"{path} is damaged: {found.fault}; see `cotidal log dump {path}`")
    return read_metadata_batches(found)
