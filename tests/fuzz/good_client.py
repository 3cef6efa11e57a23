"""A client that behaves, in a thread beside an attack: produces with acks=all and reads back."""

from __future__ import annotations

import logging
import threading
import time
from typing import Final, NamedTuple, Self

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

TOPIC: Final = "good"
PARTITIONS: Final = 2
SETTINGS: Final = {"max.message.bytes": "1000000", "retention.ms": "-1", "cleanup.policy": "delete"}
"""Its own, so that what others do to the cluster's defaults does not concern it."""
BETWEEN_SECONDS: Final = 0.005
SERVED_WITHIN_SECONDS: Final = 10.0

QUIET: Final = logging.getLogger("tests.good_client")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False


class Service(NamedTuple):
    """How the good client was served."""

    records: int
    median_ms: float
    worst_ms: float

    def told(self) -> str:
        return (
            f"beside it {self.records:,} good records acknowledged and read back, "
            f"median {self.median_ms:.1f} ms, worst {self.worst_ms:.0f} ms"
        )


class GoodClient:
    """Goes on from its creation to ``finish``."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._ending = threading.Event()
        self._acknowledged: dict[tuple[int, int], bytes] = {}
        self._latencies_ms: list[float] = []
        self._failures: list[str] = []
        self._thread = threading.Thread(target=self._produce, daemon=True)
        admin = AdminClient({"bootstrap.servers": bootstrap}, logger=QUIET)
        topic = NewTopic(TOPIC, PARTITIONS, 1, config=SETTINGS)
        admin.create_topics([topic])[TOPIC].result(SERVED_WITHIN_SECONDS)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def finish(self) -> Service:
        """End, read everything, and compare; AssertionError if anything is not as promised."""
        self._ending.set()
        self._thread.join()
        assert not self._failures, self._failures[:3]
        assert self._acknowledged
        assert self._read_back() == self._acknowledged
        ordered = sorted(self._latencies_ms)
        assert ordered[-1] < SERVED_WITHIN_SECONDS * 1000
        return Service(len(ordered), ordered[len(ordered) // 2], ordered[-1])

    def _produce(self) -> None:
        """One record at a time, so that every one of them tells how long it took."""
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "enable.idempotence": True,
                "linger.ms": 0,
                "message.timeout.ms": int(SERVED_WITHIN_SECONDS * 1000),
            },
            logger=QUIET,
        )
        number = 0
        while not self._ending.is_set():
            begun = time.monotonic()
            value = b"record %d" % number
            partition = number % PARTITIONS
            producer.produce(TOPIC, value, partition=partition, on_delivery=self._on_delivery)
            producer.flush(2 * SERVED_WITHIN_SECONDS)
            self._latencies_ms.append((time.monotonic() - begun) * 1000)
            number += 1
            self._ending.wait(BETWEEN_SECONDS)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failures.append(error.str())
            return
        place = (message.partition() or 0, message.offset() or 0)
        self._acknowledged[place] = bytes(message.value() or b"")

    def _read_back(self) -> dict[tuple[int, int], bytes]:
        consumer = Consumer(
            {"bootstrap.servers": self._bootstrap, "group.id": "g", "enable.auto.commit": False},
            logger=QUIET,
        )
        consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
        found: dict[tuple[int, int], bytes] = {}
        while len(found) < len(self._acknowledged):
            left = len(self._acknowledged) - len(found)
            messages = consumer.consume(min(left, 10_000), SERVED_WITHIN_SECONDS)
            assert messages, f"only {len(found)} of {len(self._acknowledged)} records came back"
            for message in messages:
                assert message.error() is None, message.error()
                place = (message.partition() or 0, message.offset() or 0)
                found[place] = bytes(message.value() or b"")
        consumer.close()
        return found
