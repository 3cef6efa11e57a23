"""Transactions while brokers are killed: each is read whole or not at all."""

from __future__ import annotations

import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from cotidal.core.coordinator import partition_of
from real_cluster import QUICK, RealCluster

STATE = "__transaction_state"
ID = "shop"
PARTITIONS = 3
PATIENCE_SECONDS = 30


class Writer:
    """One transactional producer; a transaction has a record in every partition."""

    def __init__(self, bootstrap: str) -> None:
        self.committed: list[int] = []
        self.aborted: list[int] = []
        self._number = 0
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": ID, "linger.ms": 0, **QUICK}
        )
        self._producer.init_transactions(PATIENCE_SECONDS)

    def one(self) -> None:
        number, self._number = self._number, self._number + 1
        producer = self._producer
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.produce("orders", b"%d" % number, partition=partition)
        try:
            if number % 4 == 3:
                producer.flush(PATIENCE_SECONDS)
                producer.abort_transaction(PATIENCE_SECONDS)
                self.aborted.append(number)
            else:
                producer.commit_transaction(PATIENCE_SECONDS)
                self.committed.append(number)
        except KafkaException as failure:
            if not failure.args[0].txn_requires_abort():
                raise
            producer.abort_transaction(PATIENCE_SECONDS)
            self.aborted.append(number)


def read(bootstrap: str) -> dict[int, list[int]]:
    """What a read_committed consumer finds, by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "-",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            **QUICK,
        }
    )
    consumer.assign([TopicPartition("orders", each, 0) for each in range(PARTITIONS)])
    found: dict[int, list[int]] = {each: [] for each in range(PARTITIONS)}
    ends: set[int | None] = set()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(ends) < PARTITIONS and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is None:
            continue
        if message.error() is not None:
            ends.add(message.partition())
        else:
            found[message.partition() or 0].append(int(message.value() or b""))
    consumer.close()
    return found


def test_transactions_are_whole_though_coordinator_and_leaders_are_killed(tmp_path: Path) -> None:
    with RealCluster(tmp_path) as cluster:
        cluster.create("orders", PARTITIONS)
        writer = Writer(cluster.bootstrap)
        for victim in ("coordinator", "leader", "coordinator"):
            for _ in range(8):
                writer.one()
            place = partition_of(ID, len(cluster.partitions(STATE)))
            topic, number = (STATE, place) if victim == "coordinator" else ("orders", 0)
            cluster.kill(cluster.partitions(topic)[number].leader)
            for _ in range(8):
                writer.one()
            cluster.start_again()
            cluster.until_in_sync(STATE)
            cluster.until_in_sync("orders")
        assert len(writer.committed) > len(writer.aborted) > 0
        assert read(cluster.bootstrap) == dict.fromkeys(range(PARTITIONS), writer.committed)
