"""Moves logs from one log directory to another while they are used. KIP-113.

A log is copied to `<topic>-<n>.<topic id>-future` in its new directory (log/copying.py), in a
thread that rests for the event loop. When little is missing, the log is busy for as long as the
rest takes: closed, its copy renamed to be it, the old one put away, and opened where it now is.
The controller is then told where it lives (LogHoused).

  crash while it is copied           the log is where it was, and its move begins again when it is
                                     opened: the copy's directory says so
  crash between the two renamings    both are the log; it is opened where the controller knows it
                                     to be, and the other is put aside
  a disk refuses                     the log stays where it is, and the copy goes

All moves share one thread, and keep to replica.alter.log.dirs.io.max.bytes.per.second. A log that
is written faster than that does not arrive until somebody raises it, as in Kafka.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from cotidal.broker.directory import Directories, Directory
from cotidal.broker.driver import wall_millis
from cotidal.broker.journal import Journal
from cotidal.broker.lane import Lane
from cotidal.broker.pace import Pace, Stopped
from cotidal.broker.worker import Done, Failed, Outcome, Worker
from cotidal.errors import ErrorCode
from cotidal.limits import MOVE_LAST_BYTES, MOVE_ROUNDS_MAX
from cotidal.log.copying import Copy, remove
from cotidal.log.filesystem import FileSystem
from cotidal.log.leftovers import DOOMED, FUTURE, leftover_name
from cotidal.log.log import Log
from cotidal.node.effects import MoveLogs, PaceMoves
from cotidal.node.events import Event, LogHoused, LogsMoved, MovingLog
from cotidal.values import Offset, TopicPartition

UNTHROTTLED: Final = (1 << 63) - 1
"""The setting's default."""


class Move:
    """One log on its way."""

    __slots__ = ("copy", "lane", "pace", "rounds", "source", "swapping", "target")

    def __init__(self, files: FileSystem, lane: Lane, target: Directory, speed: int) -> None:
        assert lane.directory is not None
        self.lane = lane
        self.source = lane.directory
        self.target = target
        self.copy = Copy(files, f"{self.source.path}/{lane.partition}", future_path(lane, target))
        self.pace = Pace(speed)
        self.rounds = 0
        self.swapping = False
        """The log is being closed and opened again: nothing else may happen to its copy."""


class Swapped(NamedTuple):
    log: Log
    refused: OSError | None
    """Why it is where it was; None: it has moved."""


class Moving:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        files: FileSystem,
        lanes: Mapping[TopicPartition, Lane],
        directories: Directories,
        *,
        keeper: Worker,
        post: Callable[[Event], None],
        failed: Callable[[Lane, Exception], None],
        save: Callable[[Any], None],
        journal: Journal,
        on_fault: Callable[[Exception], None],
    ) -> None:
        """``save(directory)``: write down the offsets of its logs."""
        self._loop = loop
        self._files = files
        self._lanes = lanes
        self._directories = directories
        self._keeper = keeper
        self._post = post
        self._failed = failed
        self._save = save
        self._journal = journal
        self._on_fault = on_fault
        self._moves: dict[TopicPartition, Move] = {}
        self._speed = UNTHROTTLED
        self._worker: Worker | None = None

    def move_logs(self, effect: MoveLogs) -> None:
        """Answered at once: whether each has begun to move, or why it cannot."""
        errors = tuple(self._ask(path, partition) for path, partition in effect.moves)
        self._post(LogsMoved(effect.token, errors))

    def pace_moves(self, effect: PaceMoves) -> None:
        self._speed = effect.bytes_per_second
        for move in self._moves.values():
            move.pace.bytes_per_second = effect.bytes_per_second

    def resume(self, lane: Lane) -> None:
        """A log was opened: did an earlier process begin to move it? If it changed its mind on the
        way, there may be several copies: one is gone on with."""
        for target in self._directories.online:
            if not self._files.exists(future_path(lane, target)):
                continue
            if target is lane.directory or lane.partition in self._moves:
                self._remove(future_path(lane, target))
            else:
                self._begin(lane, target)

    def on_changed(self, lane: Lane) -> None:
        """The log was cut or compacted."""
        move = self._moves.get(lane.partition)
        if move is not None:
            move.copy.start_over()

    def cancel(self, partition: TopicPartition) -> None:
        move = self._moves.pop(partition, None)
        if move is not None:
            move.pace.stop()
            self._remove(move.copy.target)

    def into(self, directory: Directory) -> tuple[MovingLog, ...]:
        """Logs that are on their way into this one."""
        return tuple(
            MovingLog(
                partition,
                move.copy.size_bytes,
                0 if (log := move.lane.log) is None else log.end_offset - move.copy.open_from,
            )
            for partition, move in self._moves.items()
            if move.target is directory
        )

    def stop(self) -> None:
        """The node ends; what is under way begins anew with the next one."""
        for move in self._moves.values():
            move.pace.stop()
        self._moves.clear()
        if self._worker is not None:
            self._worker.stop()

    def _ask(self, path: str, partition: TopicPartition) -> ErrorCode:
        target = next((each for each in self._directories.all if each.path == path), None)
        if target is None:
            known = path in [missing.path for missing in self._directories.missing]
            return ErrorCode.KAFKA_STORAGE_ERROR if known else ErrorCode.LOG_DIR_NOT_FOUND
        if target.error is not None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        lane = self._lanes.get(partition)
        if lane is None:
            return ErrorCode.REPLICA_NOT_AVAILABLE
        if lane.is_offline or lane.directory is None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        move = self._moves.get(partition)
        if move is not None and move.swapping:
            lane.wait(partial(self._move_again, path, partition))
        elif move is None or move.target is not target:
            self.cancel(partition)
            if target is not lane.directory:
                self._begin(lane, target)
        return ErrorCode.NONE

    def _move_again(self, path: str, partition: TopicPartition) -> None:
        self._ask(path, partition)  # nobody waits for the answer any more

    def _begin(self, lane: Lane, target: Directory) -> None:
        move = self._moves[lane.partition] = Move(self._files, lane, target, self._speed)
        self._journal.info(f"{lane.partition} moves to {target.path}")
        self._round(move, first=True)

    def _round(self, move: Move, *, first: bool = False) -> None:
        move.rounds += 1

        def work() -> int:
            if first:
                move.copy.begin()
            return move.copy.pull(move.pace.breathe)

        self._worker_of_moves().submit(work, partial(self._on_pulled, move))

    def _on_pulled(self, move: Move, outcome: Outcome[int]) -> None:
        if self._moves.get(move.lane.partition) is not move:
            return
        match outcome:
            case Done(pulled) if pulled > MOVE_LAST_BYTES and self._may_catch_up(move):
                self._round(move)
            case Done():
                self._finish(move)
            case Failed(Stopped()):
                pass
            case Failed(OSError() as error):
                self._give_up(move, error)
            case Failed(error):
                raise error

    def _may_catch_up(self, move: Move) -> bool:
        """Under a throttle the rest is never taken in one piece, however long it takes."""
        return move.rounds < MOVE_ROUNDS_MAX or self._speed < UNTHROTTLED

    def _finish(self, move: Move) -> None:
        """When the log is free: the rest of it, and the change."""
        lane, source, target = move.lane, move.source, move.target
        if lane.busy:
            lane.wait(partial(self._finish, move))
            return
        if self._moves.get(lane.partition) is not move:
            return
        if lane.log is None or lane.is_offline or target.error is not None:
            self.cancel(lane.partition)
            return
        move.swapping = True
        # Before the copy is the log: a crash then finds what it needs beside it.
        target.checkpoints.adopt(lane.partition, source.checkpoints, lane.log)
        lane.run_in(self._keeper, partial(self._swap, move, lane.log), partial(self._told, move))

    def _swap(self, move: Move, log: Log) -> Swapped:
        """In a worker."""
        lane = move.lane
        log.close()
        try:
            move.copy.end()
            self._files.rename(move.copy.target, f"{move.target.path}/{lane.partition}")
            self._files.sync_directory(move.target.path)
        except OSError as refused:
            return Swapped(_reopened(self._files, lane, log, log.directory), refused)
        move.source.removal.put_away(lane.partition, lane.topic_id, None)
        moved = f"{move.target.path}/{lane.partition}"
        return Swapped(_reopened(self._files, lane, log, moved), None)

    def _told(self, move: Move, outcome: Outcome[Swapped]) -> None:
        lane, source, target = move.lane, move.source, move.target
        move.swapping = False
        match outcome:
            case Done(Swapped(log, None)):
                del self._moves[lane.partition]
                lane.log, lane.directory = log, target
                source.logs -= 1
                target.logs += 1
                source.checkpoints.forget(lane.partition)
                self._save(source)
                self._save(target)
                doomed = f"{source.path}/{leftover_name(lane.partition, lane.topic_id, DOOMED)}"
                source.removal.remove_later(doomed, log.config.file_delete_delay_ms / 1000)
                self._journal.info(f"{lane.partition} has moved to {target.path}")
                self._post(LogHoused(lane.partition, lane.topic_id, target.id))
            case Done(swapped):
                lane.log = swapped.log
                self._give_up(move, swapped.refused)
            case Failed(error):
                lane.log = None
                del self._moves[lane.partition]
                self._failed(lane, error)

    def _give_up(self, move: Move, error: OSError | None) -> None:
        partition = move.lane.partition
        self._journal.error(f"{partition} could not be moved to {move.target.path}: {error}")
        move.target.checkpoints.forget(partition)
        self.cancel(partition)

    def _remove(self, copy: str) -> None:
        def told(outcome: Outcome[None]) -> None:
            if isinstance(outcome, Failed):
                self._journal.error(f"{copy} could not be removed: {outcome.error}")

        self._worker_of_moves().submit(partial(remove, self._files, copy), told)

    def _worker_of_moves(self) -> Worker:
        if self._worker is None:
            self._worker = Worker(self._loop, "cotidal-mover", self._on_fault)
        return self._worker


def future_name(lane: Lane) -> str:
    return leftover_name(lane.partition, lane.topic_id, FUTURE)


def future_path(lane: Lane, target: Directory) -> str:
    return f"{target.path}/{future_name(lane)}"


def _reopened(files: FileSystem, lane: Lane, closed: Log, directory: str) -> Log:
    """The log that was closed, in the one or the other place."""
    log = Log.open(
        files,
        directory,
        closed.config,
        topic_id=lane.topic_id,
        clean=True,
        recovery_point=Offset(closed.recovery_point),
        log_start=closed.start_offset,
        cleaned_to=closed.cleaned_to,
        now_wall=wall_millis(),
    )
    log.forget_headers()
    return log
