"""Logs are compacted in a thread, beside everything else that is done to them."""

from __future__ import annotations

import asyncio
import errno
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from cotidal.broker.compacting import REST_RATIO, Pace, Stopped
from cotidal.log.memory import MemoryFiles
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


def play(
    script: Callable[[World], Coroutine[Any, Any, None]], files: MemoryFiles | None = None
) -> World:
    async def whole() -> World:
        memory = files or MemoryFiles()
        memory.mkdir("/data")
        world = World(memory)
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


def test_log_is_compacted_and_the_clean_point_is_remembered() -> None:
    files = MemoryFiles()

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
        told = files.read("/data/cleaner-offset-checkpoint").decode()
        assert told.startswith("0\n1\none 0 ")
        assert world.counters.compacted_bytes > 0

    async def again(world: World) -> None:
        await world.open(ONE, **COMPACTED)
        ask(world, 60, ONE)
        await flushed(world)
        assert not [each for each in world.said if "compacted" in each]

    play(compacts, files)
    files.crash()
    play(again, files)


def test_old_files_are_unlinked_when_it_is_looked_at_again() -> None:
    files = MemoryFiles()

    async def compacts(world: World) -> None:
        await world.open(ONE, **COMPACTED)
        write(world, ONE, 60)
        await flushed(world)
        ask(world, 60, ONE)
        await said(world, "compacted up to")
        await asyncio.sleep(0.005)
        ask(world, 60, ONE)
        await flushed(world)
        assert not [name for name in files.listdir("/data/one-0") if name.endswith(".deleted")]

    play(compacts, files)


def test_dirtier_log_comes_first() -> None:
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


def test_log_is_written_and_read_while_it_is_compacted() -> None:
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


def test_compaction_of_a_log_that_is_cut_or_removed_meanwhile_comes_to_nothing() -> None:
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


def test_compaction_for_which_there_is_no_room_leaves_the_log_as_it_was() -> None:
    files = MemoryFiles()

    async def compacts(world: World) -> None:
        await world.open(ONE, **COMPACTED)
        write(world, ONE, 60)
        await flushed(world)
        files.fail("append", ".cleaned", error=errno.ENOSPC)
        ask(world, 60, ONE)
        await said(world, "one-0 could not be compacted")
        assert await values(world, ONE, 60) == list(range(60))
        assert not [each for each in world.events if isinstance(each, LogFailed)]
        ask(world, 60, ONE)
        await said(world, "one-0: compacted")

    play(compacts, files)


@pytest.mark.parametrize(("byte", "offset"), [(140, 1), (150, 2)], ids=["records", "its offset"])
def test_damage_that_compaction_meets_is_told_with_its_offset(byte: int, offset: int) -> None:
    files = MemoryFiles()

    async def compacts(world: World) -> None:
        await world.open(ONE, **COMPACTED)
        write(world, ONE, 60)
        await flushed(world)
        files.flip("/data/one-0/00000000000000000000.log", byte, 1)
        ask(world, 60, ONE)
        assert (await world.event(LogFailed, ONE)).damaged_at == offset

    play(compacts, files)


def test_stop_does_not_wait_for_a_slow_compaction() -> None:
    files = MemoryFiles()

    async def closes(world: World) -> None:
        await world.open(ONE, **COMPACTED)
        write(world, ONE, 100)
        await flushed(world)
        ask(world, 100, ONE, speed=10)
        await asyncio.sleep(0.01)
        begun = time.perf_counter()
        assert await world.disk.close() == ("/data",)
        assert time.perf_counter() - begun < 2
        assert not world.faults

    play(closes, files)
    names = files.listdir("/data/one-0")
    assert not [name for name in names if name.endswith(".cleaned")]


def test_pace_rests_and_ends_when_it_is_told() -> None:
    pace = Pace(1e12)
    pace.breathe(1)
    begun, used = time.perf_counter(), time.thread_time()
    while time.thread_time() - used < 0.02:
        pace.breathe(1)
    assert time.perf_counter() - begun > 0.02 * REST_RATIO
    pace.stop()
    with pytest.raises(Stopped):
        pace.breathe(1)


def test_pace_keeps_to_a_speed_that_may_change_and_saves_nothing_up() -> None:
    pace = Pace(1_000_000)
    time.sleep(0.05)  # nothing was done in it, and nothing is saved for later but one piece
    begun = time.perf_counter()
    for _ in range(6):
        pace.breathe(20_000)
    assert time.perf_counter() - begun > 0.09
    pace.bytes_per_second = 1e308
    begun = time.perf_counter()
    pace.breathe(1 << 40)
    assert time.perf_counter() - begun < 5


def test_a_speed_is_raised_for_one_who_sleeps() -> None:
    pace = Pace(1)
    sleeper = threading.Thread(target=pace.breathe, args=(1 << 40,))
    sleeper.start()
    pace.bytes_per_second = 1e308
    sleeper.join(20)
    assert not sleeper.is_alive()
