"""The batches of one replica from an offset on: from its broker, or from its files.

A follower is read like a leader, which any consumer may do (KIP-392); it serves what lies below the
high watermark that it knows, which comes with its next fetch: so it is given a little time. Files
are read as they are, beside a broker that may be running; only what its checksum holds is believed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from struct import Struct
from typing import BinaryIO, Final

from cotidal.client.addresses import parse_bootstrap
from cotidal.client.connection import Connection
from cotidal.client.replica_reading import PIECE_BYTES, fetch_batches
from cotidal.messages.batch import Batches
from cotidal.spark.audit.stretches import Share
from cotidal.values import TopicPartition, Uuid
from cotidal.wire.batch import read_batches

BATCH_BYTES_MAX: Final = 1 << 30
"""A batch that claims more is damaged."""
PATIENCE_S: Final = 10.0
"""For a follower whose high watermark lags, and for an election."""
PAUSE_S: Final = 0.05
WAIT_MS: Final = 500

_index_entry: Final = Struct(">ii")


def pieces(share: Share) -> Iterator[Batches]:
    """Whole batches from the one that holds ``share.first`` on, to the end of the share at least
    where there is so much."""
    return _from_files(share) if share.on_disk else _from_broker(share)


def segment_bases(directory: str) -> list[int]:
    """The first offsets of the segments in a partition's directory, ascending."""
    names = (os.path.splitext(name) for name in os.listdir(directory))
    return sorted(int(stem) for stem, suffix in names if suffix == ".log" and stem.isdecimal())


# over the wire


def _from_broker(share: Share) -> Iterator[Batches]:
    (address,) = parse_bootstrap(share.place)
    offset, patience_until = share.first, time.monotonic() + PATIENCE_S
    at, topic_id = TopicPartition(share.topic, share.partition), Uuid(share.topic_id)
    with Connection(address) as connection:
        while offset < share.below:
            found = fetch_batches(connection, at, topic_id, offset, wait_ms=WAIT_MS)
            if found is not None and (found.headers or found.fault):
                yield found
                if found.fault is not None:
                    return
                offset = max(offset, found.headers[-1].next_offset)
                patience_until = time.monotonic() + PATIENCE_S
            elif time.monotonic() > patience_until:
                return
            elif found is None:
                time.sleep(PAUSE_S)


# from files


def _from_files(share: Share) -> Iterator[Batches]:
    bases = segment_bases(share.place)
    first = max((base for base in bases if base <= share.first), default=min(bases, default=0))
    for base in bases:
        if base >= first:
            yield from _segment(share, base)
        if base >= share.below:
            return


def _segment(share: Share, base: int) -> Iterator[Batches]:
    path = f"{share.place}/{base:020}"
    with open(f"{path}.log", "rb") as file:
        position = _position_before(f"{path}.index", base, share.first)
        while True:
            found = _batches_at(file, position)
            if not found.headers and found.fault is None:
                return  # the end, or the beginning of a write
            yield found
            if found.fault is not None:
                return
            position += len(found.data)


def _batches_at(file: BinaryIO, position: int) -> Batches:
    """As many whole batches as a piece holds, and one however large."""
    size = PIECE_BYTES
    while True:
        file.seek(position)
        data = file.read(size)
        found = read_batches(data)
        if found.headers or found.fault is not None or len(data) < size or size > BATCH_BYTES_MAX:
            return found
        size *= 4


def _position_before(path: str, base: int, offset: int) -> int:
    """Where a batch begins that lies before ``offset``, by the index; 0 where it does not tell.
    An index is a hint: entries that do not ascend are the unwritten rest of it."""
    position, last = 0, -1
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return 0
    for relative, at in _index_entry.iter_unpack(data[: len(data) // 8 * 8]):
        if relative <= last or base + relative > offset:
            break
        position, last = at, relative
    return position
