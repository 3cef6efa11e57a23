"""A consumer that names its rack reads from the replica there (KIP-392); the metrics prove it."""

from __future__ import annotations

import re
import time
import urllib.request
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from cotidal.testing.cluster import Cluster

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
TOPIC = "near"
RECORDS = 3_000
VALUE = b"x" * 1_000
SECONDS_MAX = 60


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Three brokers, each in a rack of its own, and three replicas of everything."""
    settings = {"replica.selector.class": RACK_AWARE, "cotidal.metrics.port": "0"}
    with Cluster(3, settings=settings) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 1, 3)])[TOPIC].result(30)
        producer = Producer({"bootstrap.servers": running.bootstrap, "acks": "all"})
        for _ in range(RECORDS):
            producer.produce(TOPIC, VALUE)
            producer.poll(0)
        assert producer.flush(60) == 0
        yield running


def bytes_out(cluster: Cluster, node: int) -> int:
    """What this broker has sent to whoever asked it."""
    address = cluster._running[node].metrics_address
    assert address is not None
    url = f"http://{address.host}:{address.port}/metrics"
    with urllib.request.urlopen(url, timeout=10) as answer:
        text = answer.read().decode()
    found = re.search(r"^cotidal_bytes_out_total (\d+)", text, re.M)
    assert found is not None
    return int(found[1])


def sent_while_reading(cluster: Cluster, rack: str) -> dict[int, int]:
    """Bytes that each broker sends while a consumer of this rack reads everything."""
    before = {node: bytes_out(cluster, node) for node in cluster.nodes}
    config = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": f"reads-in-{rack or 'no-rack'}",
        "enable.auto.commit": False,
        # So that the leader is asked before anything is fetched from it ahead of need.
        "queued.max.messages.kbytes": 256,
        "fetch.message.max.bytes": 65_536,
    }
    consumer = Consumer(config | ({"client.rack": rack} if rack else {}))
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    count, deadline = 0, time.monotonic() + SECONDS_MAX
    while count < RECORDS and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is not None:
            assert message.error() is None
            count += 1
    consumer.close()
    assert count == RECORDS
    return {node: bytes_out(cluster, node) - before[node] for node in cluster.nodes}


def leader_of(cluster: Cluster) -> int:
    metadata = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(TOPIC, 30)
    return int(metadata.topics[TOPIC].partitions[0].leader)


def test_a_consumer_reads_from_the_follower_in_its_rack(cluster: Cluster) -> None:
    leader = leader_of(cluster)
    near = next(node for node in cluster.nodes if node != leader)
    sent = sent_while_reading(cluster, f"rack-{near}")
    everything = RECORDS * len(VALUE)
    assert sent[near] > everything
    assert sum(sent.values()) - sent[near] < everything // 10, sent


def test_a_consumer_without_a_rack_reads_from_the_leader(cluster: Cluster) -> None:
    leader = leader_of(cluster)
    sent = sent_while_reading(cluster, "")
    assert sent[leader] > RECORDS * len(VALUE)
    assert sum(sent.values()) - sent[leader] < RECORDS * len(VALUE) // 10, sent
