"""A simulated node's metadata log: its writes, its snapshots. The twin of broker/metadata_log.py.

Everything here is synced, and each write has a moment of its own: a crash may fall between any two.
A failure ends the process, which without it can promise nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, assert_never

from cotidal.core.quorum.log_view import SnapshotId
from cotidal.log.failure import LogError
from cotidal.log.metadata_snapshots import SnapshotKey, StoredSnapshot
from cotidal.log.metadata_store import METADATA_PARTITION, MetadataStore
from cotidal.messages.batch import Batches
from cotidal.messages.records.quorum import QuorumStateData
from cotidal.node import effects as fx
from cotidal.node.events import Event, MetadataSnapshot, Persisted, ReadDone, SnapshotWritten
from cotidal.sim.lane import Hands, Lane
from cotidal.values import Offset, TopicPartition, Uuid
from cotidal.wire.metadata_batch import (
    ReadMetadata,
    decode_metadata_batch,
    encode_metadata_batch,
    read_metadata_batches,
)
from cotidal.wire.metadata_snapshot import encode_metadata_snapshot
from cotidal.wire.primitives import Buffer

BATCHES_REMEMBERED: Final = 1024
"""More than a run has at a time."""

Cut = Callable[[TopicPartition, Offset], None]
"""Told of a truncation: (partition, the end that is left)."""


@lru_cache(BATCHES_REMEMBERED)
def _decoded(data: bytes) -> ReadMetadata:
    return decode_metadata_batch(data)


def decoded_once(data: Buffer) -> ReadMetadata:
    """What every node reads is read once for all of them: the same bytes are the same values."""
    return _decoded(bytes(data))


def read_once(batches: Batches) -> tuple[ReadMetadata, ...]:
    return read_metadata_batches(batches, decoded_once)


class MetadataLog:
    def __init__(
        self, store: MetadataStore, hands: Hands, *, on_broken: Callable[[str], None], on_cut: Cut
    ) -> None:
        self.store = store
        self._hands = hands
        self._on_broken = on_broken
        self._on_cut = on_cut
        self.lane = Lane(hands, METADATA_PARTITION, Uuid(bytes(16)))
        self.lane.log = store.log

    def obeys(self) -> dict[type, Callable[[Any], None]]:
        return {
            fx.Persist: self.persist,
            fx.WriteSnapshot: self.write_snapshot,
            fx.ReadSnapshot: self.read_snapshot,
            fx.KeepChunk: self.keep_chunk,
            fx.DropSnapshot: self.drop_snapshot,
        }

    def persist(self, effect: fx.Persist) -> None:
        lane = self.lane
        lane.when_free(lambda: self._persist(lane, effect))

    def _persist(self, lane: Lane, effect: fx.Persist) -> None:
        """Each write at a moment of its own: a crash may fall between any two of them."""
        steps: list[Callable[[], None]] = []
        installed: list[MetadataSnapshot] = []
        unflushed = False
        for write in effect.writes:
            if isinstance(write, fx.MetadataBatch | fx.FetchedMetadata):
                unflushed = True
            elif unflushed:
                steps.append(self.store.flush)
                unflushed = False
            steps += self._steps_of(write, installed)
        if unflushed:
            steps.append(self.store.flush)
        self._do_all(
            lane, steps, lambda: Persisted(effect.token, installed[-1] if installed else None)
        )

    def _do_all(
        self, lane: Lane, steps: list[Callable[[], None]], told: Callable[[], Event]
    ) -> None:
        lane.busy = True
        self._do_on(lane, steps, told, 0)

    def _do_on(
        self, lane: Lane, steps: list[Callable[[], None]], told: Callable[[], Event], done: int
    ) -> None:
        while done < len(steps):
            try:
                steps[done]()
            except (LogError, OSError) as error:
                self._on_broken(f"the metadata log cannot be written: {error}")
                return
            done += 1
            took = self._hands.took(sync=True)
            if took:
                self._hands.later(took, self._do_on, lane, steps, told, done)
                return
        # Never within the turn that asked: the real one has a thread of its own.
        self._hands.later(1, lane.end, (told(),))

    def _steps_of(
        self, write: fx.Write, installed: list[MetadataSnapshot]
    ) -> tuple[Callable[[], None], ...]:
        store = self.store
        match write:
            case fx.MetadataBatch():
                data = encode_metadata_batch(
                    write.records,
                    base_offset=write.base_offset,
                    leader_epoch=write.leader_epoch,
                    control=write.control,
                    wall=write.wall,
                )
                return (lambda: store.append(data, write.leader_epoch, self._hands.wall()),)
            case fx.FetchedMetadata(_, batches):
                return (lambda: store.append_fetched(batches, self._hands.wall()),)
            case fx.CutMetadata(offset):
                return (lambda: self._cut_metadata(offset),)
            case fx.QuorumState(state):
                assert isinstance(state, QuorumStateData)
                return (lambda: store.write_quorum_state(state),)
            case fx.InstallSnapshot(snapshot):
                key = SnapshotKey(*snapshot)
                return (
                    lambda: installed.append(snapshot_told(store.snapshots.adopt(key))),
                    lambda: self._replace_metadata(key.end_offset),
                )
            case fx.CleanMetadata(offset):
                return (lambda: store.clean(offset, self._hands.wall()),)
            case _:
                assert_never(write)

    def _cut_metadata(self, offset: Offset) -> None:
        self.store.cut(offset)
        self._on_cut(METADATA_PARTITION, self.store.log.end_offset)

    def _replace_metadata(self, offset: Offset) -> None:
        self.store.start_at(offset)
        self._on_cut(METADATA_PARTITION, offset)

    def write_snapshot(self, effect: fx.WriteSnapshot) -> None:
        key = SnapshotKey(*effect.id)
        store = self.store
        pieces = encode_metadata_snapshot(
            effect.records,
            control=effect.control,
            epoch=effect.id.epoch,
            log_wall=effect.log_wall,
            wall=effect.wall,
        )
        sizes: list[int] = []
        steps: list[Callable[[], None]] = [
            lambda: store.snapshots.begin(key, pieces),
            lambda: sizes.append(store.finish_snapshot(key, self._hands.wall())),
        ]
        lane = self.lane
        lane.when_free(
            lambda: self._do_all(lane, steps, lambda: SnapshotWritten(effect.id, sizes[0]))
        )

    def read_snapshot(self, effect: fx.ReadSnapshot) -> None:
        def work() -> tuple[Event, ...]:
            try:
                key = SnapshotKey(*effect.id)
                data = self.store.snapshots.piece(key, effect.position, effect.max_bytes)
            except OSError as error:
                return (ReadDone(effect.token, (str(error),)),)
            return (ReadDone(effect.token, (data,)),)

        lane = self.lane
        lane.when_free(lambda: lane.run(work, self._hands.took()))

    def keep_chunk(self, effect: fx.KeepChunk) -> None:
        key = SnapshotKey(*effect.id)
        self._now_or_broken(
            lambda: self.store.snapshots.keep_piece(key, effect.position, effect.data)
        )

    def drop_snapshot(self, effect: fx.DropSnapshot) -> None:
        self._now_or_broken(lambda: self.store.snapshots.forget(SnapshotKey(*effect.id)))

    def _now_or_broken(self, do: Callable[[], None]) -> None:
        def work() -> tuple[Event, ...]:
            try:
                do()
            except (LogError, OSError) as error:
                self._on_broken(f"the metadata log cannot be written: {error}")
            return ()

        lane = self.lane
        lane.when_free(lambda: lane.run(work, self._hands.took()))


def snapshot_told(stored: StoredSnapshot) -> MetadataSnapshot:
    batches = tuple(fx.MetadataBatch(*batch) for batch in stored.batches)
    return MetadataSnapshot(SnapshotId(*stored.key), stored.size_bytes, batches)
