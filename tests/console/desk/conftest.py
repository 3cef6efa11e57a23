"""Questions of the desk, asked of brokers in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cotidal.client.admin import create_topic, delete_topics
from cotidal.client.cluster import Cluster as Client
from cotidal.client.producer import Producer
from cotidal.console.desk.question import Desk
from cotidal.console.desk.questions import QUESTIONS
from cotidal.console.world import Command
from cotidal.testing.cluster import Cluster

PATIENCE_S = 30.0

Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Three brokers, shared by the tests of a module."""
    with Cluster(3) as made:
        yield made


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Client]:
    with Client(cluster.bootstrap, timeout_s=20.0) as made:
        yield made


@pytest.fixture
def ask(cluster: Cluster) -> Ask:
    """``ask("topic", topic="orders")``, with connections of its own, as a clerk does."""

    def asked(what: str, **arguments: object) -> dict[str, Any]:
        with Client(cluster.bootstrap, timeout_s=20.0, connect_timeout_s=2.0) as own:
            return QUESTIONS[what].answer(Desk(own, None), Command({**arguments, "do": what}))

    return asked


@pytest.fixture
def until() -> Callable[[Callable[[], object]], None]:
    """Waits for a condition."""

    def waited(holds: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline, "it did not come to be"
            time.sleep(0.05)

    return waited


@pytest.fixture
def make_topic(client: Client) -> Callable[..., str]:
    """``make_topic("orders", b"one", b"two")``: with these values in partition 0."""

    def made(
        name: str, *values: bytes, partitions: int = 1, replicas: int = 3, **configs: str
    ) -> str:
        if any(each.name == name for each in client.metadata().topics):
            delete_topics(client, [name])  # a first try of the same test left it
        named = {setting.replace("_", "."): value for setting, value in configs.items()}
        create_topic(
            client, name, partitions=partitions, replication_factor=replicas, configs=named
        )
        deadline = time.monotonic() + PATIENCE_S
        while not all(each.has_leader for each in client.topic(name).partitions):
            assert time.monotonic() < deadline
        if values:
            producer = Producer(client, name, partition=0)
            for value in values:
                producer.add(value)
            producer.flush()
        return name

    return made
