"""Logs of deleted topics: out of the way at once, off the disk after file.delete.delay.ms.

A log's directory is renamed to end in `-delete` (log/leftovers.py), so that a topic of the same
name can be created at once. What a crash leaves of such directories is removed at the next start.

A log that metadata does not give this node (its topic was deleted, or moved away, while the node
was down) is put aside as `-stray` and kept. So is one of another topic of the same name: it was
left by a crash before the renaming. A copy for a move that nobody goes on with is removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container
from functools import partial

from cotidal.broker.journal import Journal
from cotidal.broker.worker import Failed, Outcome, Worker
from cotidal.log.copying import remove as remove_directory
from cotidal.log.filesystem import FileSystem
from cotidal.log.leftovers import DOOMED, FUTURE, leftover_name, put_aside, strays
from cotidal.log.log import Log
from cotidal.values import TopicPartition, Uuid


class Removal:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        files: FileSystem,
        path: str,
        worker: Worker,
        journal: Journal,
    ) -> None:
        self._loop = loop
        self._files = files
        self._path = path
        self._worker = worker
        self._journal = journal
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def put_away(self, partition: TopicPartition, topic_id: Uuid, log: Log | None) -> str:
        """In a worker: rename the log's directory; the new name. What is not on the disk yet need
        not get there any more: gigabytes would have to be written, only to be removed."""
        doomed = f"{self._path}/{leftover_name(partition, topic_id, DOOMED)}"
        directory = f"{self._path}/{partition}"
        if log is not None:
            log.let_go()
        if self._files.exists(directory):
            self._files.rename(directory, doomed)
            self._files.sync_directory(self._path)
        return doomed

    def put_aside(self, partition: TopicPartition, why: str) -> None:
        """In a worker: rename a log that is not, or no longer, the one of this name."""
        stray = put_aside(self._files, self._path, partition)
        self._loop.call_soon_threadsafe(
            self._journal.warning, f"{why}; it is put aside as {stray}, remove it if you can"
        )

    def put_strays_aside(
        self, kept: Container[TopicPartition], copies: Container[str]
    ) -> list[TopicPartition]:
        """In a worker: of logs, all but those of these partitions, and of copies, all but these."""
        found = strays(self._files, self._path, kept)
        for partition in found:
            self.put_aside(partition, f"{self._path}/{partition} is not given to this node")
        for name in self._files.listdir(self._path):
            if name.endswith(FUTURE) and name not in copies:
                remove_directory(self._files, f"{self._path}/{name}")
        return found

    def remove_later(self, directory: str, delay_s: float) -> None:
        remove = partial(self._remove, directory)
        self._timers[directory] = self._loop.call_later(delay_s, remove)

    def remove_leftovers(self) -> None:
        """Directories that an earlier process meant to remove."""
        for name in self._files.listdir(self._path):
            if name.endswith(DOOMED):
                self._remove(f"{self._path}/{name}")

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()

    def _remove(self, directory: str) -> None:
        self._timers.pop(directory, None)
        remove = partial(remove_directory, self._files, directory)
        self._worker.submit(remove, partial(self._told, directory))

    def _told(self, directory: str, outcome: Outcome[None]) -> None:
        if isinstance(outcome, Failed):
            self._journal.error(f"{directory} could not be removed: {outcome.error}")
