"""Real clients that would take more than their quota."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from cotidal.client.cluster import Cluster
from cotidal.client.quotas import change_quotas
from real_node import RealNode, real_node
from tests.clients.confluent import Confluent

RATE = 400_000
VALUE = b"x" * 10_000
SECONDS = 5


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    """A node with short windows, so that a few seconds show what is held."""
    directory: Path = tmp_path_factory.mktemp("bounded")
    with real_node(directory, {"quota.window.num": "3"}) as started:
        yield started


def limit(node: RealNode, client_id: str, **quotas: float | None) -> None:
    with Cluster(node.bootstrap) as cluster:
        change_quotas(cluster, {"client-id": client_id}, quotas)


def test_librdkafka_writes_at_its_rate(bounded: RealNode, topic: str) -> None:
    Confluent(bounded.bootstrap).create_topic(topic)
    limit(bounded, "writer", producer_byte_rate=RATE)
    throttled: list[float] = []
    producer = Producer(
        {
            "bootstrap.servers": bounded.bootstrap,
            "client.id": "writer",
            "linger.ms": 5,
            "batch.size": 50_000,
            "queue.buffering.max.messages": 100,
            "throttle_cb": lambda event: throttled.append(event.throttle_time),
        }
    )
    written = 0

    def count(error: object, message: object) -> None:
        nonlocal written
        assert error is None
        written += len(VALUE)

    def write_for(seconds: float) -> float:
        """Bytes a second that were acknowledged."""
        before, began = written, time.monotonic()
        while time.monotonic() < began + seconds:
            try:
                producer.produce(topic, VALUE, on_delivery=count)
                producer.poll(0)
            except BufferError:
                producer.poll(0.02)
        return (written - before) / (time.monotonic() - began)

    write_for(3)  # what a whole window allows comes at once
    assert write_for(SECONDS) == pytest.approx(RATE, rel=0.2)
    assert throttled, "it was told"
    limit(bounded, "writer", producer_byte_rate=None)
    producer.flush(30)


def test_librdkafka_reads_at_its_rate(bounded: RealNode, topic: str) -> None:
    client = Confluent(bounded.bootstrap)
    client.create_topic(topic)
    producer = Producer({"bootstrap.servers": bounded.bootstrap})
    for _ in range(500):
        producer.produce(topic, VALUE)
    producer.flush(30)
    limit(bounded, "reader", consumer_byte_rate=RATE)
    consumer = Consumer(
        {
            "bootstrap.servers": bounded.bootstrap,
            "client.id": "reader",
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": 100_000,
        }
    )
    consumer.subscribe([topic])

    def read_for(seconds: float) -> float:
        taken, began = 0, time.monotonic()
        while time.monotonic() < began + seconds:
            message = consumer.poll(0.02)
            if message is not None and message.error() is None:
                taken += len(message.value() or b"")
        return taken / (time.monotonic() - began)

    try:
        while read_for(0.2) == 0:
            pass
        read_for(3)
        assert read_for(SECONDS) == pytest.approx(RATE, rel=0.2)
    finally:
        limit(bounded, "reader", consumer_byte_rate=None)
        consumer.close()


def test_a_client_that_asks_all_the_time_leaves_time_for_others(
    bounded: RealNode, topic: str
) -> None:
    """A hundredth of the loop's time: far fewer questions than it could ask otherwise."""

    def ask_for(seconds: float) -> float:
        """Questions a second."""
        with Cluster(bounded.bootstrap) as cluster:
            asked, began = 0, time.monotonic()
            while time.monotonic() < began + seconds:
                cluster.metadata([])
                asked += 1
        return asked / (time.monotonic() - began)

    freely = ask_for(1)
    limit(bounded, "cotidal", request_percentage=1)
    try:
        ask_for(2)  # what a whole window allows comes at once
        assert ask_for(2) < freely / 3
    finally:
        limit(bounded, "cotidal", request_percentage=None)
