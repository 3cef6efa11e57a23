"""Read-process-write while leaders and both coordinators are killed: every record once."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from cotidal.core.coordinator import partition_of
from real_cluster import QUICK, RealCluster
from tests.clients.processing import LOOPS, Loop, Processing, by_kafka_python

PARTITIONS = 3
RECORDS = 120
"""More, before each kill."""
PATIENCE_SECONDS = 90


class Orders:
    """What is to be processed."""

    def __init__(self, bootstrap: str) -> None:
        self.count = 0
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, **QUICK}
        )

    def write(self, count: int) -> None:
        for number in range(self.count, self.count + count):
            self._producer.produce("orders", b"%d" % number, partition=number % PARTITIONS)
        self.count += count
        assert self._producer.flush(30) == 0


class Copies:
    """What a read_committed consumer sees of the results."""

    def __init__(self, bootstrap: str) -> None:
        self.seen: Counter[int] = Counter()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "-",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                **QUICK,
            }
        )
        self._consumer.assign([TopicPartition("copies", each, 0) for each in range(PARTITIONS)])

    def read(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for message in self._consumer.consume(100, 0.2):
                if message.error() is None:
                    self.seen[int(message.value() or b"")] += 1

    def until(self, count: int, processing: Processing) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(self.seen) < count:
            assert time.monotonic() < deadline, (
                f"{len(self.seen)} of {count} came; {processing.failures}"
            )
            self.read(0.2)

    def close(self) -> None:
        self._consumer.close()


def victim_of(cluster: RealCluster, what: str) -> int:
    if what == "leader":
        return int(cluster.partitions("copies")[0].leader)
    topic = {"group": "__consumer_offsets", "transaction": "__transaction_state"}[what]
    partitions = cluster.partitions(topic)
    return int(partitions[partition_of("group-of-copies", len(partitions))].leader)


@pytest.mark.parametrize(
    "loop",
    [
        pytest.param(each, marks=[pytest.mark.slow] if number else [])
        for number, each in enumerate(LOOPS)
    ],
)
def test_every_record_is_processed_once_whoever_is_killed(tmp_path: Path, loop: Loop) -> None:
    with RealCluster(tmp_path) as cluster:
        cluster.create("orders", PARTITIONS)
        cluster.create("copies", PARTITIONS)
        orders, copies = Orders(cluster.bootstrap), Copies(cluster.bootstrap)
        said = tmp_path / "processing.txt"
        with Processing(loop, said, cluster.bootstrap, "orders", "copies") as processing:
            orders.write(RECORDS)
            copies.until(RECORDS // 2, processing)
            for victim in ("transaction", "group", "leader"):
                orders.write(RECORDS)
                cluster.kill(victim_of(cluster, victim))
                if loop is not by_kafka_python:  # which waits for the one that is gone
                    copies.until(orders.count - RECORDS // 2, processing)
                cluster.start_again()
                cluster.until_in_sync("copies")
            copies.until(orders.count, processing)
            copies.read(1)
        copies.close()
        again = Copies(cluster.bootstrap)
        again.until(orders.count, processing)
        again.read(0.5)
        again.close()
        twice = {number: times for number, times in again.seen.items() if times > 1}
        assert not twice, processing.failures
        assert copies.seen == again.seen
