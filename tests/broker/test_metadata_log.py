"""The metadata log: durable before it is told, and read back as it was written."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from cotidal.broker.metadata_log import MetadataError, MetadataLog, decode_batch, encode_batch
from cotidal.core.quorum.log_view import SnapshotId
from cotidal.log.memory import MemoryFiles
from cotidal.messages.records.metadata import NoOpRecord, TopicRecord
from cotidal.messages.records.quorum import LeaderChangeMessage, QuorumStateData
from cotidal.node.effects import (
    CleanMetadata,
    CutMetadata,
    DropSnapshot,
    FetchedMetadata,
    InstallSnapshot,
    KeepChunk,
    MetadataBatch,
    Persist,
    PersistToken,
    QuorumState,
    Read,
    ReadSnapshot,
    ReadToken,
    Want,
    WriteSnapshot,
)
from cotidal.node.events import Persisted, ReadDone, SnapshotWritten
from cotidal.values import LeaderEpoch, Offset, TopicPartition, Uuid, WallMillis
from cotidal.wire.batch import read_batches
from cotidal.wire.metadata_batch import read_metadata_batches

SETTINGS = {"metadata.log.segment.bytes": 1 << 20, "metadata.log.segment.ms": 1 << 40}
STATE = QuorumStateData(leader_id=1, leader_epoch=7, voted_id=1, voted_directory_id=Uuid(b"d" * 16))
LEADER = MetadataBatch(
    Offset(0), LeaderEpoch(7), (LeaderChangeMessage(leader_id=1),), True, WallMillis(1000)
)
TOPICS = MetadataBatch(
    Offset(1),
    LeaderEpoch(7),
    (TopicRecord("orders", Uuid(b"t" * 16)), NoOpRecord()),
    False,
    WallMillis(2000),
)
METADATA = TopicPartition("__cluster_metadata", 0)


class World:
    def __init__(self, files: MemoryFiles) -> None:
        self.posted: list[Any] = []
        self.broken: list[str] = []
        self.faults: list[Exception] = []
        self.log = MetadataLog(
            asyncio.get_running_loop(),
            files,
            "/data",
            clean=False,
            settings=SETTINGS,
            post=self.posted.append,
            on_broken=self.broken.append,
            on_fault=self.faults.append,
        )

    async def persisted(self, token: int, *writes: Any) -> None:
        self.log.persist(Persist(PersistToken(token), writes))
        while Persisted(PersistToken(token)) not in self.posted:
            assert (self.faults, self.broken) == ([], [])
            await asyncio.sleep(0.001)

    async def read(self, offset: int, below: int) -> bytes | memoryview | str:
        want = Want(METADATA, Offset(offset), 1 << 20, Offset(below))
        self.log.read(Read(ReadToken(offset), (want,), 1 << 20))
        while not isinstance(self.posted[-1], ReadDone):
            assert not self.faults
            await asyncio.sleep(0.001)
        (found,) = self.posted.pop().results
        return found


def play(files: MemoryFiles, script: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        files.mkdir("/data")
        world = World(files)
        try:
            await asyncio.wait_for(script(world), 10)
        finally:
            world.log.abandon()

    asyncio.run(whole())


@pytest.mark.parametrize("batch", [LEADER, TOPICS])
def test_a_batch_is_read_back_as_it_was_written(batch: MetadataBatch) -> None:
    assert decode_batch(encode_batch(batch)) == batch


def test_what_was_persisted_survives_the_machine() -> None:
    files = MemoryFiles()

    async def write(world: World) -> None:
        assert world.log.load() == (None, (), (), 0, ())
        await world.persisted(1, QuorumState(STATE), LEADER)
        await world.persisted(2, TOPICS)

    async def read(world: World) -> None:
        stored = world.log.load()
        assert stored.quorum_state == STATE
        assert stored.batches == (LEADER, TOPICS)

    play(files, write)
    files.crash(lambda n: 0)
    play(files, read)


def test_what_was_not_persisted_is_cut_and_told() -> None:
    files = MemoryFiles()

    async def write(world: World) -> None:
        await world.persisted(1, LEADER)

    async def read(world: World) -> None:
        stored = world.log.load()
        assert stored.batches == (LEADER,)
        assert "cut 40 bytes" in stored.repaired[0]

    play(files, write)
    segment = "/data/__cluster_metadata-0/00000000000000000000.log"
    files.open(segment).append([encode_batch(TOPICS)[:40]])
    files.crash()
    play(files, read)


def test_a_disk_that_refuses_is_told_in_a_sentence_and_nothing_is_acknowledged() -> None:
    files = MemoryFiles()

    async def write(world: World) -> None:
        files.fail("sync", "__cluster_metadata-0", times=10)
        world.log.persist(Persist(PersistToken(1), (LEADER,)))
        while not world.broken:
            await asyncio.sleep(0.001)
        assert world.broken[0].startswith("the metadata log cannot be written: ")
        assert world.posted == []

    play(files, write)


def test_a_quorum_state_that_cannot_be_read_keeps_the_node_from_starting() -> None:
    files = MemoryFiles()

    async def write(world: World) -> None:
        await world.persisted(1, QuorumState(STATE))

    async def read(world: World) -> None:
        with pytest.raises(MetadataError, match="cannot be read"):
            world.log.load()

    play(files, write)
    files.write("/data/__cluster_metadata-0/quorum-state", b"not json")
    play(files, read)


def test_a_follower_takes_over_what_its_leader_wrote_byte_for_byte() -> None:
    async def lead(world: World) -> None:
        await world.persisted(1, LEADER, TOPICS)
        assert read_batches(await world.read(0, 1)).headers[-1].next_offset == 1
        told = await world.read(0, 3)
        copied.append(bytes(told))

    async def follow(world: World) -> None:
        batches = read_batches(copied[0])
        await world.persisted(1, FetchedMetadata(Offset(0), batches))
        assert bytes(await world.read(0, 3)) == copied[0]
        read = read_metadata_batches(read_batches(await world.read(0, 3)))
        assert tuple(MetadataBatch(*batch) for batch in read) == (LEADER, TOPICS)

    copied: list[bytes] = []
    play(MemoryFiles(), lead)
    play(MemoryFiles(), follow)


def test_what_was_cut_is_gone_for_readers_and_after_a_crash() -> None:
    files = MemoryFiles()

    async def cut(world: World) -> None:
        await world.persisted(1, LEADER, TOPICS)
        await world.persisted(2, CutMetadata(Offset(1)))
        assert read_batches(await world.read(0, 1)).headers[-1].next_offset == 1
        assert isinstance(await world.read(7, 9), str)  # out of range: a sentence, no fault

    async def again(world: World) -> None:
        assert world.log.load().batches == (LEADER,)

    play(files, cut)
    files.crash(lambda n: 0)
    play(files, again)


# snapshots

SNAPSHOT = SnapshotId(Offset(3), LeaderEpoch(7))
TOPIC = TopicRecord("orders", Uuid(b"t" * 16))


def written(id_: SnapshotId = SNAPSHOT) -> WriteSnapshot:
    return WriteSnapshot(id_, (), (TOPIC,), WallMillis(2000), WallMillis(3000))


async def until_posted(world: World, kind: type) -> Any:
    while not isinstance(world.posted[-1] if world.posted else None, kind):
        assert (world.faults, world.broken) == ([], [])
        await asyncio.sleep(0.001)
    return world.posted.pop()


def test_a_snapshot_is_on_the_disk_when_it_is_told_and_found_at_the_next_start() -> None:
    files = MemoryFiles()

    async def write(world: World) -> None:
        await world.persisted(1, LEADER, TOPICS)
        world.log.write_snapshot(written())
        told = await until_posted(world, SnapshotWritten)
        assert told.id == SNAPSHOT
        sizes.append(told.size_bytes)

    async def read(world: World) -> None:
        (found,) = world.log.load().snapshots
        assert (found.id, found.size_bytes) == (SNAPSHOT, sizes[0])
        assert found.batches[1].records == (TOPIC,)

    sizes: list[int] = []
    play(files, write)
    files.crash(lambda n: 0)
    play(files, read)


def test_a_snapshot_goes_from_node_to_node_in_pieces_and_takes_the_place_of_the_log() -> None:
    pieces: list[bytes] = []
    files = MemoryFiles()

    async def lead(world: World) -> None:
        world.log.write_snapshot(written())
        size = (await until_posted(world, SnapshotWritten)).size_bytes
        while sum(map(len, pieces)) < size:
            position = sum(map(len, pieces))
            world.log.read_snapshot(ReadSnapshot(ReadToken(position), SNAPSHOT, position, 50))
            pieces.append((await until_posted(world, ReadDone)).results[0])

    async def follow(world: World) -> None:
        await world.persisted(1, LEADER)
        position = 0
        for piece in pieces:
            world.log.keep_chunk(KeepChunk(SNAPSHOT, position, piece))
            position += len(piece)
        world.posted.clear()
        world.log.persist(Persist(PersistToken(2), (InstallSnapshot(SNAPSHOT),)))
        installed = (await until_posted(world, Persisted)).installed
        assert installed.batches[1].records == (TOPIC,)

    async def again(world: World) -> None:
        stored = world.log.load()
        assert (stored.batches, stored.log_start) == ((), 3)
        assert [each.id for each in stored.snapshots] == [SNAPSHOT]

    play(MemoryFiles(), lead)
    assert len(pieces) > 2
    play(files, follow)
    files.crash(lambda n: 0)
    play(files, again)


def test_a_snapshot_that_is_gone_is_a_sentence_for_who_asks_for_it() -> None:
    async def ask(world: World) -> None:
        world.log.write_snapshot(written())
        await until_posted(world, SnapshotWritten)
        world.log.drop_snapshot(DropSnapshot(SNAPSHOT))
        world.log.read_snapshot(ReadSnapshot(ReadToken(1), SNAPSHOT, 0, 50))
        assert isinstance((await until_posted(world, ReadDone)).results[0], str)

    play(MemoryFiles(), ask)


def test_a_damaged_snapshot_is_told_at_start_and_an_irreplaceable_one_keeps_from_starting() -> None:
    files = MemoryFiles()
    older = SnapshotId(Offset(1), LeaderEpoch(7))

    async def write(world: World) -> None:
        for token, (batch, id_) in enumerate(((LEADER, older), (TOPICS, SNAPSHOT))):
            await world.persisted(token, batch)
            world.log.write_snapshot(written(id_))
            await until_posted(world, SnapshotWritten)

    async def passed_over(world: World) -> None:
        stored = world.log.load()
        assert [each.id for each in stored.snapshots] == [older]
        assert "is damaged" in stored.repaired[-1]
        await world.persisted(2, CleanMetadata(Offset(1)))

    async def refused(world: World) -> None:
        with pytest.raises(MetadataError, match="begins at 1, and no snapshot"):
            world.log.load()

    play(files, write)
    files.crash()
    spoil(files, SNAPSHOT)
    play(files, passed_over)
    files.crash()
    spoil(files, older)
    play(files, refused)


def spoil(files: MemoryFiles, id_: SnapshotId) -> None:
    path = f"/data/__cluster_metadata-0/{id_.end_offset:020d}-{id_.epoch:010d}.checkpoint"
    files.write(path, files.read(path)[:-5])


def test_a_vote_does_not_wait_for_a_snapshot_that_is_being_written() -> None:
    may_go_on = threading.Event()

    class Slow(tuple[Any, ...]):
        __slots__ = ()

        def __iter__(self) -> Iterator[Any]:
            assert may_go_on.wait(20)
            return super().__iter__()

    async def write(world: World) -> None:
        world.log.write_snapshot(written()._replace(records=Slow((TOPIC,))))
        await world.persisted(1, QuorumState(STATE))
        assert [type(event) for event in world.posted] == [Persisted]
        may_go_on.set()
        await until_posted(world, SnapshotWritten)

    try:
        play(MemoryFiles(), write)
    finally:
        may_go_on.set()
