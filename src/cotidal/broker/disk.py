"""Obeys what a node asks of its partitions' logs.

  on the loop      appends, reads: a system call into the page cache, 10 us to 0.4 ms
  in a worker      opening and recovery, flushes, truncation, retention, time look-ups,
                   checkpoints, removal; large appends while the disk is behind; cold reads
  beside the log   compaction, until it is time to put its work in place (compacting.py); copying it
                   to another directory (moving.py)

A disk that fails takes that one log offline (LogFailed), or all in its directory: directory.py says
which. See lane.py for the order of what is done to a log, appending.py and reading.py for the two
that everything waits for, metadata_log.py for the log that must never fail.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from cotidal.broker.appending import Appending
from cotidal.broker.compacting import Compacting
from cotidal.broker.counters import Counters
from cotidal.broker.directory import Directories, Directory, LogDir, Missing
from cotidal.broker.driver import wall_millis
from cotidal.broker.flushing import Flushing
from cotidal.broker.journal import Journal
from cotidal.broker.lane import Lane
from cotidal.broker.moving import Moving, future_name
from cotidal.broker.reading import Reading
from cotidal.broker.worker import Done, Failed, Outcome, Worker
from cotidal.limits import UNSENT_BYTES_MAX
from cotidal.log.contract import Opened, Retained, log_config
from cotidal.log.failure import CorruptLog, LogError, LogOffline, NotOpen, WrongTopic
from cotidal.log.filesystem import FileSystem
from cotidal.log.log import Log
from cotidal.messages.producers import ProducerSnapshot
from cotidal.node.effects import (
    AdvanceStart,
    Append,
    Compact,
    ConfigureLog,
    DeleteLog,
    FindTime,
    Found,
    MeasureLogs,
    MoveLogs,
    OpenLog,
    PaceMoves,
    PutStraysAside,
    Read,
    Retain,
    SaveAborted,
    SaveEpochs,
    SaveHighWatermarks,
    SaveProducers,
    StartOver,
    TruncateTo,
)
from cotidal.node.events import (
    Event,
    LogFailed,
    LogOpened,
    LogsMeasured,
    MeasuredDirectory,
    StartMoved,
    TimeFound,
)
from cotidal.values import Offset, TopicPartition

T = TypeVar("T")

CLOSERS: Final = 16
"""Threads that close logs: the file system commits their fsyncs together."""


class Disk:
    """All partition logs of a node, in all its log directories."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        files: FileSystem,
        working: Sequence[LogDir],
        *,
        missing: Sequence[Missing] = (),
        metadata_path: str,
        checkpoint_ms: int,
        post: Callable[[Event], None],
        on_broken: Callable[[str], None],
        on_fault: Callable[[Exception], None],
        hold: Callable[[int], None],
        room: Callable[[], int] = lambda: UNSENT_BYTES_MAX,
        journal: Journal,
        counters: Counters,
    ) -> None:
        """``hold(n)``: so many bytes more (or fewer) of requests wait for this disk.

        ``room()``: how many bytes may be read for clients now. ``on_broken``: no directory works.
        """
        self._loop = loop
        self._files = files
        self._checkpoint_s = checkpoint_ms / 1000
        self._post = post
        self._on_fault = on_fault
        self._journal = journal
        self._counters = counters
        self._lanes: dict[TopicPartition, Lane] = {}
        self._writer = Worker(loop, "cotidal-writer", on_fault)
        """Large appends and flushes: what a client may be waiting for."""
        self._keeper = Worker(loop, "cotidal-keeper", on_fault)
        """Everything that may take its time."""
        self._directories = Directories(
            loop,
            files,
            working,
            missing=missing,
            metadata_path=metadata_path,
            worker=self._keeper,
            post=post,
            on_broken=on_broken,
            journal=journal,
        )
        self._flushing = Flushing(loop, self._keeper, self._lanes, self._fail)
        self._appending = Appending(
            loop,
            self._lanes,
            self._writer,
            self._flushing,
            post=post,
            hold=hold,
            failed=self._failed,
            counters=counters,
        )
        self._reading = Reading(
            loop,
            self._lanes,
            post=post,
            room=room,
            fail=self._fail,
            on_fault=on_fault,
        )
        self._compacting = Compacting(
            loop,
            self._lanes,
            slow=partial(self._slow, worker=self._keeper),
            fail=self._fail,
            put_in_place=self._on_compacted,
            journal=journal,
            counters=counters,
            on_fault=on_fault,
        )
        self._moving = Moving(
            loop,
            files,
            self._lanes,
            self._directories,
            keeper=self._keeper,
            post=post,
            failed=self._failed,
            save=self._save_offsets,
            journal=journal,
            on_fault=on_fault,
        )
        self._timer = loop.call_later(self._checkpoint_s, self._on_checkpoint_due)

    def obeys(self) -> dict[type, Callable[[Any], None]]:
        return {
            OpenLog: self.open_log,
            ConfigureLog: self.configure_log,
            DeleteLog: self.delete_log,
            Append: self._appending.append,
            Read: self._reading.read,
            FindTime: self.find_time,
            TruncateTo: self.truncate_to,
            StartOver: self.start_over,
            AdvanceStart: self.advance_start,
            Retain: self.retain,
            Compact: self._compacting.compact,
            SaveEpochs: self.save_epochs,
            SaveProducers: self.save_producers,
            SaveAborted: self.save_aborted,
            SaveHighWatermarks: self.save_high_watermarks,
            MeasureLogs: self.measure_logs,
            MoveLogs: self._moving.move_logs,
            PaceMoves: self._moving.pace_moves,
            PutStraysAside: self.put_strays_aside,
        }

    @property
    def partitions(self) -> int:
        return len(self._lanes)

    def sizes(self) -> dict[TopicPartition, int]:
        """Bytes of each log that is open."""
        return {partition: log.size_bytes for partition, log in self._logs()}

    @property
    def offline_directories(self) -> int:
        return self._directories.offline

    @property
    def offline_logs(self) -> int:
        return sum(lane.is_offline for lane in self._lanes.values())

    @property
    def jobs(self) -> int:
        return self._writer.waiting + self._keeper.waiting + self._reading.jobs

    # Looking up

    def find_time(self, effect: FindTime) -> None:
        lane = self._lanes[effect.partition]

        def find() -> Found | None:
            if lane.log is None:
                return None
            if effect.timestamp is None:
                found = lane.log.max_timestamp(effect.below)
            else:
                found = lane.log.offset_for_time(effect.timestamp, below=effect.below)
            return None if found is None else Found(*found)

        def told(outcome: Outcome[Found | None]) -> None:
            match outcome:
                case Done(found):
                    self._post(TimeFound(effect.token, found))
                case Failed(error):
                    self._failed(lane, error)
                    self._post(TimeFound(effect.token, None))

        self._in_order(lane, lambda: lane.run_in(self._keeper, find, told))

    # A log's life

    def open_log(self, effect: OpenLog) -> None:
        partition = effect.partition
        before = self._lanes.get(partition)
        if before is not None and before.busy:  # a log of that name is still being put away
            before.wait(partial(self.open_log, effect))
            return
        directory = self._directories.choose(partition, effect.directory)
        lane = self._lanes[partition] = Lane(partition, effect.topic_id, directory)
        lane.configure(effect.settings)
        if directory is None:
            self._fail(lane, LogOffline(f"{partition}: its log directory is offline"))
            return
        directory.logs += 1
        checkpoints = directory.checkpoints
        if not self._files.exists(f"{directory.path}/{partition}"):
            checkpoints.forget(partition)  # of a deleted topic of this name, after a crash
        point = checkpoints.recovery_points.get(partition, Offset(0))
        start = checkpoints.log_starts.get(partition, Offset(0))
        cleaned = checkpoints.cleaned_to.get(partition, Offset(0))

        def opened_as(recovery_point: Offset, log_start: Offset, cleaned_to: Offset) -> Log:
            return Log.open(
                self._files,
                f"{directory.path}/{partition}",
                log_config(effect.settings),
                topic_id=effect.topic_id,
                clean=directory.clean,
                recovery_point=recovery_point,
                log_start=log_start,
                cleaned_to=cleaned_to,
                now_wall=wall_millis(),
            )

        others = self._directories.others_with(partition, directory)

        def opening() -> Log:
            for other in others:
                why = f"{other.path}/{partition} is an older copy of the one in {directory.path}"
                other.removal.put_aside(partition, why)
            if not self._files.exists(f"{directory.path}/{partition}"):
                return opened_as(Offset(0), Offset(0), Offset(0))  # it was a stray a moment ago
            try:
                return opened_as(point, start, cleaned)
            except WrongTopic as wrong:  # a crash came between a deletion and its renaming
                directory.removal.put_aside(partition, str(wrong))
                return opened_as(Offset(0), Offset(0), Offset(0))

        def opened(outcome: Outcome[Log]) -> None:
            match outcome:
                case Done(log):
                    lane.log = log
                    self._tell_opened(lane, log.opened)
                    log.forget_headers()
                    self._moving.resume(lane)
                case Failed(error):
                    self._failed(lane, error)

        lane.run_in(self._keeper, opening, opened)

    def _tell_opened(self, lane: Lane, opened: Opened) -> None:
        for sentence in opened.repaired:
            self._journal.warning(sentence)
        directory = lane.directory
        assert directory is not None, "its log is open"
        self._post(
            LogOpened(
                lane.partition,
                lane.topic_id,
                opened.start_offset,
                opened.end_offset,
                directory.checkpoints.high_watermarks.get(lane.partition, Offset(0)),
                opened.epochs,
                opened.producer_snapshot,
                opened.headers_after,
                directory.id,
                opened.markers,
            )
        )

    def configure_log(self, effect: ConfigureLog) -> None:
        lane = self._lanes[effect.partition]

        def configure() -> None:
            lane.configure(effect.settings)
            if lane.log is not None:
                lane.log.configure(log_config(effect.settings))

        self._in_order(lane, configure)

    def truncate_to(self, effect: TruncateTo) -> None:
        lane = self._lanes[effect.partition]
        cut = partial(self._on_cut, lane)
        self._slow(lane, self._writer, lambda log: log.truncate_to(effect.offset), cut)

    def start_over(self, effect: StartOver) -> None:
        lane = self._lanes[effect.partition]
        cut = partial(self._on_cut, lane)
        at = effect.offset
        self._slow(lane, self._writer, lambda log: log.truncate_fully_and_start_at(at), cut)

    def _on_cut(self, lane: Lane, opened: Opened) -> None:
        self._moving.on_changed(lane)
        self._tell_opened(lane, opened)
        # What is written next at these offsets is not on the disk yet, whatever was there before.
        self._save_offsets(lane.directory)

    def advance_start(self, effect: AdvanceStart) -> None:
        lane = self._lanes[effect.partition]

        def moved(retained: Retained) -> None:
            self._post(StartMoved(lane.partition, lane.topic_id, retained.start_offset))
            self._save_offsets(lane.directory)

        self._slow(
            lane, self._keeper, lambda log: log.advance_start(effect.offset, wall_millis()), moved
        )

    def retain(self, effect: Retain) -> None:
        lane = self._lanes[effect.partition]
        if lane.busy or lane.log is None:
            return  # there is another look at it in a while
        before = lane.log.start_offset

        def retained(done: Retained) -> None:
            for sentence in done.removed:
                self._journal.info(sentence)
            if done.start_offset != before:
                self._post(StartMoved(lane.partition, lane.topic_id, done.start_offset))

        self._slow(
            lane, self._keeper, lambda log: log.retain(wall_millis(), below=effect.below), retained
        )

    def delete_log(self, effect: DeleteLog) -> None:
        lane = self._lanes.get(effect.partition)
        if lane is not None and lane.busy:
            # Whose turn it is then may be another log of that name, which waits here to be opened.
            lane.wait(partial(self.delete_log, effect))
        elif lane is not None and lane.topic_id == effect.topic_id:
            self._delete(lane)

    def _delete(self, lane: Lane) -> None:
        self._moving.cancel(lane.partition)
        delay_ms = lane.log.config.file_delete_delay_ms if lane.log is not None else 0
        directory = lane.directory
        if directory is None:
            del self._lanes[lane.partition]
            return
        directory.logs -= 1

        def put_away(outcome: Outcome[str]) -> None:
            lane.log = None
            del self._lanes[lane.partition]
            directory.checkpoints.forget(lane.partition)
            match outcome:
                case Done(doomed):
                    directory.removal.remove_later(doomed, delay_ms / 1000)
                case Failed(error):
                    self._journal.error(f"{lane.partition} could not be removed: {error}")

        put = partial(directory.removal.put_away, lane.partition, lane.topic_id, lane.log)
        lane.run_in(self._keeper, put, put_away)

    def put_strays_aside(self, _: PutStraysAside) -> None:
        """Whatever has no lane by now; one that is still being put away has."""
        copies = frozenset(future_name(lane) for lane in self._lanes.values())
        self._directories.put_strays_aside(frozenset(self._lanes), copies)

    # What the core wants remembered

    def save_epochs(self, effect: SaveEpochs) -> None:
        lane = self._lanes[effect.partition]
        self._slow(lane, self._writer, lambda log: log.save_epochs(effect.epochs), _ignore)

    def save_producers(self, effect: SaveProducers) -> None:
        snapshot = effect.snapshot
        assert isinstance(snapshot, ProducerSnapshot)
        lane = self._lanes[effect.partition]
        self._slow(lane, self._keeper, lambda log: log.save_producers(snapshot), _ignore)

    def save_aborted(self, effect: SaveAborted) -> None:
        lane = self._lanes[effect.partition]
        self._slow(lane, self._writer, lambda log: log.save_aborted(effect.transactions), _ignore)

    def save_high_watermarks(self, effect: SaveHighWatermarks) -> None:
        self._directories.save_high_watermarks(effect.watermarks, self._directory_of)

    def measure_logs(self, effect: MeasureLogs) -> None:
        measured = [
            directory.measured(
                tuple((p, log.size_bytes) for p, log in self._logs(directory)),
                self._moving.into(directory),
            )
            for directory in self._directories.all
        ]
        gone = [MeasuredDirectory(path, why, (), -1, -1) for path, why in self._directories.missing]
        self._post(LogsMeasured(effect.token, (*measured, *gone)))

    # Order and failure

    def _in_order(self, lane: Lane, work: Callable[[], None]) -> None:
        if lane.busy:
            lane.wait(work)
        else:
            work()

    def _slow(
        self, lane: Lane, worker: Worker, work: Callable[[Log], T], then: Callable[[T], None]
    ) -> None:
        """Run it in a worker when the log is free; what it raises fails the log."""

        def told(outcome: Outcome[T]) -> None:
            match outcome:
                case Done(value):
                    then(value)
                case Failed(error):
                    self._failed(lane, error)

        def begin() -> None:
            if lane.log is None:
                self._fail(lane, NotOpen(lane.partition))
            else:
                lane.run_in(worker, partial(work, lane.log), told)

        self._in_order(lane, begin)

    def _failed(self, lane: Lane, error: Exception) -> None:
        match error:
            case LogError():
                self._fail(lane, error)
            case OSError():
                self._fail(lane, LogOffline(f"{lane.partition}: {error.strerror or error}"))
            case _:
                raise error  # a fault of ours

    def _fail(self, lane: Lane, error: LogError) -> None:
        self._counters.log_failures += 1
        damaged_at = None
        if isinstance(error, CorruptLog):
            damaged_at = error.offset
        else:
            lane.failed = True
        if isinstance(error, LogOffline) and lane.directory is not None:
            self._directories.fail(lane.directory, str(error))
        self._post(LogFailed(lane.partition, lane.topic_id, str(error), damaged_at))

    def _logs(self, directory: Directory | None = None) -> Iterator[tuple[TopicPartition, Log]]:
        """Of one directory, or of all."""
        for partition, lane in self._lanes.items():
            if lane.log is not None and directory in (None, lane.directory):
                yield partition, lane.log

    def _directory_of(self, partition: TopicPartition) -> Directory | None:
        lane = self._lanes.get(partition)
        return None if lane is None else lane.directory

    def _save_offsets(self, directory: Directory | None) -> None:
        if directory is not None and directory.error is None:
            directory.checkpoints.save_offsets(self._logs(directory))

    def _on_compacted(self, lane: Lane) -> None:
        self._moving.on_changed(lane)
        self._save_offsets(lane.directory)

    def _on_checkpoint_due(self) -> None:
        for directory in self._directories.online:
            self._save_offsets(directory)
        self._timer = self._loop.call_later(self._checkpoint_s, self._on_checkpoint_due)

    # The end

    async def close(self) -> tuple[str, ...]:
        """Everything to the disk. The directories in which every log was closed in order."""
        self._stop_timers()
        self._compacting.stop()
        self._moving.stop()
        lanes = list(self._lanes.values())
        closers = [
            Worker(self._loop, f"cotidal-closer-{number}", self._on_fault)
            for number in range(min(CLOSERS, len(lanes)))
        ]
        closed: list[asyncio.Future[bool]] = []
        for number, lane in enumerate(lanes):
            closed.append(self._loop.create_future())
            closer = closers[number % CLOSERS]
            self._in_order(lane, partial(self._close_log, lane, closer, closed[-1]))
        dirty = {lane.directory for lane, each in zip(lanes, closed, strict=True) if not await each}
        for closer in closers:
            closer.stop()
        for directory in self._directories.online:
            self._save_offsets(directory)
        last: asyncio.Future[None] = self._loop.create_future()
        self._keeper.submit(_nothing, lambda _: last.set_result(None))
        await last
        self._reading.stop()
        self._writer.stop()
        self._keeper.stop()
        return tuple(each.path for each in self._directories.online if each not in dirty)

    def abandon(self) -> None:
        """As if the process had been killed: nothing is flushed or written down."""
        self._stop_timers()
        self._reading.stop()
        self._compacting.stop()
        self._moving.stop()
        self._writer.abandon()
        self._keeper.abandon()

    def _stop_timers(self) -> None:
        self._timer.cancel()
        self._flushing.stop()
        self._directories.stop()

    def _close_log(self, lane: Lane, closer: Worker, closed: asyncio.Future[bool]) -> None:
        log = lane.log
        if log is None:
            closed.set_result(not lane.failed)
            return

        def told(outcome: Outcome[Offset]) -> None:
            if isinstance(outcome, Failed):
                self._journal.error(f"{lane.partition} could not be closed: {outcome.error}")
            closed.set_result(isinstance(outcome, Done) and not lane.failed)

        lane.run_in(closer, log.close, told)


def _ignore(_: object) -> None:
    return None


def _nothing() -> None:
    return None
