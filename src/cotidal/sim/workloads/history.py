"""What clients were told: the facts against which logs are judged.

A batch is known by the checksum that it carries: the bytes that it covers are never changed, so a
batch found in a log or in an answer is matched with the one that was sent without decoding it.
Offsets of a batch are those of its first record. Where nobody sees batches (real clients), each
record is a fact by itself, with a number of its own in the checksum's place.
"""

from __future__ import annotations

from typing import NamedTuple

from cotidal.invariants import CONSUMED_NEVER_CHANGES, IDEMPOTENT_ONCE, LEADER_HOLDS_ACKED
from cotidal.sim.violation import Violation
from cotidal.values import TopicPartition


class Acked(NamedTuple):
    """A producer was told that its batch stands at this offset."""

    partition: TopicPartition
    offset: int
    crc: int
    acks: int
    moment_us: int
    made_us: int = 0
    """When the producer had it: what it waited is the difference."""
    records: int = 1
    size_bytes: int = 0
    """Of the whole batch, where somebody asks."""


class Fired(NamedTuple):
    """A batch that was sent with acks=0: nobody says what became of it."""

    partition: TopicPartition
    crc: int
    records: int


class Consumed(NamedTuple):
    crc: int
    next_offset: int


KeyedValue = tuple[bytes, bytes | None]


class History:
    def __init__(self) -> None:
        self.keyed: dict[TopicPartition, list[tuple[int, KeyedValue]]] = {}
        """Records of compacted topics that were acknowledged by all, each with its offset."""
        self.acked: dict[TopicPartition, list[Acked]] = {}
        """acks=all, in the order in which producers learned of it."""
        self.acked_by_leader: dict[TopicPartition, list[Acked]] = {}
        """acks=1."""
        self.fired: list[Fired] = []
        """acks=0."""
        self._acked_at: dict[tuple[TopicPartition, int], int] = {}
        self.consumed: dict[TopicPartition, dict[int, Consumed]] = {}
        self.sent = 0
        self.acknowledged = 0
        self.unknown = 0
        self.read = 0
        self._producer_ids: dict[tuple[int, int], str] = {}
        self.may_lose = False
        """The plan's faults may undo what was acknowledged and read."""

    def on_acked(self, acked: Acked) -> None:
        self.acknowledged += 1
        if acked.acks == 1:
            self.acked_by_leader.setdefault(acked.partition, []).append(acked)
            return
        self.acked.setdefault(acked.partition, []).append(acked)
        where = (acked.partition, acked.offset)
        before = self._acked_at.setdefault(where, acked.crc)
        if before != acked.crc and not self.may_lose:
            raise Violation(
                LEADER_HOLDS_ACKED,
                f"offset {acked.offset} of {acked.partition} was acknowledged for two batches,"
                f" {before:08x} and {acked.crc:08x}",
            )

    def on_acked_keys(
        self, partition: TopicPartition, offset: int, records: tuple[KeyedValue, ...]
    ) -> None:
        """A batch of a compacted topic: its bytes may change, its records may not."""
        self.acknowledged += 1
        line = self.keyed.setdefault(partition, [])
        line.extend((offset + at, record) for at, record in enumerate(records))

    def on_consumed(
        self, partition: TopicPartition, *, offset: int, next_offset: int, crc: int
    ) -> None:
        self.read += 1
        seen = self.consumed.setdefault(partition, {})
        before = seen.get(offset)
        if before is None:
            seen[offset] = tuple.__new__(Consumed, (crc, next_offset))
        elif before.crc != crc and not self.may_lose:
            raise Violation(
                CONSUMED_NEVER_CHANGES,
                f"offset {offset} of {partition} was read as {before.crc:08x} and later as"
                f" {crc:08x}",
            )

    def on_producer_id(self, producer_id: int, epoch: int, producer: str) -> None:
        before = self._producer_ids.setdefault((producer_id, epoch), producer)
        if before != producer or epoch < 0:
            raise Violation(
                IDEMPOTENT_ONCE,
                f"producer id {producer_id} (epoch {epoch}) was given to {before} and {producer}",
            )

    def forget(self, topic: str) -> None:
        """The topic was deleted: its offsets mean nothing any more."""
        for facts in (self.acked, self.acked_by_leader, self.consumed, self.keyed):
            for partition in [each for each in facts if each.topic == topic]:
                del facts[partition]
        for where in [each for each in self._acked_at if each[0].topic == topic]:
            del self._acked_at[where]
