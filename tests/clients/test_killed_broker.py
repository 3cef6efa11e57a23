"""A producer whose broker dies under it goes on when it is back, and nothing is there twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message

from real_node import RealNode, real_node
from tests.clients.confluent import Confluent

RECORDS = 3_000
KILLS_AT = (500, 1_500)
IN_FLIGHT = 400


@pytest.fixture
def node_lives() -> None:
    """Not here: these tests have nodes of their own, and end them."""


def test_an_idempotent_producer_survives_its_broker(tmp_path: Path) -> None:
    with real_node(tmp_path) as node:
        client = Confluent(node.bootstrap)
        client.create_topic("numbers")
        acknowledged = write_numbers(client, node)
        got = client.read("numbers", [0], RECORDS)
        assert [int(each.value or b"-1") for each in got] == list(range(RECORDS))
        assert acknowledged == {each.offset: int(each.value or b"-1") for each in got}
        assert client.watermarks("numbers", 0) == (0, RECORDS)


def write_numbers(client: Confluent, node: RealNode) -> dict[int, int]:
    """Offset -> number of all that was acknowledged; the node is killed on the way."""
    acknowledged: dict[int, int] = {}
    kills = list(KILLS_AT)

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        acknowledged[message.offset() or 0] = int(message.value() or b"-1")

    producer = client.producer(
        enable_idempotence=True,
        linger_ms=1,
        batch_num_messages=50,
        retry_backoff_ms=20,
        reconnect_backoff_ms=20,
        reconnect_backoff_max_ms=100,
    )
    for number in range(RECORDS):
        producer.produce("numbers", b"%d" % number, partition=0, on_delivery=on_delivery)
        while len(producer) > IN_FLIGHT:
            producer.poll(0.01)
        if kills and len(acknowledged) >= kills[0]:
            kills.pop(0)
            node.restart()
    assert producer.flush(30) == 0
    assert not kills
    return acknowledged
