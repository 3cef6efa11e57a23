"""What an application wrote, read and was told while brokers were killed, and if that is right.

The story is the same for every client: a writer with acks=all, idempotent or in transactions, and a
group of two readers that commit as they read. The client's program tells it here as it happens.
An error that reaches the application is no failure if the client documents what it means: to try
again, to read on after a rebalance, to abort. Anything else is.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from itertools import count
from threading import Event
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from real_cluster import QUICK
from tests.interop.suites import Ran

PARTITIONS: Final = 3
PAUSE_SECONDS: Final = 0.005
"""Between two records of a writer."""
TRANSACTION_RECORDS: Final = 20
ABORT_EVERY: Final = 5
"""Of so many transactions the last is aborted."""
PATIENCE_SECONDS: Final = 90


class Meaning(Enum):
    """Of an error, as the client's documentation has it."""

    AGAIN = "again"
    """It may be tried again."""
    REBALANCED = "rebalanced"
    """A commit came too late: the partition is another's, or will be read again."""
    ABORT = "abort"
    """The transaction is to be aborted, and may then be written again."""
    UNEXPECTED = "unexpected"
    """Nothing that an application is told to expect."""


class Story:
    """Told from several threads; each of its containers is filled by one call."""

    def __init__(self, *, goes_on: Callable[[], bool]) -> None:
        """``goes_on()``: there are brokers to be killed yet."""
        self.goes_on = goes_on
        self.finished = Event()
        """The readers may end."""
        self.written: set[str] = set()
        self.acknowledged: set[str] = set()
        self.aborted: set[str] = set()
        self.doubtful: list[tuple[str, ...]] = []
        """Transactions of which the application does not know how they ended."""
        self.read: dict[str, set[tuple[int, int]]] = {}
        """Value -> where it was found: (partition, offset)."""
        self.committed: dict[int, int] = {}
        self.went_back: list[str] = []
        self.errors: list[tuple[str, Meaning, str]] = []

    @property
    def is_whole(self) -> bool:
        return self.acknowledged <= self.read.keys()

    def paced(self, seconds: float) -> Iterator[int]:
        """Numbers for the writer, so far apart, as long as the story goes on."""
        begun = time.monotonic()
        for number in count():
            time.sleep(max(0.0, begun + number * seconds - time.monotonic()))
            if not self.goes_on():
                return
            yield number

    def on_found(self, partition: int, offset: int, value: bytes | str | None) -> None:
        text = value.decode() if isinstance(value, bytes) else value or ""
        self.read.setdefault(text, set()).add((partition, offset))

    def on_committed(self, offsets: Mapping[int, int]) -> None:
        for partition, offset in offsets.items():
            before = self.committed.get(partition, 0)
            if offset < before:
                self.went_back.append(f"partition {partition}: {offset} after {before}")
            self.committed[partition] = max(offset, before)

    def on_error(self, who: str, meaning: Meaning, text: str) -> None:
        self.errors.append((who, meaning, text))

    def end(self, bootstrap: str, group: str, topic: str) -> None:
        """All is written: wait until it is read, and see that what was committed still is."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.is_whole and time.monotonic() < deadline:
            time.sleep(0.1)
        self.finished.set()
        self.on_committed(_committed(bootstrap, group, topic))

    def checks(self, *, transactional: bool) -> Ran:
        """What must hold, and what was found instead."""
        wrong = {
            "every record is acknowledged": self._unacknowledged(transactional=transactional),
            "the group reads all that is acknowledged": _some(self.acknowledged - self.read.keys()),
            "no record is in the log twice": _some(
                value for value, places in self.read.items() if len(places) > 1
            ),
            "records keep their order": _some(self._out_of_order()),
            "commits never go back": _some(self.went_back),
            "errors are those that the client documents": _some(
                f"{who}: {text}"
                for who, meaning, text in self.errors
                if meaning is Meaning.UNEXPECTED
            ),
        }
        if transactional:
            wrong |= {
                "what is aborted is not read": _some(self.aborted & self.read.keys()),
                "no transaction is torn": _some(
                    transaction[0] for transaction in self.doubtful if self._is_torn(transaction)
                ),
            }
        return Ran(
            tuple(check for check, found in wrong.items() if not found),
            {check: found for check, found in wrong.items() if found},
            (),
        )

    def told(self) -> str:
        """How much there was of everything."""
        kinds = Counter(f"{who} {meaning.value}" for who, meaning, _ in self.errors)
        return (
            f"{len(self.acknowledged)} acknowledged, {len(self.aborted)} aborted, "
            f"{len(self.doubtful)} doubtful, {len(self.read)} read, errors {dict(kinds)}"
        )

    def _unacknowledged(self, *, transactional: bool) -> str:
        if not self.acknowledged:
            return "nothing was"
        return "" if transactional else _some(self.written - self.acknowledged)

    def _is_torn(self, transaction: tuple[str, ...]) -> bool:
        return 0 < sum(value in self.read for value in transaction) < len(transaction)

    def _out_of_order(self) -> Iterator[str]:
        places = sorted(
            (place, number(value)) for value, found in self.read.items() for place in found
        )
        last: dict[int, tuple[int, ...]] = {}
        for (partition, _), value in places:
            if value < last.get(partition, (-1,)):
                yield f"{value} after {last[partition]} in partition {partition}"
            last[partition] = value


def number(value: str) -> tuple[int, ...]:
    """``7``, or ``3.7`` of a transaction: which was written before which."""
    return tuple(int(part) for part in value.split("."))


def _some(found: Iterable[str]) -> str:
    """The first few."""
    listed = list(found)
    more = f" and {len(listed) - 10} more" if len(listed) > 10 else ""
    return ", ".join(listed[:10]) + more


def _committed(bootstrap: str, group: str, topic: str) -> dict[int, int]:
    """What the group's coordinator says, whoever it is now."""
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **QUICK})
    wanted = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    deadline = time.monotonic() + PATIENCE_SECONDS
    try:
        while True:
            try:
                told = reader.committed(wanted, timeout=10)
                return {each.partition: max(0, each.offset) for each in told}
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
    finally:
        reader.close()
