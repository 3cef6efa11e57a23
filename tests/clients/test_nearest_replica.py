"""Who names a rack reads from the replica there (KIP-392), tasks of Spark too: see the metrics."""

from __future__ import annotations

import re
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

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


def sent_while(cluster: Cluster, read: Callable[[Cluster, str], int], rack: str) -> dict[int, int]:
    """Bytes that each broker sends while a reader of this rack reads everything."""
    before = {node: bytes_out(cluster, node) for node in cluster.nodes}
    assert read(cluster, rack) == RECORDS
    return {node: bytes_out(cluster, node) - before[node] for node in cluster.nodes}


def consumed(cluster: Cluster, rack: str) -> int:
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
    return count


def read_by_an_executor(cluster: Cluster, rack: str) -> int:
    """As a task of Spark's does, which knows its rack from its environment."""
    pytest.importorskip("pyspark")
    pytest.importorskip("pyarrow")
    from cotidal.spark.columns import arrow_schema, full_schema
    from cotidal.spark.options import parse_source
    from cotidal.spark.planning import plan_batch
    from cotidal.spark.reading import RACK_VARIABLE, read_ranges

    given = {"kafka.bootstrap.servers": cluster.bootstrap, "subscribe": TOPIC}
    options = parse_source(given, streaming=False)
    schema = arrow_schema(full_schema(headers=False))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(RACK_VARIABLE, rack)
        return sum(batch.num_rows for batch in read_ranges(options, plan_batch(options), schema))


def leader_of(cluster: Cluster) -> int:
    metadata = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(TOPIC, 30)
    return int(metadata.topics[TOPIC].partitions[0].leader)


READERS = pytest.mark.parametrize("read", [consumed, read_by_an_executor])


@READERS
def test_a_reader_reads_from_the_follower_in_its_rack(cluster: Cluster, read: Any) -> None:
    leader = leader_of(cluster)
    near = next(node for node in cluster.nodes if node != leader)
    sent = sent_while(cluster, read, f"rack-{near}")
    everything = RECORDS * len(VALUE)
    assert sent[near] > everything
    assert sum(sent.values()) - sent[near] < everything // 10, sent


@READERS
def test_a_reader_without_a_rack_reads_from_the_leader(cluster: Cluster, read: Any) -> None:
    leader = leader_of(cluster)
    sent = sent_while(cluster, read, "")
    assert sent[leader] > RECORDS * len(VALUE)
    assert sum(sent.values()) - sent[leader] < RECORDS * len(VALUE) // 10, sent
