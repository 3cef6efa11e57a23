"""The metadata log `__cluster_metadata-0` and `quorum-state`, in Kafka's formats.

A Persist is answered when all of it is on the disk, in order. It has a thread of its own: an
election or a new topic never waits behind a partition's flush. If this log fails the node cannot
keep its promises: it is told to stop, with a sentence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from cotidal.broker.driver import wall_millis
from cotidal.broker.worker import Done, Failed, Outcome, Worker
from cotidal.errors import MalformedFrame
from cotidal.log.contract import LogConfig
from cotidal.log.failure import LogError
from cotidal.log.filesystem import FileSystem
from cotidal.log.log import Log
from cotidal.messages.batch import Placed
from cotidal.messages.records.quorum import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    QuorumStateData,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from cotidal.node.effects import MetadataBatch, Persist, QuorumState, Write
from cotidal.node.events import Event, Persisted
from cotidal.values import Offset, TopicPartition, Uuid
from cotidal.wire.batch import read_batches
from cotidal.wire.quorum_state import decode_quorum_state, encode_quorum_state
from cotidal.wire.record_framing import decode_metadata, encode_metadata
from cotidal.wire.records import (
    ControlType,
    Record,
    build_batch,
    control_record,
    read_control_record,
    read_records,
)

METADATA_PARTITION: Final = TopicPartition("__cluster_metadata", 0)
METADATA_TOPIC_ID: Final = Uuid(bytes(15) + b"\x01")
QUORUM_STATE: Final = "quorum-state"
QUORUM_STATE_VERSION: Final = 1
READ_BYTES: Final = 1 << 20

_CONTROL_TYPES: Final[dict[type, ControlType]] = {
    LeaderChangeMessage: ControlType.LEADER_CHANGE,
    SnapshotHeaderRecord: ControlType.SNAPSHOT_HEADER,
    SnapshotFooterRecord: ControlType.SNAPSHOT_FOOTER,
    KRaftVersionRecord: ControlType.KRAFT_VERSION,
    VotersRecord: ControlType.KRAFT_VOTERS,
}


class MetadataError(Exception):
    """The metadata log cannot be used. One sentence."""


class Stored(NamedTuple):
    """What the disk says at start."""

    quorum_state: QuorumStateData | None
    batches: tuple[MetadataBatch, ...]
    repaired: tuple[str, ...]


class MetadataLog:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        files: FileSystem,
        path: str,
        *,
        clean: bool,
        settings: Mapping[str, int],
        post: Callable[[Event], None],
        on_broken: Callable[[str], None],
        on_fault: Callable[[Exception], None],
    ) -> None:
        """``path``: the metadata log directory. Reads nothing but what opening needs."""
        self._files = files
        self._directory = f"{path}/{METADATA_PARTITION}"
        self._post = post
        self._on_broken = on_broken
        self._worker = Worker(loop, "cotidal-metadata", on_fault)
        try:
            self._log = Log.open(
                files,
                self._directory,
                LogConfig(
                    segment_bytes=settings["metadata.log.segment.bytes"],
                    segment_ms=settings["metadata.log.segment.ms"],
                ),
                topic_id=METADATA_TOPIC_ID,
                clean=clean,
                now_wall=wall_millis(),
            )
        except LogError as error:
            self._worker.stop()
            raise MetadataError(str(error)) from error

    def load(self) -> Stored:
        """Everything there is; MetadataError for what cannot be read."""
        try:
            return Stored(
                self._read_quorum_state(), tuple(self._read_batches()), self._log.opened.repaired
            )
        except (LogError, MalformedFrame, OSError) as error:
            raise MetadataError(f"the metadata log cannot be read: {error}") from error

    def persist(self, effect: Persist) -> None:
        self._worker.submit(partial(self._write, effect.writes), partial(self._told, effect))

    def close(self) -> None:
        """After everything that was asked for is done."""
        self._worker.stop()
        self._log.close()

    def abandon(self) -> None:
        self._worker.abandon()

    def _told(self, effect: Persist, outcome: Outcome[None]) -> None:
        match outcome:
            case Done():
                self._post(Persisted(effect.token))
            case Failed(LogError() | OSError() as error):
                self._on_broken(f"the metadata log cannot be written: {error}")
            case Failed(error):
                raise error

    # In the worker

    def _write(self, writes: tuple[Write, ...]) -> None:
        unflushed = False
        for write in writes:
            match write:
                case MetadataBatch():
                    batches = read_batches(encode_batch(write))
                    placed = Placed(None, write.leader_epoch, batches)
                    self._log.append((placed,), wall_millis())
                    unflushed = True
                case QuorumState(state):
                    if unflushed:  # in order
                        self._log.flush()
                        unflushed = False
                    assert isinstance(state, QuorumStateData)
                    self._files.write(
                        f"{self._directory}/{QUORUM_STATE}",
                        encode_quorum_state(state, QUORUM_STATE_VERSION),
                    )
        if unflushed:
            self._log.flush()

    # At start

    def _read_quorum_state(self) -> QuorumStateData | None:
        try:
            return decode_quorum_state(self._files.read(f"{self._directory}/{QUORUM_STATE}"))
        except FileNotFoundError:
            return None

    def _read_batches(self) -> Iterator[MetadataBatch]:
        offset, end = self._log.start_offset, self._log.end_offset
        while offset < end:
            data = self._log.read(offset, max_bytes=READ_BYTES, below=end)
            found = read_batches(data)
            if not found.headers:
                raise MetadataError(f"the metadata log ends at {offset} before its end at {end}")
            position = 0
            for header in found.headers:
                yield decode_batch(data[position : position + header.size_bytes])
                position += header.size_bytes
                offset = Offset(header.next_offset)


def encode_batch(batch: MetadataBatch) -> bytes:
    records = [
        control_record(_CONTROL_TYPES[type(record)], record, timestamp=batch.wall)
        if batch.control
        else Record(None, encode_metadata(record), timestamp=batch.wall)
        for record in batch.records
    ]
    return build_batch(
        records,
        base_offset=batch.base_offset,
        leader_epoch=batch.leader_epoch,
        control=batch.control,
    )


def decode_batch(data: bytes | memoryview) -> MetadataBatch:
    (header,) = read_batches(data).headers
    values: list[Any] = []
    for record in read_records(data):
        if header.is_control:
            known = read_control_record(record)
            values.append(None if known is None else known[1])
        else:
            if record.value is None:
                raise MalformedFrame(f"the metadata record at {record.offset} has no value")
            values.append(decode_metadata(record.value))
    return MetadataBatch(
        header.base_offset,
        header.leader_epoch,
        tuple(values),
        header.is_control,
        header.max_timestamp,
    )
