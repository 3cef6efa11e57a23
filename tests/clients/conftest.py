"""One node for all tests of a worker; each test has topics of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from real_node import RealNode, real_node
from tests.clients.aiokafka_client import AioKafka
from tests.clients.confluent import Confluent
from tests.clients.kafka_python import KafkaPython
from tests.clients.speaking import Client

CLIENTS = (Confluent, KafkaPython, AioKafka)

_names = count()


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    settings = {
        "auto.create.topics.enable": "false",
        "log.cleaner.backoff.ms": "200",
        "group.consumer.min.heartbeat.interval.ms": "100",
        "group.consumer.heartbeat.interval.ms": "200",
    }
    with real_node(tmp_path_factory.mktemp("node"), settings) as started:
        yield started


@pytest.fixture
def topic() -> str:
    """A name that no other test has."""
    return f"topic-{next(_names)}"


@pytest.fixture
def clients(node: RealNode) -> tuple[Client, ...]:
    return tuple(make(node.bootstrap) for make in CLIENTS)


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(node: RealNode, request: pytest.FixtureRequest) -> Client:
    made: Client = request.param(node.bootstrap)
    return made


@pytest.fixture
def confluent(node: RealNode) -> Confluent:
    return Confluent(node.bootstrap)


@pytest.fixture(autouse=True)
def node_lives(node: RealNode) -> Iterator[None]:
    """A test that ends the node fails itself, and those after it do not wait for nothing."""
    if not node.is_running:
        pytest.skip("an earlier test has ended the node")
    yield
    assert node.is_running, node.said()
