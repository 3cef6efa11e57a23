"""The metadata log `__cluster_metadata-0`, its snapshots and `quorum-state`, in Kafka's formats.

A Persist is answered when all of it is on the disk, in order. It has a thread of its own: an
election or a new topic never waits behind a partition's flush. Reads, for other nodes that follow,
are done in the same thread and in order with the writes. A snapshot of a large cluster takes long
to put into bytes: that is done in another thread, so that no vote waits for it, and only its last
step, the sync and the name, in this one. If this log fails the node cannot keep its promises: it is
told to stop, with a sentence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, assert_never

from cotidal.broker.driver import wall_millis
from cotidal.broker.worker import Done, Failed, Outcome, Worker
from cotidal.core.quorum.log_view import SnapshotId
from cotidal.errors import MalformedFrame
from cotidal.log.contract import LogConfig
from cotidal.log.failure import LogError
from cotidal.log.filesystem import FileSystem
from cotidal.log.metadata_snapshots import SnapshotKey, StoredSnapshot
from cotidal.log.metadata_store import MetadataStore
from cotidal.messages.records.quorum import QuorumStateData
from cotidal.node.effects import (
    CleanMetadata,
    CutMetadata,
    DropSnapshot,
    FetchedMetadata,
    InstallSnapshot,
    KeepChunk,
    MetadataBatch,
    Persist,
    QuorumState,
    Read,
    ReadSnapshot,
    ReadToken,
    Write,
    WriteSnapshot,
)
from cotidal.node.events import Event, MetadataSnapshot, Persisted, ReadDone, SnapshotWritten
from cotidal.values import Offset
from cotidal.wire.metadata_batch import decode_metadata_batch, encode_metadata_batch
from cotidal.wire.metadata_snapshot import encode_metadata_snapshot


class MetadataError(Exception):
    """The metadata log cannot be used. One sentence."""


class Stored(NamedTuple):
    """What the disk says at start."""

    quorum_state: QuorumStateData | None
    batches: tuple[MetadataBatch, ...]
    repaired: tuple[str, ...]
    log_start: Offset = Offset(0)
    snapshots: tuple[MetadataSnapshot, ...] = ()


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
        self._new_scribe = partial(Worker, loop, "cotidal-snapshot", on_fault)
        self._scribe: Worker | None = None
        """Not there before the first snapshot is written."""
        self._is_closed = False
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
        store = self._store
        try:
            found = store.load_snapshots()
            return Stored(
                store.quorum_state(),
                tuple(MetadataBatch(*batch) for batch in store.batches()),
                (*store.log.opened.repaired, *found.damaged),
                store.log.start_offset,
                tuple(_told(snapshot) for snapshot in found.snapshots),
            )
        except (LogError, MalformedFrame, OSError) as error:
            raise MetadataError(f"the metadata log cannot be read: {error}") from error

    def obeys(self) -> dict[type, Callable[[Any], None]]:
        """But Read, which the partitions' disk obeys too."""
        return {
            Persist: self.persist,
            WriteSnapshot: self.write_snapshot,
            ReadSnapshot: self.read_snapshot,
            KeepChunk: self.keep_chunk,
            DropSnapshot: self.drop_snapshot,
        }

    def persist(self, effect: Persist) -> None:
        self._worker.submit(partial(self._write, effect.writes), partial(self._persisted, effect))

    def write_snapshot(self, effect: WriteSnapshot) -> None:
        if self._scribe is None:
            self._scribe = self._new_scribe()
        work = partial(self._store.snapshots.begin, _key(effect.id), encode_snapshot(effect))
        self._scribe.submit(work, partial(self._finish_snapshot, effect.id))

    def read_snapshot(self, effect: ReadSnapshot) -> None:
        work = partial(
            self._store.snapshots.piece, _key(effect.id), effect.position, effect.max_bytes
        )
        self._worker.submit(work, partial(self._read_done, effect.token))

    def keep_chunk(self, effect: KeepChunk) -> None:
        work = partial(
            self._store.snapshots.keep_piece, _key(effect.id), effect.position, effect.data
        )
        self._worker.submit(work, self._done)

    def drop_snapshot(self, effect: DropSnapshot) -> None:
        self._worker.submit(partial(self._store.snapshots.forget, _key(effect.id)), self._done)

    def read(self, effect: Read) -> None:
        """The one want of a node that follows."""
        (want,) = effect.wants
        work = partial(
            self._store.log.read, want.offset, max_bytes=want.max_bytes, below=want.below
        )
        self._worker.submit(work, partial(self._read_done, effect.token))

    def close(self) -> None:
        """After everything that was asked for is done; but a snapshot can wait for another life."""
        self._is_closed = True
        if self._scribe is not None:
            self._scribe.stop()
        self._worker.stop()
        self._store.close()

    def abandon(self) -> None:
        self._is_closed = True
        if self._scribe is not None:
            self._scribe.abandon()
        self._worker.abandon()

    def _persisted(self, effect: Persist, outcome: Outcome[StoredSnapshot | None]) -> None:
        if isinstance(outcome, Done):
            installed = None if outcome.value is None else _told(outcome.value)
            self._post(Persisted(effect.token, installed))
        else:
            self._fail(outcome)

    def _finish_snapshot(self, id_: SnapshotId, outcome: Outcome[None]) -> None:
        if isinstance(outcome, Failed):
            self._fail(outcome)
        elif not self._is_closed:
            self._worker.submit(partial(self._name_snapshot, id_), self._snapshot_written)

    def _snapshot_written(self, outcome: Outcome[SnapshotWritten]) -> None:
        if isinstance(outcome, Done):
            self._post(outcome.value)
        else:
            self._fail(outcome)

    def _done(self, outcome: Outcome[None]) -> None:
        if isinstance(outcome, Failed):
            self._fail(outcome)

    def _fail(self, failed: Failed) -> None:
        if not isinstance(failed.error, LogError | OSError):
            raise failed.error
        self._on_broken(f"the metadata log cannot be written: {failed.error}")

    def _read_done(self, token: ReadToken, outcome: Outcome[bytes | memoryview]) -> None:
        match outcome:
            case Done(data):
                self._post(ReadDone(token, (data,)))
            case Failed(LogError() | OSError() as error):
                self._post(ReadDone(token, (str(error),)))
            case Failed(error):
                raise error

    # In the worker

    def _write(self, writes: tuple[Write, ...]) -> StoredSnapshot | None:
        """The snapshot that was installed, if one was."""
        store = self._store
        unflushed = False
        installed = None
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
                case InstallSnapshot(snapshot):
                    installed = store.snapshots.adopt(_key(snapshot))
                    store.start_at(snapshot.end_offset)
                    unflushed = False
                case CleanMetadata(offset):
                    store.clean(offset, wall_millis())
                case _:
                    assert_never(write)
        if unflushed:
            store.flush()
        return installed

    def _name_snapshot(self, id_: SnapshotId) -> SnapshotWritten:
        return SnapshotWritten(id_, self._store.finish_snapshot(_key(id_), wall_millis()))


def encode_snapshot(effect: WriteSnapshot) -> Iterator[bytes]:
    return encode_metadata_snapshot(
        effect.records,
        control=effect.control,
        epoch=effect.id.epoch,
        log_wall=effect.log_wall,
        wall=effect.wall,
    )


def _key(id_: SnapshotId) -> SnapshotKey:
    return SnapshotKey(*id_)


def _told(stored: StoredSnapshot) -> MetadataSnapshot:
    batches = tuple(MetadataBatch(*batch) for batch in stored.batches)
    return MetadataSnapshot(SnapshotId(*stored.key), stored.size_bytes, batches)


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
