"""The log directories of a node: which log goes where, and which of them still work. KIP-112.

A log is opened where it is found; a new one goes where the controller knows it to be, or else to
the directory with the fewest. A disk that refuses anything takes its whole directory offline, as in
Kafka, if the node has several; but not the one with the metadata log, nor the only one: there the
log that met it goes offline alone (docs/adr/0003-failed-logs.md). A log that may be in a directory
that is offline is not begun anew elsewhere.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from cotidal.broker.checkpoints import Checkpoints
from cotidal.broker.journal import Journal
from cotidal.broker.removal import Removal
from cotidal.broker.worker import Done, Failed, Outcome, Worker
from cotidal.log.filesystem import FileSystem
from cotidal.node.events import DirectoryFailed, MeasuredDirectory, MovingLog
from cotidal.values import ZERO_UUID, Offset, TopicPartition, Uuid


class LogDir(NamedTuple):
    """A log directory that works when the node starts."""

    id: Uuid
    path: str
    clean: bool
    """The last process that had it closed its logs in order."""


class Missing(NamedTuple):
    """One that does not."""

    path: str
    reason: str


class Directory:
    """One log directory in use."""

    __slots__ = ("checkpoints", "clean", "error", "id", "logs", "path", "removal", "spared")

    def __init__(
        self, told: LogDir, *, spared: bool, checkpoints: Checkpoints, removal: Removal
    ) -> None:
        self.id = told.id
        self.path = told.path
        self.clean = told.clean
        self.spared = spared
        """What happens to one log in it says nothing of the others."""
        self.checkpoints = checkpoints
        self.removal = removal
        self.error: str | None = None
        """Why it is offline."""
        self.logs = 0
        """How many are in it."""

    def measured(
        self, sizes: tuple[tuple[TopicPartition, int], ...], moving: tuple[MovingLog, ...] = ()
    ) -> MeasuredDirectory:
        try:
            room = os.statvfs(self.path)
            total, usable = room.f_frsize * room.f_blocks, room.f_frsize * room.f_bavail
        except OSError:
            total = usable = -1
        return MeasuredDirectory(self.path, self.error, sizes, total, usable, moving)


class Directories:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        files: FileSystem,
        working: Sequence[LogDir],
        *,
        missing: Sequence[Missing],
        metadata_path: str,
        worker: Worker,
        post: Callable[[DirectoryFailed], None],
        on_broken: Callable[[str], None],
        journal: Journal,
    ) -> None:
        """``on_broken``: no directory is left."""
        self._loop = loop
        self._files = files
        self._worker = worker
        self._post = post
        self._on_broken = on_broken
        self._journal = journal
        self.missing = tuple(missing)
        alone = len(working) + len(missing) == 1
        self.all: list[Directory] = []
        for told in working:
            refused = partial(self._on_refused, len(self.all))
            directory = Directory(
                told,
                spared=alone or told.path == metadata_path,
                checkpoints=Checkpoints(files, told.path, worker, journal, refused),
                removal=Removal(loop, files, told.path, worker, journal),
            )
            self.all.append(directory)
            directory.removal.remove_leftovers()

    @property
    def online(self) -> list[Directory]:
        return [directory for directory in self.all if directory.error is None]

    @property
    def offline(self) -> int:
        return len(self.missing) + len(self.all) - len(self.online)

    def choose(self, partition: TopicPartition, known: Uuid) -> Directory | None:
        """Where this log is or is to be; None where that cannot be told while one is offline.
        ``known``: where the controller knows it to be."""
        online = sorted(self.online, key=lambda directory: directory.id != known)
        for directory in online:
            if self._files.exists(f"{directory.path}/{partition}"):
                return directory
        if online and online[0].id == known:
            return online[0]
        if known != ZERO_UUID and self.offline:
            return None
        return min(online, key=lambda directory: directory.logs, default=None)

    def others_with(self, partition: TopicPartition, chosen: Directory) -> list[Directory]:
        """Where else there is a log of that name: a crash has come when one was moved."""
        return [
            directory
            for directory in self.online
            if directory is not chosen and self._files.exists(f"{directory.path}/{partition}")
        ]

    def fail(self, directory: Directory, reason: str) -> None:
        """The disk has refused something in it."""
        if directory.error is not None or directory.spared:
            return
        directory.error = reason
        if self.online:
            said = f"the log directory {directory.path} is offline: {reason}"
            self._post(DirectoryFailed(directory.id, said))
        else:
            said = f"every log directory has failed, the last one with {reason}"
            self._loop.call_soon(self._on_broken, said)  # not in the midst of the node's turn

    def put_strays_aside(self, kept: frozenset[TopicPartition], copies: frozenset[str]) -> None:
        """Of all logs, those that are of none of these partitions (removal.py)."""

        def told(directory: Directory, outcome: Outcome[list[TopicPartition]]) -> None:
            match outcome:
                case Done(strays):
                    for partition in strays:
                        directory.checkpoints.forget(partition)
                case Failed(error):
                    self._journal.error(f"{directory.path} could not be tidied: {error}")

        for directory in self.online:
            tidy = partial(directory.removal.put_strays_aside, kept, copies)
            self._worker.submit(tidy, partial(told, directory))

    def save_high_watermarks(
        self,
        watermarks: Iterable[tuple[TopicPartition, Offset]],
        of: Callable[[TopicPartition], Directory | None],
    ) -> None:
        """Each in its own directory; ``of`` tells a partition's."""
        split: dict[Directory, list[tuple[TopicPartition, Offset]]] = {}
        for partition, offset in watermarks:
            directory = of(partition)
            if directory is not None and directory.error is None:
                split.setdefault(directory, []).append((partition, offset))
        for directory, mine in split.items():
            directory.checkpoints.save_high_watermarks(mine)

    def stop(self) -> None:
        for directory in self.all:
            directory.removal.stop()

    def _on_refused(self, number: int, sentence: str) -> None:
        self._journal.error(sentence)
        self.fail(self.all[number], sentence)
