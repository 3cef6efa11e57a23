"""Logs of deleted topics: out of the way at once, off the disk after file.delete.delay.ms.

A log's directory is renamed to `<topic>-<n>.<topic id>-delete`, a name that no partition can have,
so that a topic of the same name can be created at once. What a crash leaves of such directories is
removed at the next start.

A directory that has the name of a partition but another topic's id was left by a crash before the
renaming. It is put aside as `...-stray` and kept, as Kafka does: that it may go is known here only
from the metadata log, and one who has restored an old one would lose data.
"""

from __future__ import annotations

import asyncio
from functools import partial

from cotidal.broker.journal import Journal
from cotidal.broker.worker import Failed, Outcome, Worker
from cotidal.log.copying import remove as remove_directory
from cotidal.log.filesystem import FileSystem
from cotidal.log.log import Log
from cotidal.values import TopicPartition, Uuid

SUFFIX = "-delete"
STRAY = "-stray"
FUTURE = "-future"
"""Of a log that is being moved here (moving.py): Kafka's name for it, too."""
NAME_BYTES_MAX = 255


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
        """In a worker: close the log and rename its directory; the new name."""
        doomed = f"{self._path}/{doomed_name(partition, topic_id)}"
        directory = f"{self._path}/{partition}"
        if log is not None:
            log.close()
        if self._files.exists(directory):
            self._files.rename(directory, doomed)
            self._files.sync_directory(self._path)
        return doomed

    def put_aside(self, partition: TopicPartition, topic_id: Uuid, why: str) -> None:
        """In a worker: rename a directory that stands where this topic's log belongs."""
        stray = doomed_name(partition, topic_id, STRAY)
        self._files.rename(f"{self._path}/{partition}", f"{self._path}/{stray}")
        self._files.sync_directory(self._path)
        self._loop.call_soon_threadsafe(
            self._journal.warning, f"{why}; it is put aside as {stray}, remove it if you can"
        )

    def remove_later(self, directory: str, delay_s: float) -> None:
        remove = partial(self._remove, directory)
        self._timers[directory] = self._loop.call_later(delay_s, remove)

    def remove_leftovers(self) -> None:
        """Directories that an earlier process meant to remove."""
        for name in self._files.listdir(self._path):
            if name.endswith(SUFFIX):
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


def doomed_name(partition: TopicPartition, topic_id: Uuid, kind: str = SUFFIX) -> str:
    suffix = f"-{partition.partition}.{topic_id.hex()}{kind}"
    return partition.topic[: NAME_BYTES_MAX - len(suffix)] + suffix
