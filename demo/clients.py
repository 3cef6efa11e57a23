"""The clients of the story: librdkafka, as any program would use it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from demo.telling import Failed

TOPIC: Final = "orders"
PARTITION: Final = f"{TOPIC}-0"
IN_FLIGHT: Final = 500
PATIENCE_S: Final = 30

QUIET: Final = logging.getLogger("demo.client")
"""The client's own words about brokers that we kill."""
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False

_QUICK: Final[dict[str, Any]] = {
    "linger.ms": 1,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "topic.metadata.refresh.fast.interval.ms": 50,
}


class Admin:
    def __init__(self, bootstrap: str) -> None:
        self._client = AdminClient({"bootstrap.servers": bootstrap, **_QUICK}, logger=QUIET)

    def create_topic(self) -> None:
        topic = NewTopic(TOPIC, 1, 3, config={"min.insync.replicas": "2"})
        self._client.create_topics([topic])[TOPIC].result(PATIENCE_S)

    def leader(self) -> int:
        return int(self._partition().leader)

    def until_in_sync(self, replicas: int) -> float:
        """Seconds until so many are in the ISR."""
        begun = time.perf_counter()
        while len(self._partition().isrs) < replicas:
            if time.perf_counter() - begun > PATIENCE_S:
                raise Failed(f"not all of {replicas} replicas came back into the ISR")
            time.sleep(0.05)
        return time.perf_counter() - begun

    def _partition(self) -> Any:
        return self._client.list_topics(TOPIC, timeout=PATIENCE_S).topics[TOPIC].partitions[0]


class Writer:
    """An idempotent producer of ascending numbers with acks=all; knows what was acknowledged."""

    def __init__(self, bootstrap: str) -> None:
        self.acked: dict[int, int] = {}
        """Number -> offset."""
        self._times: list[float] = []
        self._next = 0
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "acks": "all"}
        self._producer = Producer({**settings, **_QUICK}, logger=QUIET)

    def write(self, count: int, during: Callable[[], None] = lambda: None) -> None:
        """So many more, ``during`` called again and again meanwhile."""
        for _ in range(count):
            value = b"%d" % self._next
            self._next += 1
            self._producer.produce(TOPIC, value, partition=0, on_delivery=self._on_delivery)
            while len(self._producer) > IN_FLIGHT:
                self._producer.poll(0.01)
                during()
        self._producer.flush(PATIENCE_S)

    def longest_gap_s(self, since: float) -> float:
        """Between two acknowledgements, from the moment given on."""
        times = [since, *(moment for moment in self._times if moment > since)]
        return max((after - before for before, after in pairwise(times)), default=0.0)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acked[int(message.value() or b"-1")] = message.offset() or 0
            self._times.append(time.perf_counter())


def write_to_the_leader_alone(bootstrap: str, count: int) -> int:
    """With acks=1, from a client of its own; how many the leader acknowledged.

    Negative numbers. The first one goes ahead: it answers the fetches that the followers have
    under way, so that a follower finds it when it wakes, and nothing of what comes after it.
    """
    acked = 0

    def on_delivery(error: KafkaError | None, _message: Message) -> None:
        nonlocal acked
        acked += error is None

    settings = {"bootstrap.servers": bootstrap, "acks": 1, **_QUICK}
    producer = Producer(settings, logger=QUIET)
    for number in range(count):
        producer.produce(TOPIC, b"-%d" % (number + 1), partition=0, on_delivery=on_delivery)
        if number == 0:
            producer.flush(2)
    producer.flush(2)
    return acked


def read_back(bootstrap: str) -> list[int]:
    """Every value from the beginning to the end."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "demo", "enable.auto.commit": False}
    consumer = Consumer(settings, logger=QUIET)
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    _, end = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=PATIENCE_S)
    values: list[int] = []
    while len(values) < end:
        messages = consumer.consume(min(5_000, end - len(values)), 5.0)
        if not messages:
            raise Failed(f"only {len(values)} of {end} records came back")
        values += [int(message.value() or b"0") for message in messages if not message.error()]
    consumer.close()
    return values
