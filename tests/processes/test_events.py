"""Three processes tell what happens to them, and any client reads it."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from cotidal.client.admin import create_topic
from cotidal.client.cluster import Cluster
from cotidal.testing.cluster import ProcessCluster
from json_schema import EVENTS, violations

TOPIC = "__cotidal_events"
SETTINGS = {"cotidal.events.enable": "true", "replica.lag.time.max.ms": "2000"}


class Reader:
    """librdkafka, from the beginning of the topic on."""

    def __init__(self, bootstrap: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "x",
                "enable.auto.commit": "false",
                "socket.timeout.ms": 5_000,  # its leader may be the one that stands still
            }
        )
        self._consumer.assign([TopicPartition(TOPIC, 0, 0)])
        self.events: list[dict[str, Any]] = []

    def until(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first event that fits, of those read or to come; the test's time is the bound."""
        for event in self.events:
            if condition(event):
                return event
        while True:
            message = self._consumer.poll(0.5)
            if message is not None and message.error() is None:
                event = json.loads(message.value())
                assert violations(event, EVENTS) == []
                self.events.append(event)
                if condition(event):
                    return event

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[ProcessCluster]:
    with ProcessCluster(3, settings=SETTINGS) as running:
        with Cluster(running.bootstrap) as client:
            create_topic(client, "orders", partitions=3, configs={})
        yield running


@pytest.fixture
def reader(cluster: ProcessCluster) -> Iterator[Reader]:
    reading = Reader(cluster.bootstrap)
    yield reading
    reading.close()


def is_of(kind: str, **fields: object) -> Callable[[dict[str, Any]], bool]:
    return lambda event: event["kind"] == kind and fields.items() <= event.items()


def test_a_broker_that_is_killed_and_comes_back_is_a_story(
    cluster: ProcessCluster, reader: Reader
) -> None:
    reader.until(lambda event: event["kind"] == "health" and event["leads"] > 0)
    cluster.kill(3)
    fenced = reader.until(is_of("broker_fenced", node=3))
    gone = reader.until(lambda event: event["kind"] == "isr_shrunk" and event["removed"] == [3])
    assert gone["topic"] == "orders"
    assert gone["metadata_offset"] > fenced["metadata_offset"]
    sick = reader.until(lambda event: event["kind"] == "health" and event["under_replicated"] > 0)
    assert any(
        follower["node"] == 3 and not follower["in_sync"]
        for partition in sick["partitions"]
        for follower in partition["followers"]
    )
    cluster.start_again()
    registered = [e for e in reader.events if is_of("broker_registered", node=3)(e)]
    again = reader.until(
        lambda event: is_of("broker_registered", node=3)(event) and event not in registered
    )
    assert again["node_epoch"] > fenced["node_epoch"]
    reader.until(lambda event: event["kind"] == "isr_expanded" and 3 in event["added"])


def test_a_broker_that_stands_still_leaves_the_isr_and_comes_back(
    cluster: ProcessCluster, reader: Reader
) -> None:
    reader.until(is_of("health", teller=2))
    cluster.signal(2, signal.SIGSTOP)
    try:
        reader.until(lambda e: e["kind"] == "isr_shrunk" and 2 in e["removed"])
    finally:
        cluster.signal(2, signal.SIGCONT)
    reader.until(lambda e: e["kind"] == "isr_expanded" and 2 in e["added"])
