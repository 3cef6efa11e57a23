"""The programs that tell a story (stories.py), for Python's clients: threads, and what each may do.

A client library is a ``Teller``: how to connect a writer, a writer of transactions and a reader
with it, and what it documents of its errors.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from tests.interop.stories import (
    ABORT_EVERY,
    PARTITIONS,
    PAUSE_SECONDS,
    TRANSACTION_RECORDS,
    Meaning,
    Story,
)

READERS: Final = 2

Record = tuple[int, int, bytes | None]
"""Partition, offset, value."""


class Writer(Protocol):
    def send(self, value: bytes, partition: int, done: Callable[[Exception | None], None]) -> None:
        """``done`` is told what came of it, from whatever thread."""

    def close(self) -> None:
        """All that was sent has come to its end."""


class TransactionalWriter(Protocol):
    def begin(self) -> None: ...

    def send(self, value: bytes, partition: int) -> None: ...

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


class Reader(Protocol):
    def read(self) -> list[Record]: ...

    def commit(self) -> dict[int, int]:
        """What was read since the last commit; partition -> offset, of what is now committed."""

    def close(self) -> None: ...


class Teller(NamedTuple):
    writer: Callable[[str, str], Writer]
    """(bootstrap, topic); the others have the same."""
    transactional: Callable[[str, str], TransactionalWriter]
    reader: Callable[[str, str], Reader]
    """The group is named as the topic."""
    means: Callable[[Exception], Meaning]


def tell(teller: Teller, bootstrap: str, topic: str, story: Story, *, transactional: bool) -> None:
    readers = [
        threading.Thread(target=_read, args=(teller, bootstrap, topic, story), daemon=True)
        for _ in range(READERS)
    ]
    for reader in readers:
        reader.start()
    try:
        write = _write_transactions if transactional else _write
        write(teller, bootstrap, topic, story)
        story.end(bootstrap, topic, topic)
    finally:
        story.finished.set()
        for reader in readers:
            reader.join(60)


def _read(teller: Teller, bootstrap: str, topic: str, story: Story) -> None:
    reader = teller.reader(bootstrap, topic)
    while not story.finished.is_set():
        try:
            for record in reader.read():
                story.on_found(*record)
            story.on_committed(reader.commit())
        except Exception as wrong:
            story.on_error("reader", teller.means(wrong), repr(wrong))
    reader.close()


def _write(teller: Teller, bootstrap: str, topic: str, story: Story) -> None:
    writer = teller.writer(bootstrap, topic)
    for number in story.paced(PAUSE_SECONDS):
        value = str(number)
        story.written.add(value)

        def done(wrong: Exception | None, value: str = value) -> None:
            if wrong is None:
                story.acknowledged.add(value)
            else:
                story.on_error("writer", teller.means(wrong), repr(wrong))

        writer.send(value.encode(), number % PARTITIONS, done)
    writer.close()


def _write_transactions(teller: Teller, bootstrap: str, topic: str, story: Story) -> None:
    writer = teller.transactional(bootstrap, topic)
    for number in story.paced(PAUSE_SECONDS * TRANSACTION_RECORDS):
        values = tuple(f"{number}.{part}" for part in range(TRANSACTION_RECORDS))
        aborts = number % ABORT_EVERY == ABORT_EVERY - 1
        try:
            writer.begin()
            for part, value in enumerate(values):
                writer.send(value.encode(), part % PARTITIONS)
            if aborts:
                writer.abort()
            else:
                writer.commit()
            (story.aborted if aborts else story.acknowledged).update(values)
        except Exception as wrong:
            story.doubtful.append(values)
            meaning = teller.means(wrong)
            story.on_error("writer of transactions", meaning, repr(wrong))
            if meaning is Meaning.UNEXPECTED or not _is_aborted(writer, story, teller):
                writer.close()
                writer = teller.transactional(bootstrap, topic)
    writer.close()


def _is_aborted(writer: TransactionalWriter, story: Story, teller: Teller) -> bool:
    try:
        writer.abort()
        return True
    except Exception as wrong:
        story.on_error("abort", teller.means(wrong), repr(wrong))
        return False


class Positions:
    """What a reader has read and not yet committed. Partitions that it loses are forgotten: what it
    knows of them is old when it gets them again."""

    def __init__(self) -> None:
        self._next: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self._next)

    def on_read(self, partition: int, offset: int) -> None:
        self._next[partition] = offset + 1

    def read(self, polled: Mapping[Any, Sequence[Any]]) -> list[Record]:
        """What a poll gave, by partition, in the form that Python's own clients share."""
        found = [
            (each.partition, each.offset, each.value)
            for records in polled.values()
            for each in records
        ]
        for partition, offset, _ in found:
            self.on_read(partition, offset)
        return found

    def on_lost(self, partition: int) -> None:
        self._next.pop(partition, None)

    def take(self) -> dict[int, int]:
        taken, self._next = self._next, {}
        return taken


def wait_a_moment() -> None:
    """Between two tries of what may be tried again."""
    time.sleep(0.1)
