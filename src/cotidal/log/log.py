"""One partition's log: segments in a directory, appended at the end, read anywhere.

  segments        ascending, the last one active; each begins where the one before it ends
  start_offset    the first offset that may be read; may lie inside the first segment
  end_offset      the next offset to be written
  recovery_point  everything below it is on the disk; it grows by flushing

Offsets, epochs and producers mean something only to the core, which owns them. The log stores the
values it is handed and gives them back when it is opened or truncated. One thread at a time; only
``Flush.run`` may run beside it.

A write or sync that the disk refuses takes the log offline for good: after a failed fsync nobody
knows what is on the disk, and only opening it again, with recovery, finds out. Reads go on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Final

from cotidal.log import times
from cotidal.log.catch_up import CatchUp
from cotidal.log.checkpoint import LEADER_EPOCHS, encode_epochs
from cotidal.log.cleaning import Cleaned, Cleaning, discard
from cotidal.log.compaction import cleanable
from cotidal.log.contract import Appended, Compacted, LogConfig, Opened, Retained, TimedOffset
from cotidal.log.doomed import DoomedFiles
from cotidal.log.epochs import EpochLine
from cotidal.log.failure import LogOffline, OutOfRange
from cotidal.log.filesystem import FileSystem
from cotidal.log.flush import Flush
from cotidal.log.pieces import Piece, keep, stamp
from cotidal.log.recovery import Loaded, Recovery
from cotidal.log.retention import expired_segments
from cotidal.log.roll import NEVER, RELATIVE_OFFSET_MAX, RollBounds, roll_bounds
from cotidal.log.row import SegmentRow
from cotidal.log.segment import Segment
from cotidal.log.snapshots import SnapshotFiles, batches_after, batches_before
from cotidal.log.swap import swap
from cotidal.messages.batch import Placed, Stretch
from cotidal.messages.producers import AbortedTransaction, ProducerSnapshot
from cotidal.values import EpochEntry, Offset, Uuid, WallMillis

__all__ = [
    "Appended",
    "Flush",
    "Log",
    "LogConfig",
    "Opened",
    "Retained",
    "TimedOffset",
]

FIRST_OFFSET: Final = Offset(0)


class Log:
    __slots__ = (
        "_active",
        "_catch_up",
        "_cleaned_to",
        "_config",
        "_doomed",
        "_end",
        "_epochs",
        "_filesystem",
        "_generation",
        "_names",
        "_names_synced",
        "_offline",
        "_recovery_point",
        "_roll",
        "_row",
        "_snapshots",
        "_start",
        "_unsaved_epochs",
        "_wall",
        "directory",
        "name",
        "opened",
    )

    @classmethod
    def open(
        cls,
        filesystem: FileSystem,
        directory: str,
        config: LogConfig,
        *,
        topic_id: Uuid,
        clean: bool,
        recovery_point: Offset = FIRST_OFFSET,
        log_start: Offset = FIRST_OFFSET,
        cleaned_to: Offset = FIRST_OFFSET,
        now_wall: WallMillis,
    ) -> Log:
        """Open the partition's directory, or make it. ``clean``: the process that wrote it last
        closed it. ``recovery_point``, ``log_start`` and ``cleaned_to``: from the log directory's
        checkpoints."""
        try:
            loaded = Recovery(
                filesystem,
                directory,
                index_interval_bytes=config.index_interval_bytes,
                cleaned_to=cleaned_to,
                now_wall=now_wall,
            ).run(
                topic_id=topic_id,
                clean=clean,
                recovery_point=recovery_point,
                log_start=log_start,
            )
            log = cls(filesystem, directory, config, loaded, recovery_point, log_start, now_wall)
            log._cleaned_to = Offset(min(cleaned_to, log.end_offset))
            return log
        except OSError as error:
            name = directory.rpartition("/")[2]
            raise LogOffline(f"{name}: could not be opened: {error.strerror or error}") from error

    def __init__(
        self,
        filesystem: FileSystem,
        directory: str,
        config: LogConfig,
        loaded: Loaded,
        recovery_point: Offset,
        log_start: Offset,
        now_wall: WallMillis,
    ) -> None:
        """``open`` is the way in."""
        self._filesystem = filesystem
        self.directory = directory
        self.name = directory.rpartition("/")[2]
        self._config = config
        self._row = SegmentRow(loaded.segments)
        self._catch_up = CatchUp(self._row)
        self._cleaned_to = FIRST_OFFSET
        self._end = loaded.end_offset
        self._epochs: EpochLine = loaded.epochs
        self._roll: RollBounds
        self._unsaved_epochs = loaded.epochs_changed
        self._snapshots = SnapshotFiles(filesystem, directory)
        self._doomed = DoomedFiles(filesystem)
        self._wall = now_wall
        self._names = 1
        self._names_synced = 0
        self._generation = 0
        self._offline: str | None = None
        repaired = loaded.repaired
        if loaded.segments and self._end < log_start:
            repaired += (f"{self.name}: ended at {self._end}, begun anew at its start {log_start}",)
            self._names += self._row.drop_from(0)
            self._epochs.clear()
        if len(self._row):
            self._active = self._row.segments[-1]
            self._roll = roll_bounds(self.name, self._active, self._config)
        else:
            self._begin_segment(log_start)
        self._start = Offset(max(log_start, self._row.bases[0]))
        self._epochs.truncate_start(self._start)
        self._recovery_point = Offset(min(recovery_point, self._end))
        self._drop_snapshots(min(self._end, loaded.snapshots_below))
        self.opened: Opened = self._describe(repaired)

    # what it holds

    @property
    def start_offset(self) -> Offset:
        return self._start

    @property
    def end_offset(self) -> Offset:
        return self._end

    @property
    def recovery_point(self) -> Offset:
        return self._recovery_point

    @property
    def cleaned_to(self) -> Offset:
        """Below it, no two records of closed segments have the same key."""
        return self._cleaned_to

    @property
    def epochs(self) -> tuple[EpochEntry, ...]:
        return self._epochs.entries

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._row.segments)

    @property
    def segment_bases(self) -> tuple[Offset, ...]:
        return tuple(segment.base_offset for segment in self._row.segments)

    @property
    def offline(self) -> str | None:
        """Why nothing can be written any more; None while all is well."""
        return self._offline

    @property
    def config(self) -> LogConfig:
        return self._config

    def configure(self, config: LogConfig) -> None:
        """Takes effect at once; segments that exist keep their shape."""
        self._config = config
        self._active.index_interval_bytes = config.index_interval_bytes
        self._roll = roll_bounds(self.name, self._active, self._config)

    def forget_headers(self) -> None:
        """Give the memory of ``opened`` back once the core has taken it in."""
        self.opened = self.opened._replace(headers_after=(), markers=())

    # writing

    def append(
        self, entries: Sequence[Placed], now_wall: WallMillis, *, stamp_time: bool = False
    ) -> Appended:
        """Write all entries at the end, with one system call for each segment they fall in.
        ``stamp_time``: the records take ``now_wall`` (message.timestamp.type=LogAppendTime)."""
        if self._offline is not None:
            raise LogOffline(self._offline)
        self._wall = now_wall
        pieces: list[Piece] = []
        end: int = self._end
        append_time = now_wall if stamp_time else None
        for placed in entries:
            if placed.base_offset is None:
                end = keep(placed, end, pieces)
            else:
                end = stamp(placed, end, pieces, append_time)
        rolled = False
        bounds = self._roll
        position = self._active.size
        buffers: list[bytes | memoryview] = []
        first = 0
        for number, (size, base, next_offset, timestamp, epoch, parts) in enumerate(pieces):
            if (
                position + size > bounds.size
                or next_offset > bounds.next_offset
                or timestamp > bounds.timestamp
                or now_wall > bounds.wall
            ) and (position > 0 or next_offset > bounds.next_offset):
                self._write(buffers, pieces[first:number])
                self._begin_next(next_offset)
                bounds = self._roll
                buffers, first, position, rolled = [], number, 0, True
            if epoch != self._epochs.latest:
                self._epochs.begin(epoch, Offset(base))
                self._unsaved_epochs = True
            buffers += parts
            position += size
        self._write(buffers, pieces[first:] if first else pieces)
        return tuple.__new__(Appended, (self._end, rolled))

    def roll(self, now_wall: WallMillis) -> None:
        """Begin another segment, unless nothing is in the active one."""
        self._check_online()
        self._wall = now_wall
        if self._active.size > 0:
            self._begin_next(self._end)

    def flush(self) -> Offset:
        """Everything to the disk. Returns the new recovery point."""
        flush = self.begin_flush()
        try:
            flush.run()
        except OSError as error:
            raise self.fail_flush(error) from error
        return self.end_flush(flush)

    def begin_flush(self) -> Flush:
        """What is to be synced for all that is in the log now. Then ``run`` it, here or in another
        thread, and call ``end_flush``, or ``fail_flush`` with the OSError."""
        self._check_online()
        try:
            if self._unsaved_epochs:
                self._write_epochs()
            dirty = [segment for segment in self._row.segments if not segment.synced]
            files = [file for segment in dirty for file in segment.files_to_sync()]
        except OSError as error:
            raise self._go_offline("flush", self.directory, error) from error
        stale = self._names_synced < self._names
        return Flush(
            self._filesystem,
            self._end,
            tuple((segment, segment.size) for segment in dirty),
            tuple(files),
            (self.directory, self.directory.rpartition("/")[0] or "/") if stale else (),
            self._names,
            self._generation,
        )

    def end_flush(self, flush: Flush) -> Offset:
        """The recovery point, moved up unless the log was cut in the meantime."""
        if flush.generation == self._generation:
            self._recovery_point = max(self._recovery_point, flush.end_offset)
            self._names_synced = max(self._names_synced, flush.names)
            for segment, size in flush.segments:
                segment.synced = segment.size == size
        return self._recovery_point

    def fail_flush(self, error: OSError) -> LogOffline:
        """The disk refused: the log is offline. Returns what to raise."""
        return self._go_offline("flush", self.directory, error)

    def close(self) -> Offset:
        """Flush, end the indexes as a clean shutdown leaves them, and let the files go. Returns
        the recovery point, which is the end. A log that is offline is let go as it is."""
        try:
            if self._offline is None:
                try:
                    self._active.seal()
                except OSError as error:
                    raise self._go_offline("close", self._active.path, error) from error
                self._active.synced = False
                self.flush()
                self._doomed.sweep(NEVER)
        finally:
            self.let_go()
        return self._recovery_point

    def let_go(self) -> None:
        """Let the files go as they are, unsynced: of a log that is about to be removed."""
        for segment in self._row.segments:
            segment.close()

    # what the core hands over to be kept

    def save_epochs(self, entries: Iterable[EpochEntry]) -> None:
        """Synced when this returns."""
        self._check_online()
        self._epochs = EpochLine(entries)
        try:
            self._write_epochs()
        except OSError as error:
            raise self._go_offline("write", LEADER_EPOCHS, error) from error

    def save_producers(self, snapshot: ProducerSnapshot) -> None:
        """The aborted transactions below it are synced first, as nobody will hand them over
        again once it is there."""
        self._check_online()
        assert snapshot.offset <= self._end
        try:
            unsynced = [each.aborted for each in self._row.segments if each.aborted.unsynced]
            for index in unsynced:
                index.sync()
            if unsynced:
                self._filesystem.sync_directory(self.directory)
            self._snapshots.save(snapshot)
            self._snapshots.drop_below(self._start)
        except OSError as error:
            raise self._go_offline("write a producer snapshot of", self.name, error) from error

    def save_aborted(self, transactions: Iterable[AbortedTransaction]) -> None:
        """In the order of their markers, which are in the log. Known ones are passed over."""
        self._check_online()
        try:
            for transaction in transactions:
                self._names += 1  # its file may be new
                segment = self._row.segments[self._row.number_of(transaction.last_offset)]
                segment.aborted.append((transaction,))
                segment.synced = False
        except OSError as error:
            raise self._go_offline("write the aborted transactions of", self.name, error) from error

    def aborted_between(self, first: Offset, below: Offset) -> tuple[AbortedTransaction, ...]:
        """The aborted transactions that a reader of ``first`` up to ``below`` must know."""
        return self._row.aborted_between(first, below)

    def aborted_beside(self, offset: Offset, below: Offset) -> tuple[AbortedTransaction, ...]:
        """Those that a reader must know who is given what ``read`` finds at ``offset``: a read ends
        with its segment."""
        number = self._row.number_of(offset)
        end = Offset(self._row.end_of(number, self._end))
        return self._row.aborted_between(offset, min(below, end))

    # reading

    def read(
        self, offset: Offset, *, max_bytes: int, below: Offset, whole_first: bool = True
    ) -> bytes | memoryview:
        """Whole batches from the one that holds ``offset`` on, all of whose offsets are less than
        ``below``, of at most ``max_bytes``; the first one however large if ``whole_first``. Ends
        with its segment: ask again for more. Empty when there is nothing."""
        data = self._read(offset, max_bytes, below, whole_first=whole_first, leave=False)
        assert isinstance(data, bytes | memoryview)
        return data

    def leave(
        self, offset: Offset, *, max_bytes: int, below: Offset, whole_first: bool = True
    ) -> bytes | memoryview | Stretch:
        """The same for one who only sends them on: where they are many, they may stay in their file
        until then."""
        return self._read(offset, max_bytes, below, whole_first=whole_first, leave=True)

    def _read(
        self, offset: Offset, max_bytes: int, below: Offset, *, whole_first: bool, leave: bool
    ) -> bytes | memoryview | Stretch:
        if offset >= self._end:
            if offset > self._end:
                raise OutOfRange(f"{self.name}: offset {offset} is past the end, {self._end}")
            return b""
        if offset < self._start:
            raise OutOfRange(f"{self.name}: offset {offset} is before the start, {self._start}")
        try:
            recent = self._active.read_recent(
                offset, max_bytes, below, whole_first=whole_first, leave=leave
            )
            if recent is not None:
                return recent
            return self._catch_up.read(
                offset,
                max_bytes,
                below,
                whole_first=whole_first,
                epochs=self._epochs,
                log_end=self._end,
                leave=leave,
            )
        except OSError as error:
            why = error.strerror or error
            raise LogOffline(f"{self.name}: could not read offset {offset}: {why}") from error

    def offset_for_time(self, timestamp: WallMillis, *, below: Offset) -> TimedOffset | None:
        """The first record from the start on that is at least as young as ``timestamp``."""
        return times.offset_for_time(self._row.segments, timestamp, self._start, below)

    def max_timestamp(self, below: Offset) -> TimedOffset | None:
        """The youngest record; the first one if there are several."""
        return times.max_timestamp(self._row.segments, self._start, below)

    def verify(self, from_offset: Offset | None = None) -> tuple[str, ...]:
        """Walk everything with crc, and say in a sentence each what is damaged."""
        first = self._start if from_offset is None else from_offset
        return self._row.damages(first, self._end)

    # cutting

    def truncate_to(self, offset: Offset) -> Opened:
        """Drop everything from ``offset`` on, and the whole batch that holds it."""
        self._check_online()
        if offset < self._row.bases[0]:
            return self.truncate_fully_and_start_at(offset)
        try:
            if offset < self._end:
                self._names += self._row.drop_from(self._row.number_of(offset) + 1)
                self._active = self._row.segments[-1]
                place = self._active.place_to_cut(offset)
                self._active.cut_at(place)
                self._end = Offset(place.offset)
                self._start = min(self._start, self._end)
                self._roll = roll_bounds(self.name, self._active, self._config)
                self._sync_cut()
            return self._after_cut(offset)
        except OSError as error:
            raise self._go_offline("truncate", self.name, error) from error

    def truncate_fully_and_start_at(self, offset: Offset) -> Opened:
        """Drop everything; the next offset is ``offset``."""
        self._check_online()
        try:
            self._names += self._row.drop_from(0)
            self._begin_segment(offset)
            self._start = offset
            self._sync_cut()
            return self._after_cut(Offset(0))
        except OSError as error:
            raise self._go_offline("truncate", self.name, error) from error

    def advance_start(self, offset: Offset, now_wall: WallMillis) -> Retained:
        """Nothing below ``offset`` is read any more; segments wholly below it go."""
        self._check_online()
        self._wall = now_wall
        assert offset <= self._end
        self._start = max(self._start, offset)
        try:
            return self._retire(self._row.number_of(self._start), ())
        except OSError as error:
            raise self._go_offline("remove segments of", self.name, error) from error

    def retain(self, now_wall: WallMillis, *, below: Offset) -> Retained:
        """Let go of segments by age, size and start offset, but of none that reaches past
        ``below``, the high watermark. Also unlinks the files of those that were let go of
        file.delete.delay.ms ago."""
        self._check_online()
        self._wall = now_wall
        expired = expired_segments(
            self._row.facts(self._end),
            start_offset=self._start,
            below=below,
            now_wall=now_wall,
            retention_ms=self._config.retention_ms,
            retention_bytes=self._config.retention_bytes,
        )
        try:
            if expired.segments == len(self._row):
                self._begin_next(self._end)
            self._start = max(self._start, self._row.segments[expired.segments].base_offset)
            retained = self._retire(expired.segments, expired.reasons)
            self._doomed.sweep(now_wall)
        except OSError as error:
            raise self._go_offline("remove segments of", self.name, error) from error
        return retained

    # compaction

    def begin_cleaning(
        self, now_wall: WallMillis, *, below: Offset, producers: frozenset[int] = frozenset()
    ) -> Cleaning | None:
        """What is worth compacting below ``below``, the high watermark; None if nothing is. Then
        ``cleaning.run`` it, here or in another thread, and call ``end_cleaning``.

        Only what is on the disk: an older record must not go for one that a power cut may take.
        """
        self._check_online()
        if not self._config.compacted:
            return None
        rules = self._config.compaction
        found = cleanable(
            self._row.facts(self._end, oldest=rules.max_lag_ms < NEVER),
            cleaned_to=self._cleaned_to,
            start_offset=self._start,
            below=min(below, self._recovery_point),
            now_wall=now_wall,
            rules=rules,
        )
        if found is None:
            return None
        end = Offset(found.end_offset)
        return Cleaning(
            self._filesystem,
            self.directory,
            tuple(self._row.facts(self._end)[: found.segments]),
            Offset(found.first_dirty),
            end,
            found.dirty_ratio,
            self.aborted_between(Offset(self._row.bases[0]), end),
            producers,
            self._config.segment_bytes,
            self._config.index_interval_bytes,
            rules.delete_retention_ms,
            self._generation,
        )

    def end_cleaning(
        self, cleaning: Cleaning, cleaned: Cleaned, now_wall: WallMillis
    ) -> Compacted | None:
        """Put what was made in its place. None if the log has been cut meanwhile, or its oldest
        segments are gone: then nothing happens."""
        self._check_online()
        self._wall = now_wall
        if not self.fits(cleaning):
            discard(cleaning)
            return None
        try:
            self._swap(cleaned)
            self._doomed.sweep(now_wall)
        except OSError as error:
            raise self._go_offline("compact", self.name, error) from error
        self._cleaned_to = cleaned.end_offset
        return Compacted(self._cleaned_to, f"{self.name}: {cleaned}")

    def fits(self, cleaning: Cleaning) -> bool:
        """Whether the log still has the segments that are cleaned."""
        bases = [each.base_offset for each in cleaning.sources]
        return cleaning.generation == self._generation and bases == self._row.bases[: len(bases)]

    def sweep(self, now_wall: WallMillis) -> None:
        """Unlink the files of segments that were let go of file.delete.delay.ms ago."""
        self._check_online()
        try:
            self._doomed.sweep(now_wall)
        except OSError as error:
            raise self._go_offline("remove segments of", self.name, error) from error

    def must_sweep(self, now_wall: WallMillis) -> bool:
        return self._doomed.are_due(now_wall)

    def _swap(self, cleaned: Cleaned) -> None:
        if not cleaned.segments:
            return
        new = [
            (self._segment(each.base_offset, each.size_bytes), each.replaces)
            for each in cleaned.segments
        ]
        for segment, _ in new:
            segment.synced = True
        old = swap(self._filesystem, self.directory, self._row, new)
        self._doomed.add(old, due=self._wall + self._config.file_delete_delay_ms)
        self._catch_up.forget()

    # inside

    def _write(self, buffers: list[bytes | memoryview], pieces: list[Piece]) -> None:
        if not pieces:
            return
        active = self._active
        empty = active.size == 0
        try:
            active.append(buffers)
            for size, _, next_offset, timestamp, _, _ in pieces:
                active.note(size, next_offset, timestamp)
        except OSError as error:
            offline = self._go_offline("append to", active.path + ".log", error)
            with contextlib.suppress(OSError):  # else recovery will cut it
                active.cut_back()
            raise offline from error
        self._end = Offset(next_offset)
        if empty or active.index_is_full(self._config.segment_index_bytes):
            self._roll = roll_bounds(self.name, self._active, self._config)

    def _begin_next(self, next_offset: int) -> None:
        """Close the active segment and begin another at the end of the log. An empty one that
        cannot hold the next offset, relative to its base, is replaced."""
        old = self._active
        base = Offset(max(self._end, next_offset - 1 - RELATIVE_OFFSET_MAX))
        try:
            if old.size == 0:
                self._names += self._row.drop_from(len(self._row) - 1)
            else:
                old.seal()
            if len(self._row) > 1:
                self._row.segments[-2].forget_recent()  # its readers have had a segment's time
            self._begin_segment(base)
        except OSError as error:
            raise self._go_offline("begin a segment after", old.path + ".log", error) from error

    def _begin_segment(self, base: Offset) -> None:
        segment = self._segment(base, 0)
        segment.create()
        self._names += 1
        self._row.add(segment)
        self._active = segment
        self._end = base
        self._roll = roll_bounds(self.name, self._active, self._config)

    def _segment(self, base: Offset, size: int) -> Segment:
        return Segment(
            self._filesystem,
            self.directory,
            base,
            size=size,
            created=self._wall,
            index_interval_bytes=self._config.index_interval_bytes,
        )

    def _retire(self, count: int, reasons: tuple[str, ...]) -> Retained:
        """Let go of the first ``count`` segments, in their order."""
        due = self._wall + self._config.file_delete_delay_ms
        for segment in self._row.take_front(count):
            self._doomed.add(segment.doom(), due=due)
        if count:
            self._catch_up.forget()
            self._names += 1
            self._snapshots.drop_below(self._start)
        if self._epochs.truncate_start(self._start):
            self._unsaved_epochs = True
        return Retained(self._start, tuple(f"{self.name}: {reason}" for reason in reasons))

    def _sync_cut(self) -> None:
        """What was cut must not come back after a crash: segments written later would follow it."""
        self._generation += 1
        self._catch_up.forget()
        self._recovery_point = min(self._recovery_point, self._end)
        self._cleaned_to = min(self._cleaned_to, self._end)
        self._active.file().sync()
        if self._names_synced < self._names:
            self._filesystem.sync_directory(self.directory)

    def _after_cut(self, offset: Offset) -> Opened:
        if self._epochs.truncate_end(offset):
            self._write_epochs()
        self._drop_snapshots(self._end)
        return self._describe(())

    def _drop_snapshots(self, above: int) -> None:
        if self._snapshots.drop_above(above):
            self._filesystem.sync_directory(self.directory)

    def _describe(self, repaired: tuple[str, ...]) -> Opened:
        snapshot, unreadable = self._snapshots.latest(self._end)
        first = self._start if snapshot is None else max(self._start, snapshot.offset)
        after = batches_after(self._row.segments, first)
        if snapshot is not None and snapshot.entries:
            before = batches_before(self._row.segments, snapshot.offset)
            snapshot = snapshot._replace(before=before)
        return Opened(
            self._start,
            self._end,
            self._epochs.entries,
            snapshot,
            after.headers,
            after.markers,
            (*repaired, *(f"{self.name}: {sentence}" for sentence in unreadable), *after.damaged),
        )

    def _write_epochs(self) -> None:
        self._filesystem.write(
            f"{self.directory}/{LEADER_EPOCHS}", encode_epochs(self._epochs.entries)
        )
        self._unsaved_epochs = False

    def _check_online(self) -> None:
        if self._offline is not None:
            raise LogOffline(self._offline)

    def _go_offline(self, verb: str, path: str, error: OSError) -> LogOffline:
        """Remember why, and return what to raise."""
        if self._offline is None:
            what = f"{verb} {path.rpartition('/')[2]}"
            why = error.strerror or error
            self._offline = f"{self.name}: could not {what} at offset {self._end}: {why}"
        return LogOffline(self._offline)
