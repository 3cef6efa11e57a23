"""Logs are compacted by another process, beside everything else that is done to them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import psutil
import pytest
import uvloop

from cotidal.broker.cleaner import NICE
from cotidal.broker.full_disk import FillableFiles
from cotidal.messages.batch import Placed
from cotidal.node.effects import Append, Compact, Compactable, DeleteLog, TruncateTo
from cotidal.node.events import LogFailed, LogOpened, ReadDone
from cotidal.values import Offset, TopicPartition
from cotidal.wire.batch import read_batches
from cotidal.wire.records import Record, build_batch, read_records
from tests.broker.test_disk import EPOCH, ID, ONE, TWO, World, want

COMPACTED = {
    "cleanup_policy": "compact",
    "segment_bytes": "400",
    "min_cleanable_dirty_ratio": "0.01",
    "file_delete_delay_ms": "0",
}


Play = Callable[[Callable[[World], Coroutine[Any, Any, None]]], World]


@pytest.fixture
def files() -> FillableFiles:
    return FillableFiles(100)


@pytest.fixture
def play(files: FillableFiles, tmp_path: Path) -> Play:
    return lambda script: _play(script, files, str(tmp_path))


def _play(
    script: Callable[[World], Coroutine[Any, Any, None]], files: FillableFiles, home: str
) -> World:
    async def whole() -> World:
        world = World(files, home=home)
        try:
            await asyncio.wait_for(script(world), 20)
        finally:
            if script.__name__ != "closes":
                world.disk.abandon()
        return world

    loop = uvloop.new_event_loop()
    try:
        return loop.run_until_complete(whole())
    finally:
        loop.close()


def write(world: World, partition: TopicPartition, count: int, first: int = 0) -> None:
    """Batches of one record; ten keys."""
    for offset in range(first, first + count):
        record = Record(b"key %d" % (offset % 10), b"%d" % offset, timestamp=1000)
        batches = read_batches(build_batch([record]))
        entries = (Placed(Offset(offset), EPOCH, batches),)
        world.disk.obeys()[Append](Append(partition, entries, False))


async def flushed(world: World) -> None:
    while world.disk.jobs:
        await asyncio.sleep(0.001)


def ask(world: World, below: int, *partitions: TopicPartition, speed: float = 1e12) -> None:
    logs = tuple(Compactable(each, Offset(below), frozenset()) for each in partitions)
    world.disk.obeys()[Compact](Compact(logs, 1 << 20, speed))


async def said(world: World, text: str) -> str:
    while True:
        assert not world.faults, world.faults
        for sentence in world.said:
            if text in sentence:
                return sentence
        await asyncio.sleep(0.001)


async def values(world: World, partition: TopicPartition, end: int) -> list[int]:
    """What a reader finds."""
    found: list[int] = []
    offset = 0
    while offset < end:
        world.read(1, want(partition, offset, end))
        (data,) = (await world.event(ReadDone)).results
        assert not isinstance(data, str), data
        position = 0
        for header in read_batches(data).headers:
            found += [int(each.value or b"") for each in read_records(data, position)]
            position += header.size_bytes
            offset = header.next_offset
    return found


def test_log_is_compacted_and_the_clean_point_is_remembered(
    play: Play, files: FillableFiles, tmp_path: Path
) -> None:
    async def compacts(world: World) -> None:
        await world.open(ONE, **COMPACTED)
        write(world, ONE, 60)
        await flushed(world)
        ask(world, 60, ONE)
        await said(world, "one-0: compacted up to offset")
        found = await values(world, ONE, 60)
        assert found == sorted(found)
        assert found[-10:] == list(range(50, 60))
        assert len(found) < 20
        await flushed(world)
        told = (tmp_path / "cleaner-offset-checkpoint").read_text()
        assert told.startswith("0\n1\none 0 ")
        assert world.counters.compacted_bytes > 0

    async def again(world: World) -> None:
        await world.open(ONE, **COMPACTED)
        ask(world, 60, ONE)
        await flushed(world)
        assert not [each for each in world.said if "compacted" in each]

    play(compacts)
    play(again)


def test_old_files_are_unlinked_when_it_is_looked_at_again(
    play: Play, files: FillableFiles, tmp_path: Path
) -> None:
    async def compacts(world: World) -> None:
        await world.open(ONE, **COMPACTED)
        write(world, ONE, 60)
        await flushed(world)
        ask(world, 60, ONE)
        await said(world, "compacted up to")
        await asyncio.sleep(0.005)
        ask(world, 60, ONE)
        await flushed(world)
        assert not [
            name for name in files.listdir(str(tmp_path / "one-0")) if name.endswith(".deleted")
        ]

    play(compacts)


def test_dirtier_log_comes_first(play: Play) -> None:
    async def compacts(world: World) -> None:
        await world.open(ONE, **COMPACTED)
        await world.open(TWO, **COMPACTED)
        write(world, ONE, 40)
        await flushed(world)
        ask(world, 40, ONE)
        await said(world, "one-0: compacted")
        world.said.clear()
        write(world, ONE, 40, first=40)
        write(world, TWO, 40)
        await flushed(world)
        ask(world, 80, ONE, TWO)
        await said(world, "one-0: compacted")
        order = [each.partition(":")[0] for each in world.said if "compacted" in each]
        assert order == ["two-0", "one-0"]

    play(compacts)


def test_log_is_written_and_read_while_it_is_compacted(play: Play) -> None:
    async def compacts(world: World) -> None:
        await world.open(ONE, **COMPACTED)
        write(world, ONE, 100)
        await flushed(world)
        begun = time.perf_counter()
        ask(world, 100, ONE, speed=50_000)
        write(world, ONE, 20, first=100)
        assert len(await values(world, ONE, 120)) == 120
        assert time.perf_counter() - begun < 0.15, "nobody waits for it"
        await said(world, "compacted up to")
        assert time.perf_counter() - begun > 0.2, "it keeps to its speed"
        assert (await values(world, ONE, 120))[-20:] == list(range(100, 120))

    play(compacts)


def test_compaction_of_a_log_that_is_cut_or_removed_meanwhile_comes_to_nothing(play: Play) -> None:
    async def compacts(world: World) -> None:
        for partition in (ONE, TWO):
            await world.open(partition, **COMPACTED)
            write(world, partition, 60)
        await flushed(world)
        ask(world, 60, ONE, speed=100_000)
        world.disk.truncate_to(TruncateTo(ONE, Offset(30)))
        assert (await world.event(LogOpened, ONE)).end_offset == 30
        await flushed(world)
        while world.counters.compacted_bytes == 0:
            await asyncio.sleep(0.001)
        await flushed(world)
        assert await values(world, ONE, 30) == list(range(30))
        ask(world, 60, TWO, speed=100_000)
        world.disk.delete_log(DeleteLog(TWO, ID))
        ask(world, 30, ONE)
        await said(world, "one-0: compacted")
        assert not [each for each in world.events if isinstance(each, LogFailed)]

    play(compacts)


def test_compaction_for_which_there_is_no_room_leaves_the_log_as_it_was(
    play: Play, files: FillableFiles, tmp_path: Path
) -> None:
    async def compacts(world: World) -> None:
        await world.open(ONE, **COMPACTED)
        write(world, ONE, 60)
        await flushed(world)
        files.fill(("one-0",))
        ask(world, 60, ONE)
        await said(world, "one-0 could not be compacted: [Errno 28]")
        files.fill(())
        assert await values(world, ONE, 60) == list(range(60))
        assert not [each for each in world.events if isinstance(each, LogFailed)]
        ask(world, 60, ONE)
        await said(world, "one-0: compacted")

    play(compacts)


@pytest.mark.parametrize(("byte", "offset"), [(140, 1), (150, 2)], ids=["records", "its offset"])
def test_damage_that_compaction_meets_is_told_with_its_offset(
    play: Play, tmp_path: Path, byte: int, offset: int
) -> None:
    async def compacts(world: World) -> None:
        await world.open(ONE, **COMPACTED)
        write(world, ONE, 60)
        await flushed(world)
        with (tmp_path / "one-0" / "00000000000000000000.log").open("r+b") as segment:
            segment.seek(byte)
            damaged = segment.read(1)[0] ^ 1
            segment.seek(byte)
            segment.write(bytes((damaged,)))
        ask(world, 60, ONE)
        assert (await world.event(LogFailed, ONE)).damaged_at == offset

    play(compacts)


def test_stop_does_not_wait_for_a_slow_compaction(
    play: Play, files: FillableFiles, tmp_path: Path
) -> None:
    async def closes(world: World) -> None:
        await world.open(ONE, **COMPACTED)
        write(world, ONE, 100)
        await flushed(world)
        ask(world, 100, ONE, speed=10)
        await asyncio.sleep(0.01)
        begun = time.perf_counter()
        assert await world.disk.close() == (str(tmp_path),)
        assert time.perf_counter() - begun < 2
        assert not world.faults
        assert not [sentence for sentence in world.said if "could not" in sentence]

    play(closes)
    names = files.listdir(str(tmp_path / "one-0"))
    assert not [name for name in names if name.endswith(".cleaned")]


# Its process


async def at_work(world: World) -> psutil.Process:
    """A compaction that takes long; the process that does it."""
    await world.open(ONE, **COMPACTED)
    write(world, ONE, 100)
    await flushed(world)
    ask(world, 100, ONE, speed=5_000)
    return await cleaner_that_works(psutil.Process(), world.home)


async def cleaner_that_works(parent: psutil.Process, home: str) -> psutil.Process:
    while True:
        for each in parent.children():
            with contextlib.suppress(psutil.NoSuchProcess):
                if any(".cleaned" in file.path and home in file.path for file in each.open_files()):
                    return each
        await asyncio.sleep(0.01)


def test_a_compaction_whose_process_is_killed_is_tried_again(
    play: Play, files: FillableFiles, tmp_path: Path
) -> None:
    async def compacts(world: World) -> None:
        cleaner = await at_work(world)
        cleaner.kill()
        sentence = await said(world, "one-0 could not be compacted")
        assert sentence.endswith("its process ended with status -9")
        names = files.listdir(str(tmp_path / "one-0"))
        assert not [name for name in names if name.endswith(".cleaned")]
        assert await values(world, ONE, 100) == list(range(100))
        ask(world, 100, ONE)
        await said(world, "one-0: compacted")

    play(compacts)


def test_a_stop_between_two_compactions_ends_its_process_too(play: Play) -> None:
    cleaners: list[subprocess.Popen[bytes]] = []

    async def compacts(world: World) -> None:
        await world.open(ONE, **COMPACTED)
        write(world, ONE, 60)
        await flushed(world)
        ask(world, 60, ONE)
        cleaner = world.disk._compacting._cleaner
        cleaner.let_go = lambda: None  # type: ignore[method-assign]  # not yet, when it has done all
        await said(world, "one-0: compacted")
        del cleaner.let_go
        assert cleaner._process is not None
        cleaners.append(cleaner._process)

    play(compacts)
    assert cleaners[0].returncode == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_a_terminal_sends_to_all_is_not_meant_for_it(play: Play, number: int) -> None:
    async def compacts(world: World) -> None:
        cleaner = await at_work(world)
        cleaner.send_signal(number)
        await said(world, "one-0: compacted")

    play(compacts)


def test_it_comes_second_and_goes_when_there_is_nothing_more_to_do(play: Play) -> None:
    async def compacts(world: World) -> None:
        cleaner = await at_work(world)
        assert cleaner.nice() == psutil.Process().nice() + NICE
        await said(world, "one-0: compacted")
        while cleaner.is_running():
            await asyncio.sleep(0.001)

    play(compacts)


def test_a_log_that_is_being_compacted_is_not_begun_again(play: Play) -> None:
    async def compacts(world: World) -> None:
        cleaner = await at_work(world)
        ask(world, 100, ONE)
        await said(world, "one-0: compacted")
        while cleaner.is_running():
            await asyncio.sleep(0.001)
        await flushed(world)
        assert len([sentence for sentence in world.said if "compacted" in sentence]) == 1

    play(compacts)


def test_it_runs_the_code_that_its_broker_runs(
    play: Play, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "cotidal.py").write_text("raise SystemExit(77)")

    async def compacts(world: World) -> None:
        await world.open(ONE, **COMPACTED)
        write(world, ONE, 60)
        await flushed(world)
        monkeypatch.setattr(sys, "path", [str(other), *sys.path])
        ask(world, 60, ONE)
        assert (await said(world, "could not be compacted")).endswith("status 77")

    play(compacts)


def test_a_mistake_of_ours_in_it_is_one_of_the_broker(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def compacts(world: World) -> None:
        await world.open(ONE, **COMPACTED)
        write(world, ONE, 60)
        await flushed(world)
        monkeypatch.setattr(FillableFiles, "__reduce__", lambda _: (object, ()))
        ask(world, 60, ONE)
        while not world.faults:
            await asyncio.sleep(0.001)
        assert "a compaction failed:\nTraceback" in str(world.faults.pop())

    play(compacts)


def test_no_process_outlives_a_broker_that_is_killed(tmp_path: Path) -> None:
    """Else it might write over what the next one compacts."""
    told = subprocess.Popen(
        [sys.executable, "-c", OF_A_BROKER, json.dumps(sys.path), str(tmp_path)],
        stdout=subprocess.PIPE,
    )
    with told as broker:
        assert broker.stdout is not None
        cleaner = psutil.Process(int(broker.stdout.readline()))
        assert cleaner.is_running()
        broker.kill()
        cleaner.wait(20)


OF_A_BROKER = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from pathlib import Path
from cotidal.broker.cleaner import NICE
from cotidal.broker.full_disk import FillableFiles
from tests.broker import test_compacting

async def compacts(world):
    cleaner = await test_compacting.at_work(world)
    print(cleaner.pid, flush=True)
    await test_compacting.said(world, "this is never said")

test_compacting._play(compacts, FillableFiles(100), sys.argv[2])
"""
