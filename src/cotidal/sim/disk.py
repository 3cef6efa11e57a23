"""A simulated node's disk: obeys what it asks of its logs, with real logs on files in memory.

The twin of broker/disk.py. Each log has a lane: what is asked of it is done in order, each job
taking its time; others go on. A job does its work when it begins, and is told when it ends, so a
crash in between finds it done and not told; one that waits behind it is not done at all. A job
that takes no time is done and told within the turn, as an append to the page cache is.

Failures of a log make it offline (LogFailed); a failure of the metadata log ends the process.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial
from typing import Any, Final, assert_never

from cotidal.core.machine import Entropy
from cotidal.core.quorum.log_view import SnapshotId
from cotidal.log import cleaning, key_map
from cotidal.log.checkpoint import (
    CLEANED_TO,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    decode_offsets,
    encode_offsets,
)
from cotidal.log.contract import LogConfig, Opened, log_config
from cotidal.log.failure import (
    CorruptLog,
    LogError,
    LogOffline,
    NotOpen,
    OutOfRange,
    WrongTopic,
)
from cotidal.log.log import Log
from cotidal.log.memory import FOREVER, OPERATIONS, MemoryFiles
from cotidal.log.metadata_snapshots import SnapshotKey, StoredSnapshot
from cotidal.log.metadata_store import METADATA_PARTITION, MetadataStore
from cotidal.messages.producers import ProducerSnapshot
from cotidal.messages.records.quorum import QuorumStateData
from cotidal.node import effects as fx
from cotidal.node.events import (
    Appended,
    Event,
    LogFailed,
    LogOpened,
    LogsMeasured,
    MeasuredDirectory,
    MetadataSnapshot,
    Persisted,
    ReadDone,
    SnapshotWritten,
    StartMoved,
    TimeFound,
)
from cotidal.sim.agenda import MS, SECOND, Agenda
from cotidal.values import NO_TIMESTAMP, Offset, TopicPartition, Uuid, WallMillis
from cotidal.wire.metadata_batch import encode_metadata_batch
from cotidal.wire.metadata_snapshot import encode_metadata_snapshot

DATA: Final = "/data"
NEVER: Final = (1 << 63) - 1
CHECKPOINT_US: Final = 60 * SECOND
COMPACTION_US: Final = 20 * MS
METADATA_SEGMENT_BYTES: Final = 64 * 1024
DOOMED: Final = "-delete"
STRAY: Final = "-stray"

Work = Callable[[], tuple[Event, ...]]


class DiskFault(Enum):
    """What a disk can do to the files of one directory, until it is mended."""

    FULL = "full"
    """Nothing more can be written; what is there can be read and removed."""
    IO_ERROR = "io-error"
    """Everything fails."""

    def strike(self, files: MemoryFiles, directory: str) -> None:
        """``directory``: of one log, or DATA for all of them and the metadata log."""
        failing = ("append", "write") if self is DiskFault.FULL else OPERATIONS
        error = errno.ENOSPC if self is DiskFault.FULL else errno.EIO
        for operation in failing:
            files.fail(operation, f"{directory}/", error=error, times=FOREVER)


class Speed:
    """How long the disk takes. Changed by faults."""

    __slots__ = ("slow_us", "sync_us")

    def __init__(self) -> None:
        self.slow_us = 2 * MS
        """One job in four takes up to this long; the others no time at all."""
        self.sync_us = 1 * MS
        """What is synced takes up to this long more."""


class Lane:
    """One log and the order of what is done to it."""

    __slots__ = ("_disk", "_waiting", "busy", "flush_messages", "log", "partition", "topic_id",
                 "unflushed")  # fmt: skip

    def __init__(self, disk: Disk, partition: TopicPartition, topic_id: Uuid) -> None:
        self._disk = disk
        self.partition = partition
        self.topic_id = topic_id
        self.log: Log | None = None
        self.flush_messages = NEVER
        self.unflushed = 0
        self.busy = False
        self._waiting: deque[Callable[[], None]] = deque()

    def when_free(self, begin: Callable[[], None]) -> None:
        if self.busy or self._waiting:
            self._waiting.append(begin)
        else:
            begin()

    def run(self, work: Work, took_us: int) -> None:
        """Do it now; told after ``took_us``."""
        events = work()
        if took_us == 0:
            for event in events:
                self._disk.post(event)
            return
        self.busy = True
        self._disk.later(took_us, self._end, events)

    def _end(self, events: tuple[Event, ...]) -> None:
        self.busy = False
        for event in events:
            self._disk.post(event)
        while self._waiting and not self.busy:
            self._waiting.popleft()()


class Disk:
    """All logs of one process. ``dead`` once the process is: then nothing more happens."""

    def __init__(
        self,
        agenda: Agenda,
        entropy: Entropy,
        files: MemoryFiles,
        speed: Speed,
        *,
        directory_id: Uuid,
        clean: bool,
        post: Callable[[Event], None],
        run: Callable[..., None],
        wall: Callable[[], WallMillis],
        on_broken: Callable[[str], None],
    ) -> None:
        """LogError if the metadata log cannot be opened."""
        self._agenda = agenda
        self._entropy = entropy
        self._files = files
        self._speed = speed
        self._directory_id = directory_id
        self._clean = clean
        self.post = post
        self._run = run
        self._wall = wall
        self._on_broken = on_broken
        self.dead = False
        self.lanes: dict[TopicPartition, Lane] = {}
        self.on_cut: Callable[[TopicPartition, Offset], None] = _nobody
        """Told of every truncation: (partition, the end that is left)."""
        self.on_compacted: Callable[[TopicPartition], None] = _unmoved
        """Told when compacted segments have taken their place."""
        files.mkdir(DATA)
        self._high_watermarks = self._read_offsets(HIGH_WATERMARKS)
        self._recovery_points = self._read_offsets(RECOVERY_POINTS)
        self._log_starts = self._read_offsets(LOG_STARTS)
        self._cleaned_to = self._read_offsets(CLEANED_TO)
        self._remove_leftovers()
        self.metadata = MetadataStore(
            files,
            DATA,
            LogConfig(segment_bytes=METADATA_SEGMENT_BYTES),
            clean=clean,
            now_wall=wall(),
        )
        self._metadata_lane = Lane(self, METADATA_PARTITION, Uuid(bytes(16)))
        self._metadata_lane.log = self.metadata.log
        self._agenda.after(CHECKPOINT_US, self._on_checkpoint_due)

    def obeys(self) -> dict[type, Callable[[Any], None]]:
        return {
            fx.OpenLog: self.open_log,
            fx.ConfigureLog: self.configure_log,
            fx.DeleteLog: self.delete_log,
            fx.Append: self.append,
            fx.Read: self.read,
            fx.FindTime: self.find_time,
            fx.TruncateTo: self.truncate_to,
            fx.StartOver: self.start_over,
            fx.AdvanceStart: self.advance_start,
            fx.Retain: self.retain,
            fx.Compact: self.compact,
            fx.SaveEpochs: self.save_epochs,
            fx.SaveProducers: self.save_producers,
            fx.SaveHighWatermarks: self.save_high_watermarks,
            fx.MeasureLogs: self.measure_logs,
            fx.Persist: self.persist,
            fx.WriteSnapshot: self.write_snapshot,
            fx.ReadSnapshot: self.read_snapshot,
            fx.KeepChunk: self.keep_chunk,
            fx.DropSnapshot: self.drop_snapshot,
        }

    def later(self, delay_us: int, do: Callable[..., None], *args: Any) -> None:
        self._agenda.after(delay_us, self._while_alive, do, args)

    def _while_alive(self, do: Callable[..., None], args: tuple[Any, ...]) -> None:
        if not self.dead:
            self._run(do, *args)

    def log_of(self, partition: TopicPartition) -> Log | None:
        lane = self.lanes.get(partition)
        return None if lane is None else lane.log

    # Appending and reading

    def append(self, effect: fx.Append) -> None:
        lane = self.lanes[effect.partition]
        lane.when_free(lambda: self._append(lane, effect))

    def _append(self, lane: Lane, effect: fx.Append) -> None:
        must_flush = False
        if lane.flush_messages != NEVER:
            lane.unflushed += sum(
                header.record_count for entry in effect.entries for header in entry.batches.headers
            )
            must_flush = lane.unflushed >= lane.flush_messages
            if must_flush:
                lane.unflushed = 0

        def work() -> tuple[Event, ...]:
            log = lane.log
            if log is None:
                return (_failed(lane, NotOpen(lane.partition)),)
            now = self._wall()
            try:
                written = log.append(effect.entries, now, stamp_time=effect.stamp_time)
                if must_flush:
                    log.flush()
            except LogError as error:
                return (_failed(lane, error),)
            if written.rolled:
                self.later(self._took(sync=True), self._flush_beside, lane)
            stamp = now if effect.stamp_time else NO_TIMESTAMP
            end, rolled = written
            return (Appended(lane.partition, lane.topic_id, end, stamp, rolled),)

        lane.run(work, self._took(sync=must_flush))

    def _flush_beside(self, lane: Lane) -> None:
        if lane.log is not None and not lane.busy and self.lanes.get(lane.partition) is lane:
            try:
                lane.log.flush()
            except LogError as error:
                self.post(_failed(lane, error))

    def read(self, effect: fx.Read) -> None:
        self._read_on(effect, [], effect.max_bytes)

    def _read_on(self, effect: fx.Read, results: list[bytes | memoryview | str], left: int) -> None:
        """Read what has no result yet; a log that is busy is waited for."""
        for want in effect.wants[len(results) :]:
            lane = self._lane_to_read(want.partition)
            if lane is not None and lane.busy:
                lane.when_free(partial(self._read_on, effect, results, left))
                return
            if lane is None or lane.log is None:
                results.append(f"{want.partition} has no open log on this node")
                continue
            found = left < effect.max_bytes
            if left <= 0 and found:
                results.append(b"")
                continue
            try:
                data = lane.log.read(
                    want.offset,
                    max_bytes=min(want.max_bytes, left),
                    below=want.below,
                    whole_first=not found,
                )
            except LogError as error:
                if not isinstance(error, OutOfRange) and lane is not self._metadata_lane:
                    self.post(_failed(lane, error))
                results.append(str(error))
                continue
            results.append(data)
            left -= len(data)
        event = ReadDone(effect.token, tuple(results))
        took = self._took()
        if took:
            self.later(took, self.post, event)
        else:
            self.post(event)

    def _lane_to_read(self, partition: TopicPartition) -> Lane | None:
        if partition == METADATA_PARTITION:
            return self._metadata_lane
        return self.lanes.get(partition)

    def find_time(self, effect: fx.FindTime) -> None:
        lane = self.lanes[effect.partition]

        def work() -> tuple[Event, ...]:
            found = None
            try:
                if lane.log is not None and effect.timestamp is None:
                    found = lane.log.max_timestamp(effect.below)
                elif lane.log is not None and effect.timestamp is not None:
                    found = lane.log.offset_for_time(effect.timestamp, below=effect.below)
            except (LogError, OSError) as error:
                return (_failed(lane, error), TimeFound(effect.token, None))
            told = None if found is None else fx.Found(*found)
            return (TimeFound(effect.token, told),)

        lane.when_free(lambda: lane.run(work, self._took()))

    # A log's life

    def open_log(self, effect: fx.OpenLog) -> None:
        partition = effect.partition
        before = self.lanes.get(partition)
        if before is not None and before.busy:  # a log of that name is still being put away
            before.when_free(lambda: self.open_log(effect))
            return
        lane = self.lanes[partition] = Lane(self, partition, effect.topic_id)
        lane.flush_messages = int(effect.settings.get("flush.messages", NEVER))
        if not self._files.exists(f"{DATA}/{partition}"):
            self._forget(partition)  # of a deleted topic of this name, after a crash

        def work() -> tuple[Event, ...]:
            point = self._recovery_points.get(partition, Offset(0))
            start = self._log_starts.get(partition, Offset(0))
            cleaned = self._cleaned_to.get(partition, Offset(0))
            try:
                try:
                    lane.log = self._open(effect, point, start, cleaned)
                except WrongTopic:  # a crash came between a deletion and its renaming
                    self._put_aside(partition, effect.topic_id)
                    lane.log = self._open(effect, Offset(0), Offset(0), Offset(0))
            except (LogError, OSError) as error:
                return (_failed(lane, error),)
            told = self._opened(lane, lane.log.opened)
            lane.log.forget_headers()
            return told

        lane.run(work, self._took(sync=True))

    def _open(
        self, effect: fx.OpenLog, recovery_point: Offset, log_start: Offset, cleaned_to: Offset
    ) -> Log:
        return Log.open(
            self._files,
            f"{DATA}/{effect.partition}",
            log_config(effect.settings),
            topic_id=effect.topic_id,
            clean=self._clean,
            recovery_point=recovery_point,
            log_start=log_start,
            cleaned_to=cleaned_to,
            now_wall=self._wall(),
        )

    def _put_aside(self, partition: TopicPartition, topic_id: Uuid) -> None:
        stray = f"{DATA}/{partition}.{topic_id.hex()}{STRAY}"
        self._files.rename(f"{DATA}/{partition}", stray)
        self._files.sync_directory(DATA)

    def _forget(self, partition: TopicPartition) -> None:
        for offsets in (
            self._high_watermarks,
            self._recovery_points,
            self._log_starts,
            self._cleaned_to,
        ):
            offsets.pop(partition, None)

    def _opened(self, lane: Lane, opened: Opened) -> tuple[Event, ...]:
        return (
            LogOpened(
                lane.partition,
                lane.topic_id,
                opened.start_offset,
                opened.end_offset,
                self._high_watermarks.get(lane.partition, Offset(0)),
                opened.epochs,
                opened.producer_snapshot,
                opened.headers_after,
                self._directory_id,
            ),
        )

    def configure_log(self, effect: fx.ConfigureLog) -> None:
        lane = self.lanes[effect.partition]

        def configure() -> None:
            lane.flush_messages = int(effect.settings.get("flush.messages", NEVER))
            if lane.log is not None:
                lane.log.configure(log_config(effect.settings))

        lane.when_free(configure)

    def truncate_to(self, effect: fx.TruncateTo) -> None:
        self._cut(effect.partition, lambda log: log.truncate_to(effect.offset))

    def start_over(self, effect: fx.StartOver) -> None:
        self._cut(effect.partition, lambda log: log.truncate_fully_and_start_at(effect.offset))

    def _cut(self, partition: TopicPartition, cut: Callable[[Log], Opened]) -> None:
        lane = self.lanes[partition]

        def work(log: Log) -> tuple[Event, ...]:
            opened = cut(log)
            self.on_cut(partition, opened.end_offset)
            # What is written next at these offsets is not on the disk yet.
            self._save_log_offsets()
            return self._opened(lane, opened)

        self._slow(lane, work)

    def advance_start(self, effect: fx.AdvanceStart) -> None:
        lane = self.lanes[effect.partition]

        def work(log: Log) -> tuple[Event, ...]:
            start = log.advance_start(effect.offset, self._wall()).start_offset
            self._save_log_offsets()
            return (StartMoved(lane.partition, lane.topic_id, start),)

        self._slow(lane, work)

    def retain(self, effect: fx.Retain) -> None:
        lane = self.lanes[effect.partition]
        if lane.busy or lane.log is None:
            return  # there is another look at it in a while

        def work(log: Log) -> tuple[Event, ...]:
            before = log.start_offset
            start = log.retain(self._wall(), below=effect.below).start_offset
            moved = StartMoved(lane.partition, lane.topic_id, start)
            return () if start == before else (moved,)

        self._slow(lane, work)

    def compact(self, effect: fx.Compact) -> None:
        """Beside the log, as in the real one: until it is put in place anything may happen."""
        for asked in effect.logs:
            lane = self.lanes.get(asked.partition)
            if lane is None or lane.busy or lane.log is None:
                continue
            now = self._wall()
            try:
                plan = lane.log.begin_cleaning(now, below=asked.below, producers=asked.producers)
                if plan is None:
                    lane.log.sweep(now)
                    continue
                keys_max = key_map.capacity(effect.key_bytes)
                cleaned = cleaning.run(plan, keys_max=keys_max, now_wall=now, breathe=_breathe)
            except CorruptLog as error:
                self.post(_failed(lane, error))
                continue
            except (LogError, OSError):
                continue  # the log is as good as before
            took = COMPACTION_US + self._took(sync=True)
            self.later(took, self._end_compaction, lane, plan, cleaned)

    def _end_compaction(
        self, lane: Lane, plan: cleaning.Cleaning, cleaned: cleaning.Cleaned
    ) -> None:
        if self.lanes.get(lane.partition) is not lane:
            return

        def work(log: Log) -> tuple[Event, ...]:
            if log.end_cleaning(plan, cleaned, self._wall()) is not None:
                self.on_compacted(lane.partition)
                self._save_log_offsets()
            return ()

        self._slow(lane, work)

    def delete_log(self, effect: fx.DeleteLog) -> None:
        lane = self.lanes.get(effect.partition)
        if lane is not None:
            lane.when_free(lambda: self._delete(lane))

    def _delete(self, lane: Lane) -> None:
        partition = lane.partition
        doomed = f"{DATA}/{partition}.{lane.topic_id.hex()}{DOOMED}"
        if lane.log is not None:
            try:
                lane.log.close()
            except (LogError, OSError):
                pass  # what cannot be flushed is about to be removed
        lane.log = None
        del self.lanes[partition]
        self._forget(partition)
        try:
            if self._files.exists(f"{DATA}/{partition}"):
                self._files.rename(f"{DATA}/{partition}", doomed)
                self._files.sync_directory(DATA)
                self.later(SECOND, self._remove, doomed)
        except OSError:
            pass  # it stays; a topic of that name puts it aside

    def _remove(self, directory: str) -> None:
        try:
            if self._files.exists(directory):
                for name in self._files.listdir(directory):
                    self._files.unlink(f"{directory}/{name}")
                self._files.rmdir(directory)
        except OSError:
            pass  # the next process tries again

    def _remove_leftovers(self) -> None:
        for name in self._files.listdir(DATA):
            if name.endswith(DOOMED):
                self._remove(f"{DATA}/{name}")

    # What the core wants remembered

    def save_epochs(self, effect: fx.SaveEpochs) -> None:
        def work(log: Log) -> tuple[Event, ...]:
            log.save_epochs(effect.epochs)
            return ()

        self._slow(self.lanes[effect.partition], work)

    def save_producers(self, effect: fx.SaveProducers) -> None:
        snapshot = effect.snapshot
        assert isinstance(snapshot, ProducerSnapshot)

        def work(log: Log) -> tuple[Event, ...]:
            log.save_producers(snapshot)
            return ()

        self._slow(self.lanes[effect.partition], work)

    def save_high_watermarks(self, effect: fx.SaveHighWatermarks) -> None:
        self._high_watermarks.update(effect.watermarks)
        self._write_offsets(HIGH_WATERMARKS, self._high_watermarks)

    def measure_logs(self, effect: fx.MeasureLogs) -> None:
        sizes = tuple((partition, log.size_bytes) for partition, log in self.logs())
        measured = MeasuredDirectory(DATA, None, sizes, 1 << 40, 1 << 39)
        self.post(LogsMeasured(effect.token, (measured,)))

    # The metadata log

    def persist(self, effect: fx.Persist) -> None:
        lane = self._metadata_lane
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
                steps.append(self.metadata.flush)
                unflushed = False
            steps += self._steps_of(write, installed)
        if unflushed:
            steps.append(self.metadata.flush)
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
            took = self._took(sync=True)
            if took:
                self.later(took, self._do_on, lane, steps, told, done)
                return
        # Never within the turn that asked: the real one has a thread of its own.
        self.later(1, lane._end, (told(),))

    def _steps_of(
        self, write: fx.Write, installed: list[MetadataSnapshot]
    ) -> tuple[Callable[[], None], ...]:
        store = self.metadata
        match write:
            case fx.MetadataBatch():
                data = encode_metadata_batch(
                    write.records,
                    base_offset=write.base_offset,
                    leader_epoch=write.leader_epoch,
                    control=write.control,
                    wall=write.wall,
                )
                return (lambda: store.append(data, write.leader_epoch, self._wall()),)
            case fx.FetchedMetadata(_, batches):
                return (lambda: store.append_fetched(batches, self._wall()),)
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
                return (lambda: store.clean(offset, self._wall()),)
            case _:
                assert_never(write)

    def _cut_metadata(self, offset: Offset) -> None:
        self.metadata.cut(offset)
        self.on_cut(METADATA_PARTITION, self.metadata.log.end_offset)

    def _replace_metadata(self, offset: Offset) -> None:
        self.metadata.start_at(offset)
        self.on_cut(METADATA_PARTITION, offset)

    def write_snapshot(self, effect: fx.WriteSnapshot) -> None:
        key = SnapshotKey(*effect.id)
        store = self.metadata
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
            lambda: sizes.append(store.finish_snapshot(key, self._wall())),
        ]
        lane = self._metadata_lane
        lane.when_free(
            lambda: self._do_all(lane, steps, lambda: SnapshotWritten(effect.id, sizes[0]))
        )

    def read_snapshot(self, effect: fx.ReadSnapshot) -> None:
        def work() -> tuple[Event, ...]:
            try:
                key = SnapshotKey(*effect.id)
                data = self.metadata.snapshots.piece(key, effect.position, effect.max_bytes)
            except OSError as error:
                return (ReadDone(effect.token, (str(error),)),)
            return (ReadDone(effect.token, (data,)),)

        lane = self._metadata_lane
        lane.when_free(lambda: lane.run(work, self._took()))

    def keep_chunk(self, effect: fx.KeepChunk) -> None:
        key = SnapshotKey(*effect.id)
        self._now_or_broken(
            lambda: self.metadata.snapshots.keep_piece(key, effect.position, effect.data)
        )

    def drop_snapshot(self, effect: fx.DropSnapshot) -> None:
        self._now_or_broken(lambda: self.metadata.snapshots.forget(SnapshotKey(*effect.id)))

    def _now_or_broken(self, do: Callable[[], None]) -> None:
        def work() -> tuple[Event, ...]:
            try:
                do()
            except (LogError, OSError) as error:
                self._on_broken(f"the metadata log cannot be written: {error}")
            return ()

        lane = self._metadata_lane
        lane.when_free(lambda: lane.run(work, self._took()))

    # Order, time and failure

    def _slow(self, lane: Lane, work: Callable[[Log], tuple[Event, ...]]) -> None:
        def guarded() -> tuple[Event, ...]:
            if lane.log is None:
                return (_failed(lane, NotOpen(lane.partition)),)
            try:
                return work(lane.log)
            except (LogError, OSError) as error:
                return (_failed(lane, error),)

        lane.when_free(lambda: lane.run(guarded, self._took(sync=True)))

    def _took(self, *, sync: bool = False) -> int:
        drawn = self._entropy.next_u64()
        if sync:
            return drawn % (self._speed.sync_us + self._speed.slow_us + 1)
        return 0 if drawn & 3 else (drawn >> 2) % (self._speed.slow_us + 1)

    def logs(self) -> Iterator[tuple[TopicPartition, Log]]:
        for partition, lane in self.lanes.items():
            if lane.log is not None:
                yield partition, lane.log

    # Checkpoints

    def _on_checkpoint_due(self) -> None:
        if not self.dead:
            self._save_log_offsets()
            self._agenda.after(CHECKPOINT_US, self._on_checkpoint_due)

    def _save_log_offsets(self) -> None:
        for partition, log in self.logs():
            self._recovery_points[partition] = log.recovery_point
            self._log_starts[partition] = log.start_offset
            self._cleaned_to[partition] = log.cleaned_to
        self._write_offsets(CLEANED_TO, self._cleaned_to)
        self._write_offsets(RECOVERY_POINTS, self._recovery_points)
        self._write_offsets(LOG_STARTS, self._log_starts)

    def _read_offsets(self, name: str) -> dict[TopicPartition, Offset]:
        try:
            return decode_offsets(self._files.read(f"{DATA}/{name}"), name)
        except (OSError, ValueError):
            return {}  # counts as empty: recovery then looks at everything

    def _write_offsets(self, name: str, offsets: dict[TopicPartition, Offset]) -> None:
        try:
            self._files.write(f"{DATA}/{name}", encode_offsets(offsets))
        except OSError:
            pass  # the next one tries again

    # The end

    def close(self) -> bool:
        """Everything to the disk. False if some log could not be: then nothing was clean."""
        clean = True
        for _, log in self.logs():
            try:
                log.close()
            except (LogError, OSError):
                clean = False
        self._save_log_offsets()
        try:
            self.metadata.close()
        except (LogError, OSError):
            clean = False
        self.dead = True
        return clean


def snapshot_told(stored: StoredSnapshot) -> MetadataSnapshot:
    batches = tuple(fx.MetadataBatch(*batch) for batch in stored.batches)
    return MetadataSnapshot(SnapshotId(*stored.key), stored.size_bytes, batches)


def _failed(lane: Lane, error: LogError | OSError) -> LogFailed:
    if isinstance(error, OSError):
        error = LogOffline(f"{lane.partition}: {error.strerror or error}")
    damaged_at = error.offset if isinstance(error, CorruptLog) else None
    return LogFailed(lane.partition, lane.topic_id, str(error), damaged_at)


def _nobody(partition: TopicPartition, end_offset: Offset) -> None:
    return None


def _unmoved(partition: TopicPartition) -> None:
    return None


def _breathe(size_bytes: int) -> None:
    return None
