"""Scripted replies, as clients meet them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer

from cotidal.client.admin import create_topic
from cotidal.client.cluster import Cluster as Client
from cotidal.client.connection import Connection
from cotidal.client.failures import ClientError
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.list_groups import ListGroupsRequest, ListGroupsResponse
from cotidal.messages.rpc.metadata import MetadataRequest, MetadataResponse
from cotidal.testing.cluster import Cluster, ClusterFailed
from cotidal.testing.replies import (
    Close,
    Fetch,
    FindCoordinator,
    Heartbeat,
    Metadata,
    Produce,
)

QUICK = {"retry.backoff.ms": 20, "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 100}
PAGE = Path(__file__).resolve().parents[2] / "docs" / "testing.md"


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    with Cluster(3, settings={"group.initial.rebalance.delay.ms": "0"}) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: Cluster) -> Iterator[Cluster]:
    yield shared
    shared.as_usual()


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    name = re.sub(r"\W", "-", request.node.name)[:80]
    with Client(cluster.bootstrap) as client:
        create_topic(client, name, partitions=1, configs={})
    return name


def producer(cluster: Cluster, **settings: Any) -> Producer:
    known = {"bootstrap.servers": cluster.bootstrap, "log_level": 0, "linger.ms": 0, **QUICK}
    return Producer({**known, **{key.replace("_", "."): value for key, value in settings.items()}})


def written(cluster: Cluster, topic: str) -> list[bytes]:
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": f"read-{topic}"}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest", "log_level": 0, **QUICK})
    consumer.subscribe([topic])
    found: list[bytes] = []
    quiet_at = time.monotonic() + 20
    while time.monotonic() < quiet_at:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            found.append(message.value() or b"")
            quiet_at = time.monotonic() + 1
    consumer.close()
    return found


def one_by_one(producer: Producer, topic: str, *values: bytes) -> list[KafkaError | None]:
    """What became of each."""
    outcomes: list[KafkaError | None] = []
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: outcomes.append(error))
        assert producer.flush(20) == 0
    return outcomes


def test_the_third_produce_is_refused_and_tried_again(cluster: Cluster, topic: str) -> None:
    rule = cluster.on(Produce, nth=3, reply=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    outcomes = one_by_one(producer(cluster), topic, b"a", b"b", b"c", b"d")
    assert outcomes == [None] * 4
    assert (rule.hits, rule.seen) == (1, 5)
    assert written(cluster, topic) == [b"a", b"b", b"c", b"d"]


def test_an_error_that_no_client_tries_again_reaches_it(cluster: Cluster, topic: str) -> None:
    cluster.on(Produce, times=None, reply=ErrorCode.MESSAGE_TOO_LARGE)
    (outcome,) = one_by_one(producer(cluster), topic, b"a")
    assert outcome is not None
    assert outcome.code() == KafkaError.MSG_SIZE_TOO_LARGE
    cluster.as_usual()
    assert one_by_one(producer(cluster), topic, b"b") == [None]
    assert written(cluster, topic) == [b"b"], "what was refused was not written"


def test_an_answer_that_is_lost_is_the_clients_to_make_good(cluster: Cluster, topic: str) -> None:
    """Without idempotence what was written is written again; with it, not."""
    rule = cluster.on(Produce, client_id="naive", close=Close.AFTER)
    naive = producer(cluster, client_id="naive", enable_idempotence=False)
    assert one_by_one(naive, topic, b"twice") == [None]
    rule.wait()
    cluster.on(Produce, client_id="careful", close=Close.AFTER)
    careful = producer(cluster, client_id="careful", enable_idempotence=True)
    assert one_by_one(careful, topic, b"once") == [None]
    assert written(cluster, topic) == [b"twice", b"twice", b"once"]


def test_a_request_that_is_lost_was_never_handled(cluster: Cluster, topic: str) -> None:
    cluster.on(Produce, close=Close.BEFORE)
    naive = producer(cluster, enable_idempotence=False)
    assert one_by_one(naive, topic, b"once") == [None]
    assert written(cluster, topic) == [b"once"]


def test_a_delay_holds_what_follows_on_the_connection_too(cluster: Cluster) -> None:
    """Three requests in one go, then another: answers come in order, however they were made."""
    groups = (ApiKey.LIST_GROUPS, ListGroupsRequest())
    with Client(cluster.bootstrap) as client:
        client.metadata()
        connection: Connection = client.any_connection()
        cluster.on(Metadata, delay=1)
        cluster.on(ListGroupsRequest, nth=2, reply=ErrorCode.NOT_COORDINATOR)
        began = time.monotonic()
        connection.send(*groups)
        connection.send(ApiKey.METADATA, MetadataRequest())
        connection.send(*groups)
        assert connection.receive(ListGroupsResponse).error_code == 0
        assert time.monotonic() - began < 0.9, "what came before it does not wait"
        time.sleep(0.2)
        connection.send(*groups)
        connection.receive(MetadataResponse)
        assert time.monotonic() - began >= 1
        errors = [connection.receive(ListGroupsResponse).error_code for _ in range(2)]
        assert errors == [ErrorCode.NOT_COORDINATOR, 0]


def test_a_delay_of_one_connection_is_none_of_another(cluster: Cluster) -> None:
    with Client(cluster.bootstrap) as slow, Client(cluster.bootstrap) as quick:
        slow.metadata()
        quick.metadata()
        rule = cluster.on(Metadata, delay=30)
        slow.timeout_s = 0.2
        with pytest.raises(ClientError):
            slow.metadata()
        assert rule.hits == 1
        assert quick.metadata().brokers


def test_a_rule_is_for_one_node_or_for_what_it_is_told(cluster: Cluster, topic: str) -> None:
    with Client(cluster.bootstrap) as client:
        leader = client.topic(topic).partitions[0].leader
    elsewhere = cluster.on(Produce, node=leader % 3 + 1, reply=ErrorCode.UNKNOWN_SERVER_ERROR)
    other = cluster.on(
        Produce,
        when=lambda request: request.acks == 0,
        reply=ErrorCode.UNKNOWN_SERVER_ERROR,
    )
    assert one_by_one(producer(cluster), topic, b"a") == [None]
    assert (elsewhere.seen, other.seen) == (0, 0)


def test_a_whole_response_is_sent_as_it_is(cluster: Cluster) -> None:
    cluster.on(ListGroupsRequest, reply=ListGroupsResponse(error_code=ErrorCode.NOT_COORDINATOR))
    cluster.on(
        ListGroupsRequest,
        nth=2,
        reply=lambda request: ListGroupsResponse(error_code=len(request.types_filter) + 40),
    )
    with Client(cluster.bootstrap) as client:
        errors = [
            client.ask(ApiKey.LIST_GROUPS, ListGroupsRequest(), ListGroupsResponse).error_code
            for _ in range(3)
        ]
    assert errors == [ErrorCode.NOT_COORDINATOR, 40, 0]


def test_followers_go_on_while_every_fetch_of_consumers_fails(cluster: Cluster, topic: str) -> None:
    rule = cluster.on(Fetch, times=None, reply=ErrorCode.UNKNOWN_SERVER_ERROR)
    assert one_by_one(producer(cluster, acks="all"), topic, b"a", b"b") == [None, None]
    assert rule.seen == 0, "what nodes ask each other is not scripted"


def test_a_coordinator_really_moves_and_its_group_goes_on(cluster: Cluster, topic: str) -> None:
    one_by_one(producer(cluster), topic, b"a")
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": topic, "log_level": 0}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest", **QUICK})
    consumer.subscribe([topic])
    message = consumer.poll(20)
    assert message is not None
    consumer.commit(message, asynchronous=False)
    first = cluster.move_coordinator(topic)
    second = cluster.move_coordinator(topic)
    assert first != second
    one_by_one(producer(cluster), topic, b"b")
    message = consumer.poll(20)
    assert message is not None
    assert message.value() == b"b"
    assert consumer.commit(message, asynchronous=False)[0].offset == 2
    consumer.close()


def test_a_leader_moves_where_it_is_told(cluster: Cluster, topic: str) -> None:
    with Client(cluster.bootstrap) as client:
        replicas = client.topic(topic).partitions[0].replicas
        for target in replicas:
            assert cluster.move_leader(topic, to=target) == target
            assert client.topic(topic).partitions[0].leader == target
    with pytest.raises(ClusterFailed, match="node 9 has no replica"):
        cluster.move_leader(topic, to=9)


def test_rules_that_say_nothing_are_refused(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="say what is to happen"):
        cluster.on(Heartbeat)
    with pytest.raises(ValueError, match="count from 1"):
        cluster.on(Heartbeat, nth=0, delay=1)
    with pytest.raises(ValueError, match="gets no reply"):
        cluster.on(Heartbeat, reply=ErrorCode.NONE, close=Close.AFTER)
    rule = cluster.on(FindCoordinator, delay=1)
    with pytest.raises(TimeoutError, match="FindCoordinator"):
        rule.wait(0.01)


EXAMPLES = re.findall(
    r"^```python\n(.*?)^```$",
    PAGE.read_text(encoding="utf-8").split("## Scripted replies")[1].split("\n## ")[0],
    re.S | re.M,
)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_of_the_page_holds(cotidal_cluster: Cluster, number: int) -> None:
    names: dict[str, Any] = {}
    exec(EXAMPLES[number], names)
    tests = [value for name, value in names.items() if name.startswith("test_")]
    assert tests
    for test in tests:
        test(cotidal_cluster)
