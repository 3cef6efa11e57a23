"""Effects on logs: order, failure of one log only, threads that nobody notices."""

from __future__ import annotations

import asyncio
import errno
import itertools
import socket
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
import uvloop

from cotidal.broker import appending
from cotidal.broker.counters import Counters
from cotidal.broker.directory import LogDir
from cotidal.broker.disk import Disk
from cotidal.broker.journal import Journal
from cotidal.broker.parcel import Parcel
from cotidal.log.files import OsFiles
from cotidal.log.filesystem import FileSystem
from cotidal.log.memory import MemoryFiles
from cotidal.log.segment import LEAVE_BYTES_MIN
from cotidal.messages.batch import Batches, Placed
from cotidal.messages.producers import ProducerEntry, ProducerSnapshot
from cotidal.node.effects import (
    AdvanceStart,
    Append,
    ConfigureLog,
    DeleteLog,
    FindTime,
    Found,
    MeasureLogs,
    OpenLog,
    Read,
    ReadToken,
    Retain,
    SaveEpochs,
    SaveHighWatermarks,
    SaveProducers,
    StartOver,
    TruncateTo,
    Want,
)
from cotidal.node.events import (
    Appended,
    LogFailed,
    LogOpened,
    LogsMeasured,
    ReadDone,
    StartMoved,
    TimeFound,
)
from cotidal.values import (
    EpochEntry,
    LeaderEpoch,
    Offset,
    ProducerEpoch,
    ProducerId,
    Sequence,
    TopicPartition,
    Uuid,
    WallMillis,
)
from cotidal.wire.batch import read_batches
from cotidal.wire.records import Record, build_batch

ONE = TopicPartition("one", 0)
TWO = TopicPartition("two", 0)
ID = Uuid(b"0123456789abcdef")
HOME = Uuid(b"h" * 16)
EPOCH = LeaderEpoch(3)
T = TypeVar("T")


class World:
    """A disk, by default in memory, and the events it has posted."""

    def __init__(self, files: FileSystem, clean: bool = False, home: str = "/data") -> None:
        self.home = home
        self.events: list[Any] = []
        self.held = 0
        self.said: list[str] = []
        self.faults: list[Exception] = []
        self.broken: list[str] = []
        self.counters = Counters()
        self.disk = Disk(
            asyncio.get_running_loop(),
            files,
            [LogDir(HOME, home, clean)],
            metadata_path=home,
            checkpoint_ms=60_000,
            post=self.events.append,
            on_broken=self.broken.append,
            on_fault=self.faults.append,
            hold=self._hold,
            journal=Journal(self),
            counters=self.counters,
        )

    def write(self, level: str, text: str) -> None:
        self.said.append(text)

    def _hold(self, grown: int) -> None:
        self.held += grown

    async def event(self, kind: type[T], partition: TopicPartition | None = None) -> T:
        """The next event of this kind, taken out of the list."""
        while True:
            assert not self.faults, self.faults
            for event in self.events:
                if isinstance(event, kind) and partition in (None, event[0]):
                    self.events.remove(event)
                    return event
            await asyncio.sleep(0.001)

    async def open(self, partition: TopicPartition, **settings: str) -> LogOpened:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self.disk.open_log(OpenLog(partition, ID, named, HOME))
        return await self.event(LogOpened, partition)

    def append(self, partition: TopicPartition, offset: int, *values: bytes) -> None:
        self.disk.obeys()[Append](Append(partition, (placed(offset, *values),), False))

    def read(
        self, token: int, *wants: Want, max_bytes: int = 1 << 20, to_send: bool = False
    ) -> None:
        self.disk.obeys()[Read](Read(ReadToken(token), wants, max_bytes, to_send=to_send))


def placed(offset: int, *values: bytes) -> Placed:
    return Placed(Offset(offset), EPOCH, batches(*values))


def batches(*values: bytes) -> Batches:
    records = [Record(None, value, timestamp=1000 + place) for place, value in enumerate(values)]
    return read_batches(build_batch(records))


def want(partition: TopicPartition, offset: int, below: int, max_bytes: int = 1 << 20) -> Want:
    return Want(partition, Offset(offset), max_bytes, Offset(below))


@pytest.fixture
def run() -> Callable[..., None]:
    def play(
        script: Callable[[World], Coroutine[Any, Any, None]],
        files: FileSystem | None = None,
        clean: bool = False,
        home: str = "/data",
    ) -> None:
        async def whole() -> None:
            there = files or MemoryFiles()
            there.mkdir(home)
            world = World(there, clean, home)
            try:
                await asyncio.wait_for(script(world), 20)
            finally:
                if world.disk is not None:
                    world.disk.abandon()

        loop = uvloop.new_event_loop()
        try:
            loop.run_until_complete(whole())
        finally:
            loop.close()

    return play


Run = Callable[..., None]


def test_what_is_appended_is_read(run: Run) -> None:
    async def script(world: World) -> None:
        opened = await world.open(ONE)
        assert (opened.start_offset, opened.end_offset, opened.epochs) == (0, 0, ())
        world.append(ONE, 0, b"a", b"b")
        assert world.events == [Appended(ONE, ID, Offset(2), WallMillis(-1), False)]
        world.events.clear()
        world.read(7, want(ONE, 0, 2))
        (done,) = world.events
        assert done.token == 7
        (header,) = read_batches(done.results[0]).headers
        assert (header.base_offset, header.leader_epoch, header.record_count) == (0, EPOCH, 2)

    run(script)


def test_the_first_result_is_whole_and_what_no_longer_fits_is_empty(run: Run) -> None:
    async def script(world: World) -> None:
        for partition in (ONE, TWO):
            await world.open(partition)
            world.append(partition, 0, b"x" * 1000)
        world.events.clear()
        world.read(1, want(ONE, 0, 1), want(TWO, 0, 1), max_bytes=10)
        (done,) = world.events
        assert len(done.results[0]) > 1000
        assert done.results[1] == b""

    run(script)


def test_an_unknown_log_is_a_sentence_and_not_a_fault(run: Run) -> None:
    async def script(world: World) -> None:
        world.read(1, want(ONE, 0, 1))
        assert world.events == [ReadDone(ReadToken(1), ("one-0 has no open log on this node",))]

    run(script)


def test_work_behind_a_slow_append_waits_in_order_and_other_logs_go_on(run: Run) -> None:
    async def script(world: World) -> None:
        await world.open(ONE, flush_messages="1")
        await world.open(TWO)
        world.append(ONE, 0, b"flushed, so in the thread")
        world.append(ONE, 1, b"waits")
        world.read(1, want(ONE, 0, 3), want(TWO, 0, 0))
        world.append(ONE, 2, b"waits too")
        assert world.events == []
        assert world.held > 0
        world.append(TWO, 0, b"goes on")
        assert [type(event) for event in world.events] == [Appended]
        await world.event(Appended, TWO)
        told: list[Any] = []
        while len(told) < 4:
            await asyncio.sleep(0.001)
            told += world.events
            world.events.clear()
        assert [type(event) for event in told] == [Appended, Appended, ReadDone, Appended]
        assert [e.end_offset for e in told if isinstance(e, Appended)] == [1, 2, 3]
        assert world.held == 0

    run(script)


def test_an_acknowledged_record_with_flush_messages_1_survives_the_machine(run: Run) -> None:
    files = MemoryFiles()

    async def script(world: World) -> None:
        await world.open(ONE, flush_messages="1")
        world.append(ONE, 0, b"kept")
        await world.event(Appended)

    run(script, files)
    files.crash(lambda n: 0)

    async def again(world: World) -> None:
        assert (await world.open(ONE)).end_offset == 1

    run(again, files)


@pytest.mark.plain
def test_large_appends_go_to_the_thread_while_the_disk_is_behind(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appending, "LARGE_APPEND_BYTES", 500)
    monkeypatch.setattr(appending, "APPEND_STALL_MS", -1)
    monkeypatch.setattr("cotidal.broker.stalls.times_waited", itertools.count().__next__)

    async def script(world: World) -> None:
        await world.open(ONE)
        world.append(ONE, 0, b"x" * 1000)
        assert len(world.events) == 1
        world.events.clear()
        world.append(ONE, 1, b"x" * 1000)
        assert world.events == []
        assert world.held > 1000
        assert (await world.event(Appended)).end_offset == 2
        world.append(ONE, 2, b"small ones stay")
        assert len(world.events) == 1

    run(script)


@pytest.mark.plain
def test_a_log_that_met_the_disk_is_read_by_a_thread_for_a_while(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cotidal.broker.reading.READ_STALL_MS", -1)
    monkeypatch.setattr("cotidal.broker.stalls.blocks_read", itertools.count().__next__)

    async def script(world: World) -> None:
        for partition in (ONE, TWO):
            await world.open(partition)
            world.append(partition, 0, b"x" * 100)
        world.events.clear()
        world.read(1, want(ONE, 0, 1))
        (warm,) = world.events
        world.events.clear()
        world.read(2, want(ONE, 0, 1), want(TWO, 0, 1), want(ONE, 5, 9))
        world.append(ONE, 1, b"waits its turn")
        assert world.events == []
        cold = await world.event(ReadDone)
        assert cold.token == 2
        assert cold.results[0] == warm.results[0]
        assert read_batches(cold.results[1]).headers
        assert "offset 5 is past the end" in cold.results[2]
        assert (await world.event(Appended)).end_offset == 2

    run(script)


LARGE = b"x" * (LEAVE_BYTES_MIN + 1)


def taken(parcel: Any) -> bytes:
    return b"".join(iter(lambda: parcel.read(10_000) if parcel.unsent else b"", b""))


@pytest.mark.skipif(sys.platform != "linux", reason="files are sent on Linux only")
def test_large_records_that_are_only_sent_on_stay_where_they_are(run: Run, tmp_path: Path) -> None:
    async def script(world: World) -> None:
        for partition in (ONE, TWO):
            await world.open(partition)
            world.append(partition, 0, LARGE)
            world.append(partition, 1, b"small")
        both = (want(ONE, 0, 2), want(TWO, 0, 2))
        world.events.clear()
        world.read(1, *both)
        world.read(2, *both, want(ONE, 1, 2), to_send=True)
        world.read(3, *both, to_send=True, max_bytes=LEAVE_BYTES_MIN * 3 // 2)
        read, left, full = world.events
        assert [type(each) for each in read.results] == [bytes, bytes]
        assert [type(each) for each in left.results] == [Parcel, Parcel, bytes]
        assert [taken(each) for each in left.results[:2]] == list(read.results)
        assert len(full.results[0]) == len(read.results[0])
        assert full.results[1] == b"", "what is left counts as what is read does"

    run(script, OsFiles(), home=str(tmp_path / "data"))


@pytest.mark.plain
@pytest.mark.skipif(sys.platform != "linux", reason="files are sent on Linux only")
def test_what_may_need_the_disk_is_read_by_a_thread_also_when_it_is_only_sent_on(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cotidal.broker.parcel.READ_STALL_MS", -1)
    monkeypatch.setattr("cotidal.broker.stalls.blocks_read", itertools.count().__next__)

    async def script(world: World) -> None:
        await world.open(ONE)
        world.append(ONE, 0, LARGE)
        world.events.clear()
        world.read(1, want(ONE, 0, 1), to_send=True)
        (parcel,) = (await world.event(ReadDone)).results
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            parcel.send_to(ours.fileno())
        world.read(2, want(ONE, 0, 1), to_send=True)
        assert world.events == []
        (data,) = (await world.event(ReadDone)).results
        assert read_batches(data).headers

    run(script, OsFiles(), home=str(tmp_path / "data"))


def test_a_full_disk_fails_that_append_and_reads_go_on(run: Run) -> None:
    files = MemoryFiles()

    async def script(world: World) -> None:
        for partition in (ONE, TWO):
            await world.open(partition)
            world.append(partition, 0, b"before")
        world.events.clear()
        files.fail("append", "one-0", error=errno.ENOSPC)
        world.append(ONE, 1, b"lost")
        (failed,) = world.events
        assert isinstance(failed, LogFailed)
        assert failed.partition == ONE
        assert "No space left on device" in failed.reason
        world.append(TWO, 1, b"fine")
        assert isinstance(world.events[-1], Appended)
        world.read(1, want(ONE, 0, 1))
        assert read_batches(world.events[-1].results[0]).headers

    run(script, files)


def test_a_read_that_the_disk_refuses_takes_the_log_offline(run: Run) -> None:
    files = MemoryFiles()

    async def script(world: World) -> None:
        await world.open(ONE)
        for offset in range(2):  # the last one would be read from memory
            world.append(ONE, offset, b"x")
        world.events.clear()
        files.fail("pread", "one-0")
        world.read(1, want(ONE, 0, 1))
        failed, done = world.events
        assert isinstance(failed, LogFailed)
        assert failed.damaged_at is None
        assert done.results == ("one-0: could not read offset 0: Input/output error",)

    run(script, files)


def test_damage_is_told_with_the_offset_where_it_begins_and_can_be_cut_away(run: Run) -> None:
    files = MemoryFiles()

    async def script(world: World) -> None:
        await world.open(ONE)
        for offset in range(3):
            world.append(ONE, offset, b"x")
        assert await world.disk.close() == ("/data",)

    run(script, files)
    size = files.size(f"/data/one-0/{0:020d}.log")
    files.flip(f"/data/one-0/{0:020d}.log", size - 3, 2)

    async def again(world: World) -> None:
        await world.open(ONE)
        world.events.clear()
        world.read(1, want(ONE, 0, 3))
        (done,) = world.events
        assert [header.base_offset for header in read_batches(done.results[0]).headers] == [0, 1]
        world.events.clear()
        world.read(2, want(ONE, 2, 3))
        failed, done = world.events
        assert isinstance(failed, LogFailed)
        assert failed.damaged_at == 2
        assert "crc mismatch" in failed.reason
        assert isinstance(done.results[0], str)
        world.disk.truncate_to(TruncateTo(ONE, failed.damaged_at))
        assert (await world.event(LogOpened)).end_offset == 2
        world.append(ONE, 2, b"again")
        assert (await world.event(Appended)).end_offset == 3

    run(again, files, clean=True)


def test_a_log_that_failed_is_not_left_as_one_that_was_closed_in_order(run: Run) -> None:
    files = MemoryFiles()

    async def script(world: World) -> None:
        await world.open(ONE)
        files.fail("sync", "one-0")
        world.append(ONE, 0, b"x")
        world.disk._flushing.flush_beside(world.disk._lanes[ONE])
        await world.event(LogFailed)
        assert not await world.disk.close()

    run(script, files)


def test_a_log_that_cannot_be_opened_is_told(run: Run) -> None:
    files = MemoryFiles()

    async def script(world: World) -> None:
        files.fail("open", "one-0", times=10)
        world.disk.open_log(OpenLog(ONE, ID, {}, HOME))
        assert "Input/output error" in (await world.event(LogFailed)).reason

    run(script, files)


def test_a_deleted_log_makes_room_for_one_of_its_name(run: Run) -> None:
    files = MemoryFiles()

    async def script(world: World) -> None:
        await world.open(ONE, file_delete_delay_ms="30")
        world.append(ONE, 0, b"old")
        world.disk.save_high_watermarks(SaveHighWatermarks(((ONE, Offset(1)),)))
        world.disk.delete_log(DeleteLog(ONE, ID))
        world.disk.open_log(OpenLog(ONE, ID, {}, HOME))
        opened = await world.event(LogOpened)
        assert (opened.end_offset, opened.high_watermark) == (0, 0)
        doomed = [name for name in files.listdir("/data") if name.endswith("-delete")]
        assert doomed == [f"one-0.{ID.hex()}-delete"]
        while any(name.endswith("-delete") for name in files.listdir("/data")):
            await asyncio.sleep(0.005)

    run(script, files)


def test_what_a_deleted_log_holds_is_not_synced_first(run: Run) -> None:
    """A disk that would refuse it does not matter."""
    files = MemoryFiles()

    async def script(world: World) -> None:
        await world.open(ONE)
        world.append(ONE, 0, b"x")
        files.fail("sync", ".log", times=10)
        world.disk.delete_log(DeleteLog(ONE, ID))
        while files.exists("/data/one-0"):
            await asyncio.sleep(0.001)
        assert world.said == []

    run(script, files)


def test_logs_of_one_name_are_deleted_each_in_its_turn(run: Run) -> None:
    files = MemoryFiles()
    first, second, third = (Uuid(bytes([number]) * 16) for number in (1, 2, 3))

    async def script(world: World) -> None:
        world.disk.open_log(OpenLog(ONE, first, {}, HOME))
        for before, after in ((first, second), (second, third)):
            world.disk.delete_log(DeleteLog(ONE, before))
            world.disk.open_log(OpenLog(ONE, after, {}, HOME))
        for topic_id in (first, second, third):
            assert (await world.event(LogOpened)).topic_id == topic_id
        world.append(ONE, 0, b"of the third")
        doomed = {name for name in files.listdir("/data") if name.endswith("-delete")}
        assert doomed <= {f"one-0.{each.hex()}-delete" for each in (first, second)}

    run(script, files)


def test_what_an_earlier_process_meant_to_remove_is_removed(run: Run) -> None:
    files = MemoryFiles()
    files.mkdir("/data/gone-0.00-delete")
    files.write("/data/gone-0.00-delete/00000000000000000000.log", b"x")

    async def script(world: World) -> None:
        while files.exists("/data/gone-0.00-delete"):
            await asyncio.sleep(0.001)

    run(script, files)


def test_a_closed_disk_is_found_again_with_all_it_knew(run: Run) -> None:
    files = MemoryFiles()
    producer = ProducerEntry(
        ProducerId(5), ProducerEpoch(0), Sequence(0), Offset(0), 0, WallMillis(1000)
    )
    snapshot = ProducerSnapshot(Offset(2), (producer,))

    async def script(world: World) -> None:
        await world.open(ONE)
        world.append(ONE, 0, b"a", b"b")
        world.disk.save_epochs(SaveEpochs(ONE, (EpochEntry(EPOCH, Offset(0)),)))
        world.disk.save_producers(SaveProducers(ONE, snapshot))
        world.disk.save_high_watermarks(SaveHighWatermarks(((ONE, Offset(2)),)))
        world.disk.advance_start(AdvanceStart(ONE, Offset(1)))
        assert await world.event(StartMoved) == StartMoved(ONE, ID, Offset(1))
        assert await world.disk.close() == ("/data",)

    run(script, files)
    files.crash(lambda n: 0)

    async def again(world: World) -> None:
        opened = await world.open(ONE)
        assert (opened.start_offset, opened.end_offset, opened.high_watermark) == (1, 2, 2)
        assert [entry.epoch for entry in opened.epochs] == [EPOCH]
        assert opened.producers == snapshot

    run(again, files, clean=True)


def test_a_log_that_cannot_be_flushed_at_the_end_is_not_called_clean(run: Run) -> None:
    files = MemoryFiles()

    async def script(world: World) -> None:
        await world.open(ONE)
        world.append(ONE, 0, b"a")
        files.fail("sync", "one-0", times=10)
        assert not await world.disk.close()
        assert any("one-0 could not be closed" in line for line in world.said)

    run(script, files)


def test_flush_ms_flushes_without_being_asked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cotidal.broker.flushing.SWEEP_S", 0.01)
    files = MemoryFiles()

    async def script(world: World) -> None:
        await world.open(ONE, flush_ms="20")
        world.append(ONE, 0, b"a")
        (lane,) = world.disk._lanes.values()
        assert lane.log is not None
        while lane.log.recovery_point < 1:
            await asyncio.sleep(0.005)

    run(script, files)
    files.crash(lambda n: 0)

    async def again(world: World) -> None:
        assert (await world.open(ONE)).end_offset == 1

    run(again, files)


def test_closed_segment_counts_as_flushed_also_while_its_producers_are_saved(run: Run) -> None:
    async def script(world: World) -> None:
        await world.open(ONE, segment_bytes="200")
        for offset in range(3):
            world.append(ONE, offset, b"x" * 100)
            snapshot = ProducerSnapshot(Offset(offset + 1), ())
            world.disk.save_producers(SaveProducers(ONE, snapshot))
        while world.disk.jobs:
            await asyncio.sleep(0.001)
        log = world.disk._lanes[ONE].log
        assert log is not None
        assert log.recovery_point >= 2

    run(script)


def test_settings_of_an_open_log_change_at_once(run: Run) -> None:
    async def script(world: World) -> None:
        await world.open(ONE)
        world.disk.configure_log(ConfigureLog(ONE, {"segment.bytes": "200"}))
        for offset in range(3):
            world.append(ONE, offset, b"x" * 100)
        rolled = [event.rolled for event in world.events if isinstance(event, Appended)]
        assert rolled == [False, True, True]

    run(script)


def test_truncation_times_sizes_and_retention_are_answered(run: Run) -> None:
    async def script(world: World) -> None:
        await world.open(ONE, segment_bytes="200", retention_bytes="200", retention_ms="-1")
        for offset in range(5):
            world.append(ONE, offset, b"x" * 100)
        world.events.clear()
        world.disk.find_time(FindTime(ReadToken(1), ONE, WallMillis(500), Offset(5)))
        assert (await world.event(TimeFound)).found == Found(Offset(0), WallMillis(1000), EPOCH)
        world.disk.find_time(FindTime(ReadToken(2), ONE, WallMillis(9999), Offset(5)))
        assert (await world.event(TimeFound)).found is None
        world.disk.truncate_to(TruncateTo(ONE, Offset(4)))
        assert (await world.event(LogOpened)).end_offset == 4
        world.disk.retain(Retain(ONE, Offset(4)))
        assert (await world.event(StartMoved)).start_offset > 0
        world.disk.measure_logs(MeasureLogs(ReadToken(3)))
        (measured,) = (await world.event(LogsMeasured)).directories
        assert [partition for partition, _ in measured.sizes] == [ONE]
        assert measured.sizes[0][1] > 0

    run(script)


def test_a_log_that_starts_over_begins_where_it_is_told_also_after_a_crash(run: Run) -> None:
    async def before(world: World) -> None:
        await world.open(ONE)
        for offset in range(5):
            world.append(ONE, offset, b"old")
        world.disk.start_over(StartOver(ONE, Offset(100)))
        opened = await world.event(LogOpened)
        assert (opened.start_offset, opened.end_offset, opened.epochs) == (100, 100, ())
        world.append(ONE, 100, b"new")

    files = MemoryFiles()
    run(before, files)
    files.crash()

    async def after(world: World) -> None:
        opened = await world.open(ONE)
        assert (opened.start_offset, opened.end_offset) == (100, 101)

    run(after, files)


def test_a_cut_log_does_not_claim_that_what_comes_next_is_on_the_disk(run: Run) -> None:
    files = MemoryFiles()

    async def written(world: World) -> None:
        await world.open(ONE)
        for offset in range(5):
            world.append(ONE, offset, b"old")
        await world.disk.close()

    async def cut(world: World) -> None:
        await world.open(ONE)
        world.disk.truncate_to(TruncateTo(ONE, Offset(2)))
        await world.event(LogOpened)
        path = "/data/recovery-point-offset-checkpoint"
        while b"one 0 2" not in files.read(path):
            await asyncio.sleep(0.001)

    run(written, files)
    run(cut, files)


def test_an_append_time_is_stamped_and_told(run: Run) -> None:
    async def script(world: World) -> None:
        await world.open(ONE)
        world.disk.obeys()[Append](Append(ONE, (placed(0, b"a"),), True))
        (appended,) = world.events
        world.events.clear()
        world.read(1, want(ONE, 0, 1))
        (header,) = read_batches(world.events[0].results[0]).headers
        assert header.has_log_append_time
        assert header.max_timestamp == appended.append_time > 1_600_000_000_000

    run(script)
