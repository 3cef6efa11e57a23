"""What applications do beyond writing and reading: groups, commits, transactions (librdkafka).

  rebalance      a group of 50 members: from the moment that one leaves until all others have been
                 given their partitions again; members beat every 100 ms, or they would hear of it
                 late on any server
  commit         of one offset by one of them, each waited for: the 99th percentile
  transactions   100 records into one partition and the offset of what was read, then the commit
  loading        a broker starts again with 100,000 committed offsets: until one group
                 of each coordinator is told its own; and what the servers computed meanwhile, for
                 on a busy machine the first number is mostly the wait for a core

On clusters of their own, not those of the loads: a restart is part of it.
"""

from __future__ import annotations

import statistics
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench import usage
from bench.load import LoadFailed
from bench.row import COMMIT, LOADING, LOADING_CPU, REBALANCE, TRANSACTIONS, Row, Sample
from bench.server import Server
from cotidal.client import groups
from cotidal.client.cluster import Cluster
from cotidal.core.coordinator import partition_of
from cotidal.values import NO_NODE, Offset
from cotidal.values import TopicPartition as Partition

RECORDS_IN_TRANSACTION: Final = 100
RECORD: Final = bytes(100)
PARTITIONS_OF_A_GROUP: Final = 100
OFFSETS: Final = "__consumer_offsets"
WAIT_S: Final = 120.0


class Amount(NamedTuple):
    members: int
    rebalances: int
    commits: int
    transaction_seconds: float
    groups: int
    """With 100 committed offsets each."""


FULL: Final = Amount(members=50, rebalances=5, commits=1_000, transaction_seconds=5, groups=1_000)
QUICK: Final = Amount(members=50, rebalances=2, commits=300, transaction_seconds=2, groups=1_000)


def measure(server: Server, amount: Amount) -> dict[Row, Sample]:
    """Ends with a restart of the server."""
    admin = AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 0})
    partitions = 2 * amount.members
    with _members(server, _topic(admin, partitions), amount.members) as members:
        _until_whole(members, partitions)
        left = []
        for _ in range(amount.rebalances):
            left.append(_seconds_after_one_leaves(members))
            _until_whole(members, partitions)
        commits = _commit_seconds(members[0], amount.commits)
    transactions = _transactions_per_s(server, admin, amount.transaction_seconds)
    loading = _loading(server, admin, amount.groups)
    return {
        REBALANCE: Sample(statistics.median(left)),
        COMMIT: Sample(1e3 * statistics.quantiles(commits, n=100)[98]),
        TRANSACTIONS: Sample(transactions),
        LOADING: Sample(loading.seconds),
        LOADING_CPU: Sample(loading.cpu_seconds),
    }


class Member:
    """One of a group, polled by whoever measures."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.assigned = 0
        """How many times it was given partitions."""
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "enable.auto.commit": False,
                "heartbeat.interval.ms": 100,
                "fetch.wait.max.ms": 1_000,
                "log_level": 0,
            }
        )
        self.consumer.subscribe([topic], on_assign=self._on_assign)

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.assigned += 1
        consumer.assign(partitions)


@contextmanager
def _members(server: Server, topic: str, count: int) -> Iterator[list[Member]]:
    group = uuid.uuid4().hex
    members = [Member(server.bootstrap, group, topic) for _ in range(count)]
    try:
        yield members
    finally:
        for member in members:
            member.consumer.close()


def _until_whole(members: list[Member], partitions: int) -> None:
    """All partitions are with them, each with one, and nothing has changed for a second."""
    deadline = time.monotonic() + WAIT_S
    seen, since = -1, time.monotonic()
    while time.monotonic() < deadline:
        _poll(members)
        times = sum(member.assigned for member in members)
        held = sum(len(member.consumer.assignment()) for member in members)
        if times != seen or held != partitions:
            seen, since = times, time.monotonic()
        elif time.monotonic() - since > 1:
            return
    raise LoadFailed(f"a group of {len(members)} did not come to rest in {WAIT_S:.0f} s")


def _poll(members: list[Member]) -> None:
    for member in members:
        member.consumer.poll(0)
    time.sleep(0.001)


def _seconds_after_one_leaves(members: list[Member]) -> float:
    leaver = members.pop()
    before = [member.assigned for member in members]
    begun = time.monotonic()
    leaving = threading.Thread(target=leaver.consumer.close)
    leaving.start()
    while any(member.assigned == times for member, times in zip(members, before, strict=True)):
        if time.monotonic() - begun > WAIT_S:
            raise LoadFailed(f"a member left, and {WAIT_S:.0f} s later not all were assigned")
        _poll(members)
    took = time.monotonic() - begun
    leaving.join()
    return took


def _commit_seconds(member: Member, count: int) -> list[float]:
    (place, *_) = member.consumer.assignment()
    took = []
    for number in range(count):
        offset = TopicPartition(place.topic, place.partition, number)
        begun = time.monotonic()
        member.consumer.commit(offsets=[offset], asynchronous=False)
        took.append(time.monotonic() - begun)
    return took


def _transactions_per_s(server: Server, admin: AdminClient, seconds: float) -> float:
    topic = _topic(admin, 1)
    where: dict[str, Any] = {"bootstrap.servers": server.bootstrap, "log_level": 0}
    producer = Producer(where | {"transactional.id": topic, "linger.ms": 0})
    consumer = Consumer(where | {"group.id": topic})
    producer.init_transactions(WAIT_S)

    def go_on() -> float:
        begun, ended = time.monotonic(), 0
        while time.monotonic() - begun < seconds:
            ended += 1
            _transaction(producer, consumer, topic, ended)
        return ended / (time.monotonic() - begun)

    go_on()  # a JVM needs it
    rate = go_on()
    consumer.close()
    return rate


def _transaction(producer: Producer, consumer: Consumer, topic: str, number: int) -> None:
    producer.begin_transaction()
    for _ in range(RECORDS_IN_TRANSACTION):
        producer.produce(topic, RECORD, partition=0)
    read = [TopicPartition(topic, 0, number * RECORDS_IN_TRANSACTION)]
    producer.send_offsets_to_transaction(read, consumer.consumer_group_metadata(), WAIT_S)
    producer.commit_transaction(WAIT_S)


class Loading(NamedTuple):
    seconds: float
    cpu_seconds: float


def _loading(server: Server, admin: AdminClient, count: int) -> Loading:
    topic = _topic(admin, PARTITIONS_OF_A_GROUP)
    names = [f"{topic}-{number}" for number in range(count)]
    wanted = {Partition(topic, number): Offset(7) for number in range(PARTITIONS_OF_A_GROUP)}
    with Cluster(server.bootstrap) as client:
        for name in names:
            groups.commit_offsets(client, name, wanted)
        (topic_of_offsets,) = (each for each in client.metadata().topics if each.name == OFFSETS)
    coordinators = len(topic_of_offsets.partitions)
    probes = {partition_of(name, coordinators): name for name in names}  # one of each is enough
    server.stop()
    server.start()
    with Cluster(server.bootstrap, timeout_s=WAIT_S) as client:
        _until_led(client, topic)
        begun, used = time.monotonic(), usage.cpu_seconds(server.pids())
        for name in probes.values():
            if groups.committed_offsets(client, name) != wanted:
                raise LoadFailed(f"what {name} has committed is not there after a restart")
        used = usage.cpu_seconds(server.pids()) - used
    return Loading(time.monotonic() - begun, used)


def _until_led(client: Cluster, topic: str) -> None:
    """Partitions have leaders again: coordinators begin to load at the same moment. How long the
    controller waits for the last session of a broker is no part of it."""
    deadline = time.monotonic() + WAIT_S
    while any(each.leader == NO_NODE for each in client.topic(topic).partitions):
        if time.monotonic() > deadline:
            raise LoadFailed(f"{topic} has no leaders after a restart")
        time.sleep(0.005)


def _topic(admin: AdminClient, partitions: int) -> str:
    name = f"applications-{uuid.uuid4().hex[:8]}"
    admin.create_topics([NewTopic(name, partitions)])[name].result(WAIT_S)
    return name
