"""A simulated node's disk: obeys what it asks of its logs, with real logs on files in memory.

The twin of broker/disk.py. Each log has a lane (lane.py); the metadata log is metadata_log.py. A
log that fails goes offline (LogFailed); a failure of the metadata log ends the process.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial
from typing import Any, Final

from cotidal.core.machine import Entropy
from cotidal.errors import ErrorCode
from cotidal.log import cleaning, key_map
from cotidal.log.contract import LogConfig, Opened, log_config
from cotidal.log.failure import (
    CorruptLog,
    LogError,
    LogOffline,
    NotOpen,
    OutOfRange,
    WrongTopic,
)
from cotidal.log.leftovers import DOOMED, leftover_name, put_aside, strays
from cotidal.log.log import Log
from cotidal.log.memory import FOREVER, OPERATIONS, MemoryFiles
from cotidal.log.metadata_store import METADATA_PARTITION, MetadataStore
from cotidal.messages.producers import AbortedTransaction, ProducerSnapshot
from cotidal.node import effects as fx
from cotidal.node.events import (
    Appended,
    Event,
    LogFailed,
    LogOpened,
    LogsMeasured,
    LogsMoved,
    MeasuredDirectory,
    ReadDone,
    StartMoved,
    TimeFound,
)
from cotidal.sim.agenda import MS, SECOND, Agenda
from cotidal.sim.checkpoints import Checkpoints
from cotidal.sim.lane import NEVER, Hands, Lane, Speed
from cotidal.sim.metadata_log import Cut, MetadataLog
from cotidal.values import NO_TIMESTAMP, Offset, TopicPartition, Uuid, WallMillis

_new: Final = tuple.__new__

DATA: Final = "/data"
CHECKPOINT_US: Final = 60 * SECOND
COMPACTION_US: Final = 400 * MS
"""A compaction takes up to this long: time for its log to be written, cut or deleted."""
METADATA_SEGMENT_BYTES: Final = 64 * 1024


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


class Disk:
    """All logs of one process."""

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
        self._files = files
        self._directory_id = directory_id
        self._clean = clean
        self._hands = Hands(agenda, entropy, speed, post=post, run=run, wall=wall)
        self.lanes: dict[TopicPartition, Lane] = {}
        self.on_cut: Cut = _nobody
        self.on_compacted: Callable[[TopicPartition, bool], None] = _unmoved
        """Told of the end of every compaction: (partition, its work is in place)."""
        files.mkdir(DATA)
        self._checkpoints = Checkpoints(files, DATA)
        self._remove_leftovers()
        self.metadata = MetadataStore(
            files,
            DATA,
            LogConfig(segment_bytes=METADATA_SEGMENT_BYTES),
            clean=clean,
            now_wall=wall(),
        )
        self._metadata_log = MetadataLog(
            self.metadata,
            self._hands,
            on_broken=on_broken,
            on_cut=lambda partition, end: self.on_cut(partition, end),
        )
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
            fx.SaveAborted: self.save_aborted,
            fx.SaveHighWatermarks: self.save_high_watermarks,
            fx.MeasureLogs: self.measure_logs,
            fx.MoveLogs: self.move_logs,
            fx.PaceMoves: _at_no_pace,
            fx.PutStraysAside: self.put_strays_aside,
            **self._metadata_log.obeys(),
        }

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
            now = self._hands.wall()
            try:
                written = log.append(effect.entries, now, stamp_time=effect.stamp_time)
                if must_flush:
                    log.flush()
            except LogError as error:
                return (_failed(lane, error),)
            if written.rolled:
                self._hands.later(self._hands.took(sync=True), self._flush_beside, lane)
            stamp = now if effect.stamp_time else NO_TIMESTAMP
            end, rolled = written
            return (_new(Appended, (lane.partition, lane.topic_id, end, stamp, rolled)),)

        lane.run(work, self._hands.took(sync=must_flush))

    def _flush_beside(self, lane: Lane) -> None:
        if lane.log is not None and not lane.busy and self.lanes.get(lane.partition) is lane:
            try:
                lane.log.flush()
            except LogError as error:
                self._hands.post(_failed(lane, error))

    def read(self, effect: fx.Read) -> None:
        self._read_on(effect, [], effect.max_bytes)

    def _aborted(
        self, effect: fx.Read, results: list[bytes | memoryview | str]
    ) -> tuple[tuple[AbortedTransaction, ...], ...]:
        """What goes with the results."""
        found: list[tuple[AbortedTransaction, ...]] = []
        for want, result in zip(effect.wants, results, strict=True):
            lane = self._lane_to_read(want.partition)
            log = None if lane is None or isinstance(result, str) or not result else lane.log
            found.append(() if log is None else log.aborted_beside(want.offset, want.below))
        return tuple(found)

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
                if not isinstance(error, OutOfRange) and lane is not self._metadata_log.lane:
                    self._hands.post(_failed(lane, error))
                results.append(str(error))
                continue
            results.append(data)
            left -= len(data)
        aborted = self._aborted(effect, results) if effect.committed else ()
        event = _new(ReadDone, (effect.token, tuple(results), aborted))
        took = self._hands.took()
        if took:
            self._hands.later(took, self._hands.post, event)
        else:
            self._hands.post(event)

    def _lane_to_read(self, partition: TopicPartition) -> Lane | None:
        if partition == METADATA_PARTITION:
            return self._metadata_log.lane
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

        lane.when_free(lambda: lane.run(work, self._hands.took()))

    # A log's life

    def open_log(self, effect: fx.OpenLog) -> None:
        partition = effect.partition
        before = self.lanes.get(partition)
        if before is not None and before.busy:  # a log of that name is still being put away
            before.when_free(lambda: self.open_log(effect))
            return
        lane = self.lanes[partition] = Lane(self._hands, partition, effect.topic_id)
        lane.flush_messages = int(effect.settings.get("flush.messages", NEVER))
        if not self._files.exists(f"{DATA}/{partition}"):
            self._checkpoints.forget(partition)  # of a deleted topic of this name, after a crash

        def work() -> tuple[Event, ...]:
            point = self._checkpoints.recovery_points.get(partition, Offset(0))
            start = self._checkpoints.log_starts.get(partition, Offset(0))
            cleaned = self._checkpoints.cleaned_to.get(partition, Offset(0))
            try:
                try:
                    lane.log = self._open(effect, point, start, cleaned)
                except WrongTopic:  # a crash came between a deletion and its renaming
                    put_aside(self._files, DATA, partition)
                    lane.log = self._open(effect, Offset(0), Offset(0), Offset(0))
            except (LogError, OSError) as error:
                return (_failed(lane, error),)
            told = self._opened(lane, lane.log.opened)
            lane.log.forget_headers()
            return told

        lane.run(work, self._hands.took(sync=True))

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
            now_wall=self._hands.wall(),
        )

    def _opened(self, lane: Lane, opened: Opened) -> tuple[Event, ...]:
        return (
            LogOpened(
                lane.partition,
                lane.topic_id,
                opened.start_offset,
                opened.end_offset,
                self._checkpoints.high_watermarks.get(lane.partition, Offset(0)),
                opened.epochs,
                opened.producer_snapshot,
                opened.headers_after,
                self._directory_id,
                opened.markers,
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
            self._checkpoints.save_logs(self.logs())
            return self._opened(lane, opened)

        self._slow(lane, work)

    def advance_start(self, effect: fx.AdvanceStart) -> None:
        lane = self.lanes[effect.partition]

        def work(log: Log) -> tuple[Event, ...]:
            start = log.advance_start(effect.offset, self._hands.wall()).start_offset
            self._checkpoints.save_logs(self.logs())
            return (StartMoved(lane.partition, lane.topic_id, start),)

        self._slow(lane, work)

    def retain(self, effect: fx.Retain) -> None:
        lane = self.lanes[effect.partition]
        if lane.busy or lane.log is None:
            return  # there is another look at it in a while

        def work(log: Log) -> tuple[Event, ...]:
            before = log.start_offset
            start = log.retain(self._hands.wall(), below=effect.below).start_offset
            moved = StartMoved(lane.partition, lane.topic_id, start)
            return () if start == before else (moved,)

        self._slow(lane, work)

    def compact(self, effect: fx.Compact) -> None:
        """Beside the log, as in the real one: until it is put in place anything may happen."""
        for asked in effect.logs:
            lane = self.lanes.get(asked.partition)
            if lane is None or lane.busy or lane.compacting or lane.log is None:
                continue
            now = self._hands.wall()
            try:
                plan = lane.log.begin_cleaning(now, below=asked.below, producers=asked.producers)
                if plan is None:
                    lane.log.sweep(now)
                    continue
                keys_max = key_map.capacity(effect.key_bytes)
                cleaned = cleaning.run(plan, keys_max=keys_max, now_wall=now, breathe=_breathe)
            except CorruptLog as error:
                self._hands.post(_failed(lane, error))
                continue
            except (LogError, OSError):
                continue  # the log is as good as before
            lane.compacting = True
            took = self._hands.took_within(COMPACTION_US)
            self._hands.later(took, self._end_compaction, lane, plan, cleaned)

    def _end_compaction(
        self, lane: Lane, plan: cleaning.Cleaning, cleaned: cleaning.Cleaned
    ) -> None:
        lane.compacting = False
        if self.lanes.get(lane.partition) is not lane:
            return

        def work(log: Log) -> tuple[Event, ...]:
            done = log.end_cleaning(plan, cleaned, self._hands.wall())
            self.on_compacted(lane.partition, done is not None)
            self._checkpoints.save_logs(self.logs())
            return ()

        self._slow(lane, work)

    def delete_log(self, effect: fx.DeleteLog) -> None:
        lane = self.lanes.get(effect.partition)
        if lane is not None:
            lane.when_free(lambda: self._delete(lane))

    def _delete(self, lane: Lane) -> None:
        partition = lane.partition
        doomed = f"{DATA}/{leftover_name(partition, lane.topic_id, DOOMED)}"
        if lane.log is not None:
            lane.log.let_go()
        lane.log = None
        del self.lanes[partition]
        self._checkpoints.forget(partition)
        try:
            if self._files.exists(f"{DATA}/{partition}"):
                self._files.rename(f"{DATA}/{partition}", doomed)
                self._files.sync_directory(DATA)
                self._hands.later(SECOND, self._remove, doomed)
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

    def put_strays_aside(self, _: fx.PutStraysAside) -> None:
        try:
            for partition in strays(self._files, DATA, self.lanes):
                put_aside(self._files, DATA, partition)
                self._checkpoints.forget(partition)
        except OSError:
            pass  # the next process tries again

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

    def save_aborted(self, effect: fx.SaveAborted) -> None:
        def work(log: Log) -> tuple[Event, ...]:
            log.save_aborted(effect.transactions)
            return ()

        self._slow(self.lanes[effect.partition], work)

    def save_high_watermarks(self, effect: fx.SaveHighWatermarks) -> None:
        self._checkpoints.save_high_watermarks(effect.watermarks)

    def measure_logs(self, effect: fx.MeasureLogs) -> None:
        sizes = tuple((partition, log.size_bytes) for partition, log in self.logs())
        measured = MeasuredDirectory(DATA, None, sizes, 1 << 40, 1 << 39)
        self._hands.post(LogsMeasured(effect.token, (measured,)))

    def move_logs(self, effect: fx.MoveLogs) -> None:
        """There is one directory, and every log is in it."""
        errors = tuple(
            ErrorCode.LOG_DIR_NOT_FOUND
            if path != DATA
            else ErrorCode.NONE
            if partition in self.lanes
            else ErrorCode.REPLICA_NOT_AVAILABLE
            for path, partition in effect.moves
        )
        self._hands.post(LogsMoved(effect.token, errors))

    # Order, time and failure

    def _slow(self, lane: Lane, work: Callable[[Log], tuple[Event, ...]]) -> None:
        def guarded() -> tuple[Event, ...]:
            if lane.log is None:
                return (_failed(lane, NotOpen(lane.partition)),)
            try:
                return work(lane.log)
            except (LogError, OSError) as error:
                return (_failed(lane, error),)

        lane.when_free(lambda: lane.run(guarded, self._hands.took(sync=True)))

    def logs(self) -> Iterator[tuple[TopicPartition, Log]]:
        for partition, lane in self.lanes.items():
            if lane.log is not None:
                yield partition, lane.log

    # Checkpoints

    def _on_checkpoint_due(self) -> None:
        if not self._hands.dead:
            self._checkpoints.save_logs(self.logs())
            self._agenda.after(CHECKPOINT_US, self._on_checkpoint_due)

    # The end

    def die(self) -> None:
        """Nothing more happens: the process is gone."""
        self._hands.dead = True

    def close(self) -> bool:
        """Everything to the disk. False if some log could not be: then nothing was clean."""
        clean = True
        for _, log in self.logs():
            try:
                log.close()
            except (LogError, OSError):
                clean = False
        self._checkpoints.save_logs(self.logs())
        try:
            self.metadata.close()
        except (LogError, OSError):
            clean = False
        self.die()
        return clean


def _failed(lane: Lane, error: LogError | OSError) -> LogFailed:
    if isinstance(error, OSError):
        error = LogOffline(f"{lane.partition}: {error.strerror or error}")
    damaged_at = error.offset if isinstance(error, CorruptLog) else None
    return LogFailed(lane.partition, lane.topic_id, str(error), damaged_at)


def _nobody(partition: TopicPartition, end_offset: Offset) -> None:
    return None


def _unmoved(partition: TopicPartition, done: bool) -> None:
    return None


def _breathe(size_bytes: int) -> None:
    return None


def _at_no_pace(effect: fx.PaceMoves) -> None:
    """There is nothing to be moved."""
