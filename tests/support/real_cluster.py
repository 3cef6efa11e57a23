"""Three brokers as processes of their own, started by ``cotidal up`` and killed one by one.

``RealCluster`` keeps its data and ports over any number of starts. Its clients are librdkafka with
quick retries, so that what a test waits for is the cluster.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from cotidal.testing.cluster import ClusterFailed, ProcessCluster
from cotidal.testing.ports import quiet_port

QUICK: Final[dict[str, Any]] = {
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "log_level": 0,
}


class RealCluster(ProcessCluster):
    PYTHON = (sys.executable, "-W", "error")

    def __init__(
        self, directory: Path, brokers: int = 3, settings: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(brokers, directory=directory, port=quiet_port(brokers), settings=settings)

    def bootstrap_without(self, *gone: int) -> str:
        ports = [self.port + node - 1 for node in self.nodes if node not in gone]
        return ",".join(f"localhost:{port}" for port in ports)

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, **QUICK})

    def create(self, topic: str, partitions: int = 3, **settings: str) -> None:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        admin = self.admin()  # its answers end with it
        created = admin.create_topics([NewTopic(topic, partitions, config=named)])[topic]
        try:
            created.result(45)
        except TimeoutError:
            raise ClusterFailed(f"{topic} was not created in 45 s\n{self.said()}") from None

    def partitions(self, topic: str) -> dict[int, Any]:
        """Leader, replicas and ISR of each."""
        found: dict[int, Any] = self.admin().list_topics(topic, timeout=10).topics[topic].partitions
        return found

    def controller(self) -> int:
        said = subprocess.run(
            [*self.PYTHON, "-m", "cotidal", "quorum", "--json", "--bootstrap", self.bootstrap],
            capture_output=True,
            text=True,
            timeout=30,
        ).stdout
        return int(said.split('"leader":')[1].split(",")[0])

    def until_in_sync(self, topic: str) -> None:
        until(
            lambda: all(
                len(partition.isrs) == min(3, self.brokers)
                for partition in self.partitions(topic).values()
            )
        )


class Writing:
    """A producer that writes on and on, acks=all, and remembers what was acknowledged when."""

    def __init__(self, bootstrap: str, topic: str, partition: int) -> None:
        self.acknowledged: dict[bytes, float] = {}
        self.failures: list[KafkaError] = []
        self._topic = topic
        self._partition = partition
        self._written = 0
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "linger.ms": 0,
                "enable.idempotence": True,
                "delivery.timeout.ms": 30_000,
                "request.timeout.ms": 5_000,
                **QUICK,
            }
        )

    def write(self, count: int) -> None:
        for _ in range(count):
            value = b"%d" % self._written
            self._written += 1
            self._producer.produce(
                self._topic, value, partition=self._partition, on_delivery=self._delivered
            )
            self._producer.poll(0.001)

    def until_acknowledged(self, more: int) -> None:
        """Write on until so many more have been acknowledged."""
        wanted = len(self.acknowledged) + more
        deadline = time.monotonic() + 40
        while len(self.acknowledged) < wanted:
            assert time.monotonic() < deadline, "no write was acknowledged"
            self.write(1)

    def finish(self) -> None:
        assert self._producer.flush(40) == 0

    def longest_gap_s(self) -> float:
        times = sorted(self.acknowledged.values())
        return max(after - before for before, after in pairwise(times))

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(error)
        else:
            value = message.value()
            assert isinstance(value, bytes)
            self.acknowledged[value] = time.monotonic()


def read_all(bootstrap: str, topic: str, partition: int, wanted: set[bytes]) -> list[bytes]:
    """What a partition holds, from its beginning until all that is wanted has been seen."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            **QUICK,
        }
    )
    found: list[bytes] = []
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        deadline = time.monotonic() + 20
        while not wanted <= set(found) and time.monotonic() < deadline:
            messages = consumer.consume(5_000, 0.2)
            found += [message.value() for message in messages if message.error() is None]
    finally:
        consumer.close()
    return found


def until(condition: Callable[[], bool], seconds: float = 40) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.02)
