"""Logs that move to another directory while they are used, and what a crash makes of that."""

from __future__ import annotations

import asyncio
import copy
import errno
import random
import threading

import pytest

from cotidal.broker import moving
from cotidal.errors import ErrorCode
from cotidal.log.leftovers import FUTURE, STRAY, leftover_name
from cotidal.log.memory import FOREVER, MemoryFiles
from cotidal.messages.batch import Placed
from cotidal.node.effects import (
    Append,
    DeleteLog,
    MeasureLogs,
    MoveLogs,
    OpenLog,
    PaceMoves,
    PutStraysAside,
    Read,
    ReadToken,
    SaveEpochs,
    SaveHighWatermarks,
    TruncateTo,
    Want,
)
from cotidal.node.events import (
    Appended,
    LogHoused,
    LogOpened,
    LogsMeasured,
    LogsMoved,
    ReadDone,
)
from cotidal.values import EpochEntry, LeaderEpoch, Offset, Uuid
from cotidal.wire.batch import read_batches
from cotidal.wire.records import Record, build_batch
from tests.broker.test_directory import TOPIC, A, B, C, World, log, run

RECORDS = 40
SETTINGS = {"segment.bytes": "600", "flush.messages": "1", "file.delete.delay.ms": "0"}


async def filled(world: World, records: int = RECORDS) -> None:
    """A log in /a of several segments, on the disk to the last byte."""
    world.disk.open_log(OpenLog(log(0), TOPIC, SETTINGS, A))
    await world.event(LogOpened)
    for offset in range(records):
        world.append(0, offset)
        await world.event(Appended)
    epochs = (EpochEntry(LeaderEpoch(1), Offset(0)),)
    world.disk.obeys()[SaveEpochs](SaveEpochs(log(0), epochs))
    world.disk.obeys()[SaveHighWatermarks](SaveHighWatermarks(((log(0), Offset(records - 5)),)))


async def filled_and_closed(world: World) -> None:
    await filled(world)
    await world.disk.close()


async def move(world: World, path: str, number: int = 0) -> ErrorCode:
    world.disk.obeys()[MoveLogs](MoveLogs(ReadToken(9), ((path, log(number)),)))
    (error,) = (await world.event(LogsMoved)).errors
    return error


FEW = 12
"""Two segments: every operation is looked at."""


async def read(world: World, below: int = RECORDS) -> int:
    """Bytes of all its records."""
    wants = (Want(log(0), Offset(0), 1 << 20, Offset(below)),)
    size, at = 0, 0
    while at < below:
        world.disk.obeys()[Read](
            Read(ReadToken(5), (wants[0]._replace(offset=Offset(at)),), 1 << 20)
        )
        (data,) = (await world.event(ReadDone)).results
        assert isinstance(data, bytes | memoryview), data
        assert data, f"nothing at {at}"
        size += len(data)
        at += len(data) // 69  # of a batch with one record
    return size


def test_a_log_moves_with_all_that_is_known_of_it() -> None:
    files = MemoryFiles()

    async def script(world: World) -> None:
        await filled(world)
        before = await read(world)
        assert await move(world, "/b") is ErrorCode.NONE
        assert await world.event(LogHoused) == LogHoused(log(0), TOPIC, B)
        assert await read(world) == before
        world.append(0, RECORDS)
        assert (await world.event(Appended)).end_offset == RECORDS + 1
        measured = await world.measured()
        assert measured["/a"] == (None, [])
        assert measured["/b"] == (None, [0])
        while [name for name in files.listdir("/a") if name.startswith("t-0")]:
            await asyncio.sleep(0.001)
        await world.disk.close()

    async def again(world: World) -> None:
        world.disk.open_log(OpenLog(log(0), TOPIC, SETTINGS, B))
        opened = await world.event(LogOpened)
        assert opened.directory == B
        assert (opened.end_offset, opened.high_watermark) == (RECORDS + 1, RECORDS - 5)
        assert opened.epochs == (EpochEntry(LeaderEpoch(1), Offset(0)),)
        assert not world.said

    run(script, files)
    run(again, files, clean=True)


@pytest.mark.plain
def test_what_is_written_and_cut_while_it_moves_is_in_the_copy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(moving, "MOVE_LAST_BYTES", -1)  # so that there is a second round
    files, held = MemoryFiles(), threading.Event()

    def append(world: World, offset: int, value: bytes) -> None:
        batches = read_batches(build_batch([Record(None, value, timestamp=0)]))
        placed = Placed(Offset(offset), LeaderEpoch(1), batches)
        world.disk.obeys()[Append](Append(log(0), (placed,), False))

    def held_in(path: str) -> bytes:
        names = sorted(name for name in files.listdir(path) if name.endswith(".log"))
        return b"".join(files.read(f"{path}/{name}") for name in names)

    async def script(world: World) -> None:
        await filled(world)
        assert await move(world, "/b") is ErrorCode.NONE
        world.disk._moving._worker_of_moves().submit(held.wait, lambda _: None)
        (under_way,) = world.disk._moving._moves.values()
        while under_way.rounds < 2:  # all of it has been copied once
            await asyncio.sleep(0.001)
        world.disk.truncate_to(TruncateTo(log(0), Offset(7)))
        await world.event(LogOpened)
        for offset in range(7, RECORDS):  # as long as before, and not the same
            append(world, offset, b"y")
            await world.event(Appended)
        written = held_in("/a/t-0")
        held.set()
        await world.event(LogHoused)
        assert held_in("/b/t-0") == written
        append(world, RECORDS, b"z")
        assert (await world.event(Appended)).end_offset == RECORDS + 1
        assert await read(world, RECORDS + 1) == (RECORDS + 1) * 69

    run(script, files)


def test_one_that_is_on_its_way_is_measured_and_called_back() -> None:
    files = MemoryFiles()

    async def script(world: World) -> None:
        await filled(world)
        world.disk._moving._worker_of_moves().submit(held.wait, lambda _: None)
        assert await move(world, "/b") is ErrorCode.NONE
        world.disk.measure_logs(MeasureLogs(ReadToken(1)))
        (_, b, _) = (await world.event(LogsMeasured)).directories
        assert [(each.partition, each.lag) for each in b.moving] == [(log(0), RECORDS)]
        assert await move(world, "/a") is ErrorCode.NONE
        held.set()
        while any("future" in name for name in files.listdir("/b")):
            await asyncio.sleep(0.001)
        assert await read(world) == RECORDS * 69
        assert (await world.measured())["/a"] == (None, [0])

    held = threading.Event()
    run(script, files)


def test_moves_that_cannot_be_are_told_with_kafkas_errors() -> None:
    async def script(world: World) -> None:
        await filled(world)
        assert await move(world, "/nowhere") is ErrorCode.LOG_DIR_NOT_FOUND
        assert await move(world, "/c") is ErrorCode.KAFKA_STORAGE_ERROR
        assert await move(world, "/b", number=7) is ErrorCode.REPLICA_NOT_AVAILABLE
        assert await move(world, "/a") is ErrorCode.NONE

    run(script, missing=("/c",))


def test_a_disk_that_refuses_the_copy_leaves_the_log_where_it_is() -> None:
    files = MemoryFiles()

    async def script(world: World) -> None:
        await filled(world)
        files.fail("append", "-future/", error=errno.ENOSPC, times=FOREVER)
        assert await move(world, "/b") is ErrorCode.NONE
        while not any("could not be moved" in said for said in world.said):
            await asyncio.sleep(0.001)
        assert await read(world) == RECORDS * 69
        assert (await world.measured())["/a"] == (None, [0])
        assert not world.broken

    run(script, files)


def test_a_log_that_is_deleted_while_it_moves_is_gone() -> None:
    files = MemoryFiles()

    async def script(world: World) -> None:
        await filled(world)
        assert await move(world, "/b") is ErrorCode.NONE
        world.disk.delete_log(DeleteLog(log(0), TOPIC))
        while any(name.startswith("t-0") for path in ("/a", "/b") for name in files.listdir(path)):
            await asyncio.sleep(0.001)
        assert not world.broken

    run(script, files)


def future(number: int = 0, topic_id: Uuid = TOPIC) -> str:
    return leftover_name(log(number), topic_id, FUTURE)


def test_one_that_is_sent_elsewhere_while_it_arrives_goes_on_from_there() -> None:
    held = threading.Event()

    async def script(world: World) -> None:
        await filled(world)
        world.disk._keeper.submit(held.wait, lambda _: None)
        assert await move(world, "/b") is ErrorCode.NONE
        (under_way,) = world.disk._moving._moves.values()
        while not under_way.swapping:
            await asyncio.sleep(0.001)
        assert await move(world, "/c") is ErrorCode.NONE
        held.set()
        assert (await world.event(LogHoused)).directory == B
        assert (await world.event(LogHoused)).directory == C
        assert await read(world) == RECORDS * 69

    run(script)


def half_a_copy(files: MemoryFiles, path: str) -> None:
    """As a crash in the middle leaves it."""
    files.mkdir(f"{path}/{future()}")
    files.write(f"{path}/{future()}/00000000000000000000.log", b"not all of it")


def test_a_throttle_holds_a_move_and_is_lifted_while_it_lasts() -> None:
    async def script(world: World) -> None:
        await filled(world)
        world.disk.obeys()[PaceMoves](PaceMoves(1))
        assert await move(world, "/b") is ErrorCode.NONE
        (under_way,) = world.disk._moving._moves.values()
        while not under_way.pace.done_bytes:
            await asyncio.sleep(0.001)
        first = under_way.pace.done_bytes
        for offset in range(RECORDS, 2 * RECORDS):  # longer than a move without a throttle takes
            world.append(0, offset)
            await world.event(Appended)
        assert under_way.pace.done_bytes == first
        assert await read(world, 2 * RECORDS) == 2 * RECORDS * 69
        world.disk.obeys()[PaceMoves](PaceMoves(moving.UNTHROTTLED))
        await world.event(LogHoused)
        assert await read(world, 2 * RECORDS) == 2 * RECORDS * 69

    run(script)


@pytest.mark.plain
def test_a_throttled_move_never_takes_a_large_rest_in_one_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(moving, "MOVE_LAST_BYTES", -1)  # there is always too much left
    monkeypatch.setattr(moving, "MOVE_ROUNDS_MAX", 2)

    async def script(world: World) -> None:
        await filled(world)
        world.disk.obeys()[PaceMoves](PaceMoves(10**12))
        assert await move(world, "/b") is ErrorCode.NONE
        (under_way,) = world.disk._moving._moves.values()
        while under_way.rounds < 10:
            await asyncio.sleep(0.001)
        world.disk.obeys()[PaceMoves](PaceMoves(moving.UNTHROTTLED))
        await world.event(LogHoused)

    run(script)


def test_of_two_copies_that_a_crash_left_one_is_gone_on_with_and_the_other_goes() -> None:
    files = MemoryFiles()

    async def after(world: World) -> None:
        world.disk.open_log(OpenLog(log(0), TOPIC, SETTINGS, A))
        assert (await world.event(LogOpened)).directory == A
        housed = await world.event(LogHoused)
        assert housed.directory in (B, C)
        assert await read(world) == RECORDS * 69
        while any("future" in name for path in ("/b", "/c") for name in files.listdir(path)):
            await asyncio.sleep(0.001)
        assert sum("t-0" in files.listdir(path) for path in ("/a", "/b", "/c")) == 1

    run(filled_and_closed, files)
    half_a_copy(files, "/b")
    half_a_copy(files, "/c")
    run(after, files, clean=True)


def test_a_copy_beside_its_own_log_is_removed_and_never_read() -> None:
    files = MemoryFiles()

    async def after(world: World) -> None:
        world.disk.open_log(OpenLog(log(0), TOPIC, SETTINGS, A))
        assert (await world.event(LogOpened)).end_offset == RECORDS
        while future() in files.listdir("/a"):
            await asyncio.sleep(0.001)
        assert await read(world) == RECORDS * 69
        assert not world.disk._moving._moves

    run(filled_and_closed, files)
    half_a_copy(files, "/a")
    run(after, files, clean=True)


def test_copies_and_logs_that_nobody_asked_for_are_no_longer_in_the_way() -> None:
    files = MemoryFiles()

    async def script(world: World) -> None:
        await filled(world)
        for number in (1, 2):
            world.disk.open_log(OpenLog(log(number), TOPIC, SETTINGS, B))
            await world.event(LogOpened)
            world.append(number, 0)
            await world.event(Appended)
        world.disk.obeys()[SaveHighWatermarks](SaveHighWatermarks(((log(1), Offset(1)),)))
        await world.disk.close()

    async def after(world: World) -> None:
        world.disk.open_log(OpenLog(log(0), TOPIC, SETTINGS, A))
        world.disk.open_log(OpenLog(log(2), TOPIC, SETTINGS, B))
        world.disk.obeys()[PutStraysAside](PutStraysAside())
        for _ in range(2):
            await world.event(LogOpened)
        await world.event(LogHoused)  # the copy in /c is gone on with
        stray = leftover_name(log(1), TOPIC, STRAY)
        assert sorted(name for name in files.listdir("/b") if name.startswith("t-")) == [
            stray,
            "t-2",
        ]
        assert [said for said in world.said if stray in said]
        world.disk.open_log(OpenLog(log(1), TOPIC, SETTINGS, B))
        opened = await world.event(LogOpened)
        assert (opened.end_offset, opened.high_watermark) == (0, 0)

    run(script, files)
    half_a_copy(files, "/c")
    for gone in (future(7), future(topic_id=Uuid(b"o" * 16))):
        files.mkdir(f"/b/{gone}")
    run(after, files, clean=True)


class Remembering(MemoryFiles):
    """What was there before each operation, while it is watched."""

    __slots__ = ("images", "watched")

    def __init__(self) -> None:
        super().__init__()
        self.images: list[MemoryFiles] = []
        self.watched = False

    def account(self, operation: str, path: str) -> None:
        if self.watched and operation not in ("open", "pread", "read"):
            self.watched = False
            image = copy.deepcopy(self)
            image.images = []
            self.images.append(image)
            self.watched = True
        super().account(operation, path)


@pytest.mark.plain
@pytest.mark.parametrize("machine", [False, True], ids=["process dies", "machine dies"])
def test_a_crash_before_any_operation_of_a_move_loses_nothing(machine: bool) -> None:
    files = Remembering()

    async def on_the_way(world: World) -> None:
        await filled(world, FEW)
        while world.disk.jobs:  # what is to be written down
            await asyncio.sleep(0.001)
        files.watched = True
        assert await move(world, "/b") is ErrorCode.NONE
        await world.event(LogHoused)
        files.watched = False

    async def after(world: World) -> None:
        world.disk.open_log(OpenLog(log(0), TOPIC, SETTINGS, A))
        opened = await world.event(LogOpened)
        assert opened.end_offset == FEW
        assert opened.epochs == (EpochEntry(LeaderEpoch(1), Offset(0)),)
        assert await read(world, FEW) == FEW * 69
        if opened.directory == A and world.disk._moving._moves:
            await world.event(LogHoused)  # it goes on
            assert await read(world, FEW) == FEW * 69
        assert sum("t-0" in image.listdir(path) for path in ("/a", "/b")) == 1

    for path in ("/a", "/b", "/c"):
        files.mkdir(path)
    files.sync_directory("/")
    run(on_the_way, files)
    assert len(files.images) > 20
    for number, image in enumerate(files.images):
        image.crash(random.Random(number).randrange if machine else None)
        run(after, image)
