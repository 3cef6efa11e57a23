"""Brokers of two makes in one cluster: the hardest test of fidelity that there is.

Two brokers of ours and one of Apache Kafka hold three replicas of each partition, under controllers
of either make, or of both in one quorum. Under acks=all load each broker is killed with -9 in turn,
and each leads in turn: nothing that was acknowledged is lost, and in the end the three logs of each
partition are equal byte by byte.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from bench.apache_kafka import run_tool
from real_cluster import QUICK, Writing, read_all, until
from tests.interop.mixed_cluster import Make, MixedCluster, running

pytestmark = pytest.mark.interop

OURS, THEIRS = Make.COTIDAL, Make.KAFKA
TOPIC = "mixed"
METADATA = "__cluster_metadata"
OFFSETS = "__consumer_offsets"
PARTITIONS = range(3)
BROKERS = (OURS, OURS, THEIRS)


@pytest.mark.parametrize(
    "controllers",
    [(OURS, OURS, OURS), (THEIRS,)],
    ids=["our controllers", "their controller"],
)
def test_nothing_acknowledged_is_lost_and_all_logs_are_equal(
    kafka: None, tmp_path: Path, controllers: tuple[Make, ...]
) -> None:
    with running(tmp_path, brokers=BROKERS, controllers=controllers) as cluster:
        cluster.create(TOPIC)
        cluster.until_in_sync(TOPIC)
        leaders = {each.leader for each in cluster.partitions(TOPIC).values()}
        assert leaders == {1, 2, 3}, "each broker leads one partition"
        writings = {
            partition: Writing(cluster.bootstrap, TOPIC, partition) for partition in PARTITIONS
        }
        for number in cluster.brokers:
            lose(cluster, number, writings)
        for writing in writings.values():
            writing.finish()
            assert writing.failures == []
        cluster.until_in_sync(TOPIC)
        for partition, writing in writings.items():
            wanted = set(writing.acknowledged)
            found = read_all(cluster.bootstrap, TOPIC, partition, wanted)
            assert wanted <= set(found)
            assert len(found) == len(set(found)), "nothing is there twice"
        for broker in cluster.brokers.values():
            assert broker.stop() in (0, 143), broker.said()
        for partition in PARTITIONS:
            ours, other, theirs = (
                broker.log_bytes(TOPIC, partition) for broker in cluster.brokers.values()
            )
            assert ours
            assert ours == other == theirs


def lose(cluster: MixedCluster, number: int, writings: dict[int, Writing]) -> None:
    """kill -9 under load; it comes back, catches up, and leads again."""
    for writing in writings.values():
        writing.until_acknowledged(300)
    cluster.brokers[number].kill()
    for writing in writings.values():
        writing.until_acknowledged(300)
    cluster.brokers[number].start()
    cluster.until_serving(number)
    cluster.until_in_sync(TOPIC)
    cluster.elect_preferred(TOPIC)


def test_controllers_of_both_makes_vote_and_lead_in_one_quorum(kafka: None, tmp_path: Path) -> None:
    with running(tmp_path, brokers=BROKERS, controllers=(OURS, OURS, THEIRS)) as cluster:
        for controller in cluster.controllers.values():
            where = ("--bootstrap-controller", f"127.0.0.1:{controller.port}")
            told = run_tool("kafka-metadata-quorum", *where, "describe", "--status")
            assert told.status == 0, told.err
            assert f"LeaderId:               {cluster.quorum_leader()}" in told.out
        cluster.create(TOPIC)
        writing = Writing(cluster.bootstrap, TOPIC, 0)
        led = [cluster.quorum_leader()]
        makes = {cluster.controllers[led[0]].make}
        while len(led) < 4 or makes != {OURS, THEIRS}:
            assert len(led) < 12, f"both makes should have led by now: {led}"
            writing.until_acknowledged(50)
            cluster.controllers[led[-1]].kill()
            leader = cluster.quorum_leader(other_than=led[-1])
            cluster.create(f"decided-{len(led)}")
            cluster.controllers[led[-1]].start()
            cluster.until_follows(led[-1])
            led.append(leader)
            makes.add(cluster.controllers[leader].make)
        writing.finish()
        assert writing.failures == []
        decided = {f"decided-{number}" for number in range(1, len(led))}
        for broker in cluster.brokers.values():
            assert decided <= cluster.topics_known_to(broker)
        for controller in cluster.controllers.values():
            controller.kill()
        logs = [each.log_bytes(METADATA, 0) for each in cluster.controllers.values()]
        shortest = min(map(len, logs))
        assert shortest > 1_000
        assert len({log[:shortest] for log in logs}) == 1, "one metadata log, byte by byte"


def test_a_group_keeps_its_place_wherever_its_coordinator_is(kafka: None, tmp_path: Path) -> None:
    """What one make has written into __consumer_offsets the other one reads, and goes on with."""
    with running(tmp_path, brokers=BROKERS, controllers=(OURS,)) as cluster:
        cluster.create(TOPIC, partitions=1)
        values = [b"%d" % number for number in range(40)]
        assert taken_by_group(cluster, values[:10]) == values[:10]
        for number, at in zip(cluster.brokers, (10, 20, 30), strict=True):
            cluster.until_in_sync(OFFSETS)
            cluster.brokers[number].kill()
            assert taken_by_group(cluster, values[at : at + 10]) == values[at : at + 10]
            cluster.brokers[number].start()
            cluster.until_serving(number)


def taken_by_group(cluster: MixedCluster, values: list[bytes]) -> list[bytes]:
    """Write these, and read as a group from where it last committed."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", **QUICK})
    for value in values:
        producer.produce(TOPIC, value)
    assert producer.flush(40) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **QUICK,
        }
    )
    found: list[bytes] = []
    try:
        consumer.subscribe([TOPIC])

        def has_all() -> bool:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                value = message.value()
                assert isinstance(value, bytes)
                found.append(value)
            return len(found) >= len(values)

        until(has_all, seconds=60)
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return found
