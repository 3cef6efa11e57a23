"""Groups of the consumer protocol on three processes: a member dies, then the coordinator, by -9.

Nobody is given a partition that another one has, no commit is lost, and whoever lives stays.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from cotidal.core.coordinator import partition_of
from real_cluster import QUICK, RealCluster, until

OFFSETS = "__consumer_offsets"
PARTITIONS = 6
EACH = 40
MOVING = {
    *(KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE),
    *(KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError._WAIT_COORD),
    *(KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError.REQUEST_TIMED_OUT),
}
"""What a commit may be told while its coordinator is not found."""
SETTINGS = {
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
}
VICTIM = """
import sys
from confluent_kafka import Consumer
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "readers",
                     "group.protocol": "consumer", "auto.offset.reset": "earliest",
                     "enable.auto.commit": False, "log_level": 0})
consumer.subscribe(["orders"])
known = -1
while True:
    consumer.poll(0.05)
    if len(consumer.assignment()) != known:
        known = len(consumer.assignment())
        print(known, flush=True)
"""


class Reader:
    """A member that commits every record that it reads, and says what it has."""

    def __init__(self, bootstrap: str, holders: dict[int, Reader]) -> None:
        self._holders = holders
        self.owned: set[int] = set()
        self.lost = 0
        self.committed: dict[int, int] = {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "readers",
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **QUICK,
            }
        )
        self._consumer.subscribe(
            ["orders"], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def _on_assign(self, _: Any, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            holder = self._holders.setdefault(each.partition, self)
            assert holder is self, f"partition {each.partition} has two owners"
            self.owned.add(each.partition)

    def _on_revoke(self, _: Any, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            self.owned.discard(each.partition)
            holder = self._holders.pop(each.partition, None)
            assert holder is self, f"partition {each.partition} was another one's"

    def _on_lost(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        self.lost += 1
        self._on_revoke(consumer, partitions)

    def read(self) -> None:
        message = self._consumer.poll(0.02)
        if message is not None and not message.error():
            until(lambda: self._has_committed(message))
            self.committed[message.partition() or 0] = (message.offset() or 0) + 1

    def _has_committed(self, message: Message) -> bool:
        """Not yet, as long as its coordinator moves: librdkafka says so after some tries."""
        try:
            self._consumer.commit(message, asynchronous=False)
        except KafkaException as refused:
            error: KafkaError = refused.args[0]
            if not error.retriable() and error.code() not in MOVING:
                raise
            return False
        return True

    def found(self) -> dict[int, int]:
        wanted = [TopicPartition("orders", each) for each in range(PARTITIONS)]
        told = self._consumer.committed(wanted, timeout=20)
        return {each.partition: each.offset for each in told}

    def close(self) -> None:
        self._consumer.close()


@contextmanager
def victim(bootstrap: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", VICTIM, bootstrap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_group_goes_on_when_a_member_and_then_its_coordinator_are_killed(tmp_path: Path) -> None:
    with RealCluster(tmp_path, settings=SETTINGS) as cluster:
        cluster.create("orders", PARTITIONS)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, **QUICK})
        for number in range(PARTITIONS * EACH):
            producer.produce("orders", b"%d" % number, partition=number % PARTITIONS)
        assert producer.flush(20) == 0
        holders: dict[int, Reader] = {}
        readers = [Reader(cluster.bootstrap, holders) for _ in range(2)]

        def read_until_each_has(count: int) -> None:
            def shared() -> bool:
                for reader in readers:
                    reader.read()
                return all(len(reader.owned) == count for reader in readers)

            until(shared)

        with victim(cluster.bootstrap) as process:
            read_until_each_has(2)
            assert process.stdout is not None
            while int(process.stdout.readline()) != 2:
                pass
            process.kill()
            read_until_each_has(3)
        assert set(holders) == set(range(PARTITIONS))
        before = [set(reader.owned) for reader in readers]

        offsets = cluster.partitions(OFFSETS)
        cluster.kill(offsets[partition_of("readers", len(offsets))].leader)

        def read_everything() -> bool:
            for reader in readers:
                reader.read()
            return set(readers[0].found().values()) == {EACH}

        until(read_everything)
        assert [reader.owned for reader in readers] == before, "nobody had to rebalance"
        assert [reader.lost for reader in readers] == [0, 0]
        for reader in readers:
            found = reader.found()
            assert all(found[each] >= done for each, done in reader.committed.items())
            reader.close()
