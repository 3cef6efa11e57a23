"""Consumer groups whose coordinator is killed: no commit is lost, and no member."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from cotidal.core.coordinator import partition_of
from real_cluster import QUICK, RealCluster, Writing, until
from tests.clients.members import MEMBERS

# kafka-python leaves a socket to the collector now and then.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

OFFSETS = "__consumer_offsets"


class Reader:
    """A member that commits what it has read after every record."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.assignments: list[list[int]] = []
        self.committed = 0
        self._topic = topic
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 10_000,
                **QUICK,
            }
        )
        self._consumer.subscribe([topic], on_assign=self._on_assign)

    def _on_assign(self, _: Any, partitions: list[TopicPartition]) -> None:
        self.assignments.append([each.partition for each in partitions])

    def read_one(self) -> bool:
        message = self._consumer.poll(0.1)
        if message is None or message.error():
            return False
        self._consumer.commit(message, asynchronous=False)
        self.committed = (message.offset() or 0) + 1
        return True

    def found(self) -> int:
        (told,) = self._consumer.committed([TopicPartition(self._topic, 0)], timeout=20)
        return told.offset

    def close(self) -> None:
        self._consumer.close()


def test_a_group_goes_on_when_its_coordinator_is_killed(tmp_path: Path) -> None:
    with RealCluster(tmp_path) as cluster:
        cluster.create("orders", 1)
        writing = Writing(cluster.bootstrap, "orders", 0)
        writing.until_acknowledged(60)
        reader = Reader(cluster.bootstrap, "readers", "orders")
        until(lambda: reader.read_one() and reader.committed >= 20)
        for goal in (40, 60):
            offsets = cluster.partitions(OFFSETS)
            coordinator = offsets[partition_of("readers", len(offsets))].leader
            cluster.kill(coordinator)
            assert reader.found() == reader.committed
            until(lambda goal=goal: reader.read_one() and reader.committed >= goal)  # type: ignore[misc]
            cluster.start_again()
            cluster.until_in_sync(OFFSETS)
        assert reader.found() == 60
        assert reader.assignments == [[0]], "it was a member all the time"
        reader.close()
        writing.finish()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # sockets of theirs
@pytest.mark.parametrize("make", MEMBERS[1:], ids=lambda made: made.__name__)
def test_other_clients_go_on_when_their_coordinator_is_killed(tmp_path: Path, make: Any) -> None:
    with RealCluster(tmp_path) as cluster:
        cluster.create("orders", 1)
        writing = Writing(cluster.bootstrap, "orders", 0)
        writing.until_acknowledged(30)
        member = make(cluster.bootstrap, "readers", "orders")
        read: list[int] = []

        def read_to(goal: int) -> bool:
            for _, offset in member.poll():
                read.append(offset)
                member.commit()
            return len(set(read)) >= goal

        until(lambda: read_to(10))
        offsets = cluster.partitions(OFFSETS)
        cluster.kill(offsets[partition_of("readers", len(offsets))].leader)
        until(lambda: read_to(30))
        assert read == sorted(read), "what was committed is not read again"
        assert set(read) == set(range(30))
        member.close()
        writing.finish()
