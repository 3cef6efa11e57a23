"""Real clients (librdkafka) that read, process and write exactly once, each on a thread of its own.

Each is a member of one group, and copies what it reads to both partitions of another topic, in
transactions that also commit how far it has read; now and then it aborts one, or lets a newer
holder of its transactional id begin before it asks for its commit. Whatever goes wrong ends its
clients, and new ones begin, as in a program that is started again. What it did and was told is
written into the simulator's ledger, which judges it in the end: no lost, doubled or torn
transaction (``EXACTLY_ONCE``, ``TXN_ATOMIC``, ...).

A call of a transaction blocks until it is answered, so they cannot be part of the storm's one loop:
``Ledger`` is what the threads share.
"""

from __future__ import annotations

import logging
import random
import threading
from collections import Counter
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Place

from cotidal.invariants import CONSUMED_NEVER_CHANGES, TXN_FENCED
from cotidal.sim.violation import Violation
from cotidal.sim.workloads.transaction_ledger import (
    COPIES,
    COPIES_PARTITIONS,
    Fact,
    Input,
    TransactionLedger,
)
from cotidal.values import TopicPartition
from tests.chaos.clients import QUICK, TOPIC
from tests.chaos.consumer import AssignedConsumer
from tests.chaos.patience import StoodStill, within

GROUP: Final = "processors"
INPUTS_MAX: Final = 200
ABORT_ONE_IN: Final = 8
ZOMBIE_ONE_IN: Final = 12
CALL_S: Final = 15.0
STILL_S: Final = 2 * CALL_S
"""A call that takes longer never ends by itself."""
STOP_S: Final = 4 * CALL_S
"""A life has no more calls to end. A client that hangs all the same is left behind."""
PAUSE_S: Final = 0.2
"""Between two lives."""

STILL: Final = "sending offsets"

_UNHEARD: Final = logging.getLogger("cotidal.chaos.unheard")
_UNHEARD.addHandler(logging.NullHandler())
_UNHEARD.propagate = False

Results = dict[TopicPartition, dict[int, tuple[int, Input]]]
"""Output partition -> offset -> transaction and input."""


class Ledger(TransactionLedger):
    """The simulator's, for threads."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    def begin(self, whose: str, inputs: tuple[Input, ...]) -> Fact:
        with self._lock:
            return super().begin(whose, inputs)

    def on_holder(self, whose: str) -> None:
        with self._lock:
            super().on_holder(whose)

    def on_told(self, fact: Fact, *, committed: bool) -> None:
        with self._lock:
            super().on_told(fact, committed=committed)

    def on_seen(self, reader: str, value: bytes) -> tuple[int, Input]:
        with self._lock:
            return super().on_seen(reader, value)


class Processor:
    def __init__(self, bootstrap: str, name: str, ledger: Ledger, *, seed: int) -> None:
        self.broken: Violation | None = None
        self.failed: dict[str, int] = {}
        """Errors that a life ended with, and how many did."""
        self.helped: Counter[str] = Counter()
        """Lives whose librdkafka stood still, and was left behind."""
        self._bootstrap = bootstrap
        self._name = name
        self._ledger = ledger
        self._chance = random.Random(f"{name} {seed}")
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """It ends its transaction, and goes."""
        self._over.set()
        self._thread.join(STOP_S)

    def _go_on(self) -> None:
        zombie: _Zombie | None = None
        while not self._over.is_set() and self.broken is None:
            try:
                zombie = self._live(zombie)
            except KafkaException as wrong:
                error: KafkaError = wrong.args[0]
                self.failed[error.name()] = self.failed.get(error.name(), 0) + 1
                self._over.wait(PAUSE_S)
            except StoodStill:
                self.helped[STILL] += 1
            except Violation as violation:
                self.broken = violation

    def _live(self, zombie: _Zombie | None) -> _Zombie | None:
        """Until something fails or it is over; or until it has become a zombie itself."""
        producer = self._producer()
        producer.init_transactions(CALL_S)
        self._ledger.on_holder(self._name)
        if zombie is not None:
            zombie.rise()
        consumer = self._consumer()
        try:
            consumer.subscribe([TOPIC])
            while not self._over.is_set():
                inputs = _inputs(consumer.consume(INPUTS_MAX, 0.1))
                if not inputs:
                    continue
                fact = self._ledger.begin(self._name, inputs)
                producer.begin_transaction()
                self._write(producer, fact)
                self._send_offsets(producer, consumer, inputs)
                if not self._chance.randrange(ZOMBIE_ONE_IN):
                    producer.flush(CALL_S)
                    return _Zombie(producer, fact)
                if not self._chance.randrange(ABORT_ONE_IN):
                    self._abort(producer, fact)
                    for partition, offset in _begun(inputs).items():
                        consumer.seek(Place(TOPIC, partition, offset))
                else:
                    self._commit(producer, fact)
        finally:
            consumer.close()
        return None

    def _write(self, producer: Producer, fact: Fact) -> None:
        for one in fact.inputs:
            for partition in range(COPIES_PARTITIONS):
                producer.produce(COPIES, fact.value(one), partition=partition)
            producer.poll(0)

    @staticmethod
    def _send_offsets(producer: Producer, consumer: Consumer, inputs: tuple[Input, ...]) -> None:
        """librdkafka (2.16) does not look at the time that it is given, and where the group's
        coordinator was out of its metadata for a moment it waits until the state of some connection
        changes (its issues 5456 and 5511): when all is quiet again, for ever."""
        places = [Place(TOPIC, *each) for each in _reached(inputs).items()]
        group = consumer.consumer_group_metadata()
        within(STILL_S, lambda: producer.send_offsets_to_transaction(places, group, CALL_S))

    def _commit(self, producer: Producer, fact: Fact) -> None:
        fact.commit_sent = True
        try:
            producer.commit_transaction(CALL_S)
        except KafkaException as wrong:
            if wrong.args[0].txn_requires_abort():
                self._abort(producer, fact)
            raise
        self._ledger.on_told(fact, committed=True)

    def _abort(self, producer: Producer, fact: Fact) -> None:
        producer.abort_transaction(CALL_S)
        self._ledger.on_told(fact, committed=False)

    def _producer(self) -> Producer:
        return Producer(
            {
                "logger": _UNHEARD,  # a zombie that is fenced is what is wanted
                "bootstrap.servers": self._bootstrap,
                "transactional.id": self._name,
                "transaction.timeout.ms": 10_000,
                "linger.ms": 2,
                "request.timeout.ms": 3_000,
                "message.timeout.ms": 10_000,
                **QUICK,
            }
        )

    def _consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 500,
                "fetch.wait.max.ms": 100,
                "fetch.error.backoff.ms": 50,
                **QUICK,
            }
        )


class _Zombie:
    """A holder of a transactional id that has a newer one, and has not heard of it."""

    def __init__(self, producer: Producer, fact: Fact) -> None:
        self._producer = producer
        self._fact = fact

    def rise(self) -> None:
        """It asks for its commit; TXN_FENCED is broken if that comes true."""
        self._fact.commit_sent = True
        try:
            self._producer.commit_transaction(CALL_S)
        except KafkaException:
            return
        raise Violation(TXN_FENCED, f"{self._fact} was committed after its id had a new holder")


class CommittedReader:
    """Reads what processors wrote, read_committed, on leaders or in a rack."""

    def __init__(self, bootstrap: str, ledger: Ledger, *, rack: str = "") -> None:
        self.name = f"the read_committed reader in {rack or 'no rack'}"
        self.results: Results = {
            TopicPartition(COPIES, number): {} for number in range(COPIES_PARTITIONS)
        }
        self.ends: dict[int, int] = {}
        """Where it has last been told that there is nothing more."""
        self._ledger = ledger
        self._consumer = AssignedConsumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "readers",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "client.rack": rack,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 100,
                "fetch.error.backoff.ms": 50,
                "check.crcs": True,
                **QUICK,
            },
            [Place(COPIES, number, 0) for number in range(COPIES_PARTITIONS)],
        )

    @property
    def helped(self) -> Counter[str]:
        return self._consumer.helped

    def read(self) -> None:
        for message in self._consumer.consume():
            error = message.error()
            number, offset = message.partition(), message.offset()
            assert number is not None
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF and offset is not None:
                    self.ends[number] = offset
                continue
            assert offset is not None
            self._take(TopicPartition(COPIES, number), offset, message.value() or b"")

    def _take(self, place: TopicPartition, offset: int, value: bytes) -> None:
        result = self._ledger.on_seen(self.name, value)
        found = self.results[place]
        if found.setdefault(offset, result) != result:
            raise Violation(CONSUMED_NEVER_CHANGES, f"{self.name}: {place}@{offset} is {value!r}")

    @property
    def is_at_the_end(self) -> bool:
        """Nothing is open: what is stable is all there is."""
        return all(
            self.ends.get(number) == self._consumer.end_of(Place(COPIES, number))
            for number in range(COPIES_PARTITIONS)
        )

    def close(self) -> None:
        self._consumer.close()


def processed(bootstrap: str, partitions: int) -> dict[int, int]:
    """How far the group has come."""
    settings: dict[str, Any] = {"bootstrap.servers": bootstrap, "group.id": GROUP, **QUICK}
    consumer = Consumer(settings)
    try:
        asked = [Place(TOPIC, number) for number in range(partitions)]
        return {each.partition: max(0, each.offset) for each in consumer.committed(asked, 20)}
    except KafkaException:
        return {}
    finally:
        consumer.close()


def _inputs(messages: list[Message]) -> tuple[Input, ...]:
    return tuple(
        Input(TopicPartition(TOPIC, message.partition() or 0), message.offset() or 0)
        for message in messages
        if message.error() is None
    )


def _reached(inputs: tuple[Input, ...]) -> dict[int, int]:
    return {one.partition.partition: one.offset + 1 for one in inputs}


def _begun(inputs: tuple[Input, ...]) -> dict[int, int]:
    return {one.partition.partition: one.offset for one in reversed(inputs)}
