"""Logs in several directories: where they go, and what becomes of them when one fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import uvloop

from cotidal.broker.counters import Counters
from cotidal.broker.directory import LogDir, Missing
from cotidal.broker.disk import Disk
from cotidal.broker.journal import Journal
from cotidal.core.cluster.registered import LOST_DIRECTORY
from cotidal.log.memory import FOREVER, MemoryFiles
from cotidal.messages.batch import Placed
from cotidal.node.effects import (
    Append,
    DeleteLog,
    MeasureLogs,
    OpenLog,
    Read,
    ReadToken,
    SaveHighWatermarks,
    Want,
)
from cotidal.node.events import (
    Appended,
    DirectoryFailed,
    LogFailed,
    LogOpened,
    LogsMeasured,
    ReadDone,
)
from cotidal.values import ZERO_UUID, LeaderEpoch, Offset, TopicPartition, Uuid
from cotidal.wire.batch import read_batches
from cotidal.wire.records import Record, build_batch

TOPIC = Uuid(b"t" * 16)
A, B, C = (Uuid(letter * 16) for letter in (b"a", b"b", b"c"))
NAMES = {"/a": A, "/b": B, "/c": C}
T = TypeVar("T")


def log(number: int) -> TopicPartition:
    return TopicPartition("t", number)


class World:
    """A disk with directories /a (with the metadata log), /b and /c, but for those missing."""

    def __init__(
        self, files: MemoryFiles, *, missing: tuple[str, ...], metadata: str, clean: bool
    ) -> None:
        self.events: list[Any] = []
        self.broken: list[str] = []
        self.said: list[str] = []
        self.disk = Disk(
            asyncio.get_running_loop(),
            files,
            [LogDir(id_, path, clean) for path, id_ in NAMES.items() if path not in missing],
            missing=[Missing(path, "it is gone") for path in missing],
            metadata_path=metadata,
            checkpoint_ms=60_000,
            post=self.events.append,
            on_broken=self.broken.append,
            on_fault=lambda fault: self.broken.append(repr(fault)),
            hold=lambda grown: None,
            journal=Journal(self),
            counters=Counters(),
        )

    def write(self, level: str, text: str) -> None:
        self.said.append(text)

    async def event(self, kind: type[T]) -> T:
        while True:
            for event in self.events:
                if isinstance(event, kind):
                    self.events.remove(event)
                    return event
            await asyncio.sleep(0.001)

    async def open(self, number: int, known: Uuid = ZERO_UUID) -> Uuid:
        """The directory it is opened in."""
        self.disk.open_log(OpenLog(log(number), TOPIC, {}, known))
        return (await self.event(LogOpened)).directory

    def append(self, number: int, offset: int) -> None:
        batches = read_batches(build_batch([Record(None, b"x", timestamp=0)]))
        placed = Placed(Offset(offset), LeaderEpoch(1), batches)
        self.disk.obeys()[Append](Append(log(number), (placed,), False))

    async def measured(self) -> dict[str, tuple[str | None, list[int]]]:
        self.disk.measure_logs(MeasureLogs(ReadToken(1)))
        found = await self.event(LogsMeasured)
        return {
            each.path: (each.error, sorted(partition.partition for partition, _ in each.sizes))
            for each in found.directories
        }


def run(
    script: Callable[[World], Coroutine[Any, Any, None]],
    files: MemoryFiles | None = None,
    missing: tuple[str, ...] = (),
    metadata: str = "/a",
    clean: bool = False,
) -> None:
    async def whole() -> None:
        memory = files or MemoryFiles()
        for path in NAMES:
            memory.mkdir(path)
        world = World(memory, missing=missing, metadata=metadata, clean=clean)
        try:
            await asyncio.wait_for(script(world), 20)
        finally:
            world.disk.abandon()

    loop = uvloop.new_event_loop()
    try:
        loop.run_until_complete(whole())
    finally:
        loop.close()


def test_a_new_log_goes_to_the_directory_with_the_fewest() -> None:
    async def script(world: World) -> None:
        assert [await world.open(number) for number in range(6)] == [A, B, C, A, B, C]
        world.disk.delete_log(DeleteLog(log(1), TOPIC))
        assert await world.open(6) == B

    run(script)


def test_a_log_is_opened_where_it_is_with_its_own_high_watermark() -> None:
    files = MemoryFiles()

    async def first(world: World) -> None:
        for number in range(3):
            await world.open(number)
            world.append(number, 0)
        marks = tuple((log(number), Offset(1)) for number in range(3))
        world.disk.save_high_watermarks(SaveHighWatermarks(marks))
        assert await world.disk.close() == ("/a", "/b", "/c")

    run(first, files)

    async def again(world: World) -> None:
        for number, id_ in enumerate((A, B, C)):
            world.disk.open_log(OpenLog(log(number), TOPIC, {}, LOST_DIRECTORY))
            opened = await world.event(LogOpened)
            assert (opened.directory, opened.end_offset, opened.high_watermark) == (id_, 1, 1)

    run(again, files)


def test_a_new_log_goes_where_the_controller_knows_it_to_be() -> None:
    async def script(world: World) -> None:
        assert [await world.open(number, C) for number in range(3)] == [C, C, C]

    run(script)


def test_a_disk_that_fails_takes_its_directory_offline_and_no_other() -> None:
    files = MemoryFiles()

    async def script(world: World) -> None:
        for number in range(6):
            await world.open(number)
        for operation in ("append", "sync", "write"):
            files.fail(operation, "/b/", times=FOREVER)
        world.append(1, 0)
        failed, alone = world.events
        assert isinstance(failed, DirectoryFailed)
        assert failed.directory == B
        assert failed.reason == (
            "the log directory /b is offline: t-1: could not append to"
            " 00000000000000000000.log at offset 0: Input/output error"
        )
        assert isinstance(alone, LogFailed)
        world.events.clear()
        for number in (0, 2):
            world.append(number, 0)
            assert isinstance(world.events.pop(), Appended)
        assert await world.open(7) == A
        assert await world.measured() == {
            "/a": (None, [0, 3, 7]),
            "/b": (failed.reason.partition(": ")[2], [1, 4]),
            "/c": (None, [2, 5]),
        }
        assert world.disk.offline_directories == 1
        assert world.disk.offline_logs == 2
        world.append(4, 0)
        assert [type(event) for event in world.events] == [LogFailed], "the directory is told once"
        assert await world.disk.close() == ("/a", "/c")
        assert world.broken == []

    run(script, files)


def test_the_directory_with_the_metadata_log_is_spared() -> None:
    files = MemoryFiles()

    async def script(world: World) -> None:
        for number in range(4):
            await world.open(number)
        files.fail("append", "/a/t-0")
        world.append(0, 0)
        world.append(3, 0)
        assert [type(event) for event in world.events] == [LogFailed, Appended]
        assert await world.disk.close() == ("/b", "/c"), "a log in /a must be recovered"

    run(script, files)


def test_damage_to_one_log_is_no_failure_of_its_directory() -> None:
    files = MemoryFiles()

    async def first(world: World) -> None:
        assert await world.open(0, B) == B
        world.append(0, 0)
        await world.disk.close()

    run(first, files)
    files.flip(f"/b/t-0/{0:020d}.log", 63, 1)

    async def again(world: World) -> None:
        await world.open(0)
        world.disk.obeys()[Read](
            Read(ReadToken(1), (Want(log(0), Offset(0), 1000, Offset(1)),), 1000)
        )
        assert [type(event) for event in world.events] == [LogFailed, ReadDone]

    run(again, files, clean=True)


def test_when_the_last_directory_fails_the_node_is_told_to_stop() -> None:
    files = MemoryFiles()

    async def script(world: World) -> None:
        for number in range(3):
            await world.open(number)
        for number, path in enumerate(("/a", "/b", "/c")):
            files.fail("append", f"{path}/t")
            world.append(number, 0)
        failed = [event.directory for event in world.events if isinstance(event, DirectoryFailed)]
        assert failed == [A, B]
        await asyncio.sleep(0)
        (sentence,) = world.broken
        assert sentence.startswith("every log directory has failed, the last one with t-2: could")

    run(script, files, metadata="/elsewhere")


def test_a_checkpoint_that_cannot_be_written_takes_its_directory_offline() -> None:
    files = MemoryFiles()

    async def script(world: World) -> None:
        await world.open(0, B)
        files.fail("write", "/b/replication-offset-checkpoint")
        world.disk.save_high_watermarks(SaveHighWatermarks(((log(0), Offset(0)),)))
        assert (await world.event(DirectoryFailed)).directory == B

    run(script, files)


def test_a_log_that_may_be_in_a_missing_directory_is_not_begun_anew() -> None:
    async def script(world: World) -> None:
        for number, known in enumerate((B, LOST_DIRECTORY)):
            world.disk.open_log(OpenLog(log(number), TOPIC, {}, known))
            failed = await world.event(LogFailed)
            assert failed.reason == f"t-{number}: its log directory is offline"
            world.append(number, 0)  # nobody is to stumble over it
            await world.event(LogFailed)
            world.disk.delete_log(DeleteLog(log(number), TOPIC))
        assert await world.open(5) == A
        assert (await world.measured())["/b"] == ("it is gone", [])

    run(script, missing=("/b",))


def test_a_log_whose_directory_was_taken_away_is_begun_anew() -> None:
    """Nothing is offline: somebody has given the node other disks."""

    async def script(world: World) -> None:
        assert await world.open(0, Uuid(b"z" * 16)) == A

    run(script)
