"""Real clients (librdkafka) that write down what they were told.

Each record is a fact by itself: a number that no other record has, its writer's and its own in one.
Histories are the simulator's, and raise what its checkers raise.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Place

from cotidal.invariants import CONSUMED_NEVER_CHANGES, IDEMPOTENT_ONCE, OFFSETS_CONTIGUOUS
from cotidal.sim.violation import Violation
from cotidal.sim.workloads.history import Acked, History
from cotidal.values import TopicPartition
from tests.chaos.consumer import AssignedConsumer, Statistics, now_us

TOPIC: Final = "storm"
NUMBERS: Final = 1 << 40
"""Of one writer."""
UNANSWERED_MAX: Final = 200
BACK_MAX: Final = 2_000
"""How far back a reader goes now and then, to read again."""
BACK_ONE_IN: Final = 500

QUICK: Final[dict[str, Any]] = {
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 200,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "socket.timeout.ms": 5_000,
    "log_level": 0,
}


class Writer:
    """Numbers, one after the other, over all partitions."""

    def __init__(
        self,
        bootstrap: str,
        number: int,
        history: History,
        *,
        partitions: int,
        acks: int,
        idempotent: bool,
        on_acked: Callable[[Acked], None],
    ) -> None:
        self.acks = acks
        self.idempotent = idempotent
        self.first = number * NUMBERS
        self.acked = 0
        self.heard_us = now_us()
        """When something was acknowledged last."""
        self.unplaced: list[Acked] = []
        """Acknowledged, and nobody said at which offset: librdkafka takes the acknowledgement of a
        later batch as one of those before it, if theirs was lost."""
        self.failed: dict[str, int] = {}
        """Errors that a record ended with, and how many did."""
        self._history = history
        self._on_acked = on_acked
        self._partitions = partitions
        self._next = self.first
        self._made: dict[int, int] = {}
        self._statistics = Statistics()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": acks,
                "enable.idempotence": idempotent,
                "linger.ms": 2,
                "message.timeout.ms": 120_000,
                "request.timeout.ms": 3_000,
                "statistics.interval.ms": 5_000,
                "stats_cb": self._statistics.hear,
                **QUICK,
            }
        )

    @property
    def belief(self) -> str:
        """What its librdkafka last held to be true: of brokers, and of who leads what."""
        told = self._statistics.believed(
            TOPIC,
            lambda each: (
                f"{each['msgq_cnt']}+{each['xmit_msgq_cnt']} queued,"
                f" {each['msgs_inflight']} in flight"
            ),
        )
        return f"{self.name} believes: {told}; it ended {self.failed}"

    @property
    def name(self) -> str:
        level = "all" if self.acks == -1 else str(self.acks)
        return f"acks={level}{', idempotent' if self.idempotent else ''}"

    @property
    def unanswered(self) -> int:
        return len(self._made)

    def owns(self, number: int) -> bool:
        return self.first <= number < self.first + NUMBERS

    def write(self) -> None:
        """One record, unless too many have no answer yet."""
        if len(self._made) < UNANSWERED_MAX:
            number = self._next
            self._next += 1
            self._made[number] = now_us()
            self._history.sent += 1
            try:
                self._producer.produce(
                    TOPIC,
                    b"%d" % number,
                    partition=number % self._partitions,
                    on_delivery=self._on_delivery,
                )
            except KafkaException as wrong:
                raise self._stopped(wrong.args[0]) from wrong

    def _stopped(self, error: KafkaError) -> Violation:
        """An idempotent writer gives up when its sequence does not go on where it ended: what it
        was acknowledged is not there, or is there twice."""
        return Violation(IDEMPOTENT_ONCE, f"{self.name} was told {error.str()}")

    def poll(self) -> None:
        try:
            self._producer.poll(0)
        except KafkaException as wrong:  # fatal, and of no record in particular
            raise self._stopped(wrong.args[0]) from wrong

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        number = int(message.value() or b"-1")
        made = self._made.pop(number)
        if error is not None:
            self._history.unknown += 1
            self.failed[error.name()] = self.failed.get(error.name(), 0) + 1
            if error.fatal():
                raise self._stopped(error)
            return
        self.acked += 1
        self.heard_us = now_us()
        partition = TopicPartition(TOPIC, message.partition() or 0)
        offset = message.offset()
        placed = -1 if offset is None else offset
        acked = Acked(partition, placed, number, self.acks, now_us(), made)
        if offset is None:
            self.unplaced.append(acked)
        else:
            self._history.on_acked(acked)
        self._on_acked(acked)


class Reader:
    """Reads all partitions, on leaders or in a rack, and now and then some of it again."""

    def __init__(
        self, bootstrap: str, history: History, *, partitions: int, seed: int, rack: str = ""
    ) -> None:
        self.name = f"the reader in {rack}" if rack else "the reader on leaders"
        self._history = history
        self._chance = random.Random(seed)
        self.positions = dict.fromkeys(range(partitions), 0)
        self.restless = True
        self.heard_us = now_us()
        """When something was read last."""
        self._consumer = AssignedConsumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "storm",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "client.rack": rack,
                "isolation.level": "read_committed" if rack else "read_uncommitted",
                "fetch.wait.max.ms": 100,
                "fetch.error.backoff.ms": 50,
                "check.crcs": True,
                **QUICK,
            },
            [Place(TOPIC, number, 0) for number in self.positions],
        )

    @property
    def helped(self) -> Counter[str]:
        return self._consumer.helped

    @property
    def belief(self) -> str:
        told = self._consumer.statistics.believed(
            TOPIC,
            lambda each: (
                f"{each['fetch_state']} from {each['next_offset']}, {each['fetchq_cnt']} queued,"
                f" ends at {each['ls_offset']} of {each['hi_offset']}"
            ),
        )
        return f"{self.name}, at {self.positions}, believes: {told}"

    def read(self) -> None:
        for message in self._consumer.consume():
            error = message.error()
            if error is None:
                self._take(message)
            elif error.code() in _GONE:
                raise Violation(
                    CONSUMED_NEVER_CHANGES,
                    f"{self.name}, at {self.positions}, was told {error.str()}",
                )
        is_time = self.restless and not self._chance.randrange(BACK_ONE_IN)
        if is_time and self._consumer.is_awake:
            self._go_back()

    def _take(self, message: Message) -> None:
        number, offset = message.partition(), message.offset()
        assert number is not None
        assert offset is not None
        if offset != self.positions[number]:
            raise Violation(
                OFFSETS_CONTIGUOUS,
                f"{self.name} was given {offset} of partition {number} after"
                f" {self.positions[number] - 1}",
            )
        self.positions[number] = offset + 1
        self.heard_us = now_us()
        self._history.on_consumed(
            TopicPartition(TOPIC, number),
            offset=offset,
            next_offset=offset + 1,
            crc=int(message.value() or b"-1"),
        )

    def _go_back(self) -> None:
        for number, position in self.positions.items():
            back = self._chance.randrange(min(position, BACK_MAX) + 1)
            self.positions[number] = position - back
        self._consumer.assign([Place(TOPIC, *each) for each in self.positions.items()])

    def end_of(self, number: int) -> int:
        return self._consumer.end_of(Place(TOPIC, number))

    def close(self) -> None:
        self._consumer.close()


_GONE: Final = frozenset(
    {
        KafkaError.OFFSET_OUT_OF_RANGE,
        KafkaError._AUTO_OFFSET_RESET,
        KafkaError._LOG_TRUNCATION,
    }
)
"""What a reader is told when what it has read is not there any more."""
