"""kafka-configs, as an operator bounds clients with it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bench.apache_kafka import run_tool
from bench.server import Server

pytestmark = pytest.mark.interop

Tool = Callable[..., str]


def test_a_quota_of_a_client_is_added_described_and_deleted(tool: Tool, topic: str) -> None:
    client = ("--entity-type", "clients", "--entity-name", topic)
    added = "producer_byte_rate=100000,consumer_byte_rate=200000,request_percentage=12.5"
    tool("kafka-configs", "--alter", "--add-config", added, *client)
    described = tool("kafka-configs", "--describe", *client)
    for quota in (
        "producer_byte_rate=100000.0",
        "consumer_byte_rate=200000.0",
        "request_percentage=12.5",
    ):
        assert quota in described
    tool("kafka-configs", "--alter", "--delete-config", "consumer_byte_rate", *client)
    described = tool("kafka-configs", "--describe", *client)
    assert "producer_byte_rate" in described
    assert "consumer_byte_rate" not in described
    rest = "producer_byte_rate,request_percentage"
    tool("kafka-configs", "--alter", "--delete-config", rest, *client)


def test_users_and_defaults_have_quotas_too(tool: Tool, topic: str) -> None:
    both = ("--entity-type", "users", "--entity-name", topic)
    both += ("--entity-type", "clients", "--entity-default")
    tool("kafka-configs", "--alter", "--add-config", "controller_mutation_rate=3", *both)
    assert "controller_mutation_rate=3.0" in tool("kafka-configs", "--describe", *both)
    users = ("--entity-type", "users", "--entity-name", topic)
    assert "controller_mutation_rate" not in tool("kafka-configs", "--describe", *users)
    tool("kafka-configs", "--alter", "--delete-config", "controller_mutation_rate", *both)


@pytest.mark.parametrize("quota", ["producer_byte_rate=0", "producer_byte_rate=-1", "speed=1"])
def test_a_quota_that_makes_no_sense_is_refused(server: Server, topic: str, quota: str) -> None:
    ended = run_tool(
        "kafka-configs",
        *("--bootstrap-server", server.bootstrap, "--alter", "--add-config", quota),
        *("--entity-type", "clients", "--entity-name", topic),
    )
    assert ended.status != 0 or "Error" in ended.out + ended.err


def test_a_producer_of_kafka_is_held_to_its_rate(tool: Tool, topic: str) -> None:
    """15 MB at 1 MB a second, of which ten seconds' worth may come at once: more than 4 s in all.
    Kafka has a client wait longer after such a burst."""
    tool("kafka-topics", "--create", "--topic", topic, "--partitions", "1")
    client = ("--entity-type", "clients", "--entity-name", topic)
    tool("kafka-configs", "--alter", "--add-config", "producer_byte_rate=1000000", *client)
    said = tool(
        "kafka-producer-perf-test",
        *("--topic", topic, "--num-records", "15000", "--record-size", "1000"),
        *("--throughput", "-1", "--command-property", f"client.id={topic}"),
    )
    last = said.strip().splitlines()[-1]
    rate = float(last.split("(")[1].split(" MB/sec")[0])
    tool("kafka-configs", "--alter", "--delete-config", "producer_byte_rate", *client)
    assert 0.3 < rate < 3.8, last
