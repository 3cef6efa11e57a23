"""What every coordinator is. Pure. A replicated machine over one partition of an internal topic.

The broker that leads the partition runs the machine. Whatever it decides is written to that
partition like any other record (acks=all), so whoever leads it next reads the same decisions:

    ask, tick -> acts:  Write  appended together, then replayed; ``then`` comes back once they are
                               committed (on_committed), or could not be written (on_refused)
                        Tell   an answer; it leaves when all that was appended before is committed
                        Await  ``then`` comes back when all that was appended before is committed,
                               however long that takes
                        Order  something that the node does, now

  DURABLE_BEFORE_TOLD  one image is enough: what it holds may be uncommitted, but no answer
                       overtakes the records it rests on

``replay`` cannot fail and is the only thing that changes the image, while a log is loaded and while
the machine decides. Everything else a machine remembers is soft: gone when the coordinator moves.

Records may be part of a producer's transaction (KIP-98): they are in the log, and count once
``replay_end`` has told that it was committed. The partition's leader writes that end; nobody asks.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, NewType, Protocol, TypeAlias

from cotidal.errors import Refusal
from cotidal.values import NO_PRODUCER_ID, Millis, ProducerEpoch, ProducerId, WallMillis

Waiter = NewType("Waiter", int)
"""Whoever waits for an answer, by the number that the node has given."""

NOBODY: Final = Waiter(0)


class KeyedRecord(NamedTuple):
    """A record of an internal topic; without a value it takes its key's last one away."""

    key: object
    value: object | None


class Tell(NamedTuple):
    """Answer once everything appended so far is committed."""

    waiter: Waiter
    answer: object


class InTransaction(NamedTuple):
    """Whose transaction records belong to."""

    producer_id: ProducerId
    epoch: ProducerEpoch
    guard: int | None = None
    """Taken before the transaction's coordinator confirmed it; None where it was open already."""


class Write(NamedTuple):
    """Append these records together."""

    records: tuple[KeyedRecord, ...]
    then: object
    """Handed back when they are committed. A Tell needs no handing back: it is obeyed, and None is
    nothing."""
    transaction: InTransaction | None = None


class Await(NamedTuple):
    """Hand ``then`` back when everything appended so far is committed."""

    then: object


class Order(NamedTuple):
    """What the node is to do; it tells how that went by asking something."""

    order: object


Act: TypeAlias = Write | Tell | Await | Order
Acts: TypeAlias = "tuple[Act, ...]"


class Moment(NamedTuple):
    """Now: for timers, and for what is written into records."""

    now: Millis
    wall: WallMillis


class Coordinator(Protocol):
    """What a node needs to know of a coordinator's machine."""

    def replay(self, record: KeyedRecord, producer_id: ProducerId = NO_PRODUCER_ID) -> None:
        """``producer_id``: in whose transaction, if in any."""

    def replay_end(self, producer_id: ProducerId, *, committed: bool) -> None:
        """The producer's transaction has ended."""

    def on_loaded(self, at: Moment) -> Acts:
        """The whole log has been replayed: begin to decide."""

    def ask(self, ask: Any, waiter: Waiter, at: Moment) -> Acts: ...

    def on_committed(self, then: Any, at: Moment) -> Acts: ...

    def on_refused(self, then: Any, refusal: Refusal, at: Moment) -> Acts:
        """The records were not written, or are not committed in time; then they may still be."""

    def on_ticked(self, at: Moment) -> Acts: ...

    def next_deadline(self) -> Millis | None: ...


def partition_of(key: str, count: int) -> int:
    """Which partition a key belongs to: Java's hash of its UTF-16 units, as Kafka takes it.

    >>> partition_of("group", 50)
    47
    """
    value = 0
    units = key.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    if value & 0x80000000:
        value = (-value) & 0x7FFFFFFF  # the most negative number has no counterpart: it counts as 0
    return value % count
