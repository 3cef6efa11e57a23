"""The metadata log `__cluster_metadata-0` and `quorum-state`, in Kafka's formats.

A Persist is answered when all of it is on the disk, in order. It has a thread of its own: an
election or a new topic never waits behind a partition's flush. Reads, for other nodes that follow,
are done in the same thread and in order with the writes. If this log fails the node cannot keep its
promises: it is told to stop, with a sentence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, assert_never

from cotidal.broker.driver import wall_millis
from cotidal.broker.worker import Done, Failed, Outcome, Worker
from cotidal.errors import MalformedFrame
from cotidal.log.contract import LogConfig
from cotidal.log.failure import LogError
from cotidal.log.filesystem import FileSystem
from cotidal.log.metadata_store import MetadataStore
from cotidal.messages.records.quorum import QuorumStateData
from cotidal.node.effects import (
    CutMetadata,
    FetchedMetadata,
    MetadataBatch,
    Persist,
    QuorumState,
    Read,
    Write,
)
from cotidal.node.events import Event, Persisted, ReadDone
from cotidal.wire.metadata_batch import decode_metadata_batch, encode_metadata_batch


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
        self._post = post
        self._on_broken = on_broken
        self._worker = Worker(loop, "cotidal-metadata", on_fault)
        try:
            self._store = MetadataStore(
                files,
                path,
                LogConfig(
                    segment_bytes=settings["metadata.log.segment.bytes"],
                    segment_ms=settings["metadata.log.segment.ms"],
                ),
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
                self._store.quorum_state(),
                tuple(MetadataBatch(*batch) for batch in self._store.batches()),
                self._store.log.opened.repaired,
            )
        except (LogError, MalformedFrame, OSError) as error:
            raise MetadataError(f"the metadata log cannot be read: {error}") from error

    def persist(self, effect: Persist) -> None:
        self._worker.submit(partial(self._write, effect.writes), partial(self._told, effect))

    def read(self, effect: Read) -> None:
        """The one want of a node that follows."""
        (want,) = effect.wants
        work = partial(
            self._store.log.read, want.offset, max_bytes=want.max_bytes, below=want.below
        )
        self._worker.submit(work, partial(self._read_done, effect))

    def close(self) -> None:
        """After everything that was asked for is done."""
        self._worker.stop()
        self._store.close()

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

    def _read_done(self, effect: Read, outcome: Outcome[bytes | memoryview]) -> None:
        match outcome:
            case Done(data):
                self._post(ReadDone(effect.token, (data,)))
            case Failed(LogError() | OSError() as error):
                self._post(ReadDone(effect.token, (str(error),)))
            case Failed(error):
                raise error

    # In the worker

    def _write(self, writes: tuple[Write, ...]) -> None:
        store = self._store
        unflushed = False
        for write in writes:
            match write:
                case MetadataBatch():
                    store.append(encode_batch(write), write.leader_epoch, wall_millis())
                    unflushed = True
                case FetchedMetadata(_, batches):
                    store.append_fetched(batches, wall_millis())
                    unflushed = True
                case CutMetadata(offset):
                    store.cut(offset)
                case QuorumState(state):
                    if unflushed:  # in order
                        store.flush()
                        unflushed = False
                    assert isinstance(state, QuorumStateData)
                    store.write_quorum_state(state)
                case _:
                    assert_never(write)
        if unflushed:
            store.flush()


def encode_batch(batch: MetadataBatch) -> bytes:
    return encode_metadata_batch(
        batch.records,
        base_offset=batch.base_offset,
        leader_epoch=batch.leader_epoch,
        control=batch.control,
        wall=batch.wall,
    )


def decode_batch(data: bytes | memoryview) -> MetadataBatch:
    return MetadataBatch(*decode_metadata_batch(data))
