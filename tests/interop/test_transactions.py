"""Kafka's own client and tools with transactions (version 2) on three brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from bench.apache_kafka import run_tool
from bench.server import Recipe, Server, serving

pytestmark = pytest.mark.interop

RECORDS = 5_000


@pytest.fixture(scope="module")
def server(
    kafka: None,
    tmp_path_factory: pytest.TempPathFactory,
    recipe_under_test: Callable[..., Recipe],
) -> Iterator[Server]:
    with serving(recipe_under_test(tmp_path_factory.mktemp("three"), brokers=3)) as server:
        yield server


def test_the_java_producer_commits_many_short_transactions(server: Server, topic: str) -> None:
    where = ("--bootstrap-server", server.bootstrap)

    def said(name: str, *arguments: str) -> str:
        ended = run_tool(name, *where, *arguments)
        assert ended.status == 0, f"{name} {arguments}:\n{ended.out}\n{ended.err}"
        return ended.out

    layout = ("--partitions", "3", "--replication-factor", "3")
    said("kafka-topics", "--create", "--topic", topic, *layout)
    written = said(
        "kafka-producer-perf-test",
        *("--topic", topic, "--num-records", str(RECORDS), "--record-size", "100"),
        *("--throughput", "10000", "--transactional-id", f"of-{topic}"),
        *("--transaction-duration-ms", "50"),
    )
    assert f"{RECORDS} records sent" in written
    listed = said("kafka-transactions", "list")
    assert f"of-{topic}" in listed
    described = said("kafka-transactions", "describe", "--transactional-id", f"of-{topic}")
    assert "CompleteCommit" in described
    read = said(
        "kafka-console-consumer",
        *("--topic", topic, "--from-beginning", "--isolation-level", "read_committed"),
        *("--max-messages", str(RECORDS), "--timeout-ms", "30000"),
    )
    assert len(read.splitlines()) == RECORDS


def test_no_transaction_hangs_by_the_word_of_kafkas_own_tool(server: Server, topic: str) -> None:
    where = ("--bootstrap-server", server.bootstrap)
    layout = ("--partitions", "3", "--replication-factor", "3")
    assert run_tool("kafka-topics", *where, "--create", "--topic", topic, *layout).status == 0
    producer = Producer(
        {"bootstrap.servers": server.bootstrap, "transactional.id": topic, "log_level": 0}
    )
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topic, b"v", partition=0)
    assert producer.flush(20) == 0
    for broker in ("1", "2", "3"):  # each tells of all its replicas, whoever leads them
        asked = ("find-hanging", "--broker-id", broker, "--max-transaction-timeout", "0")
        ended = run_tool("kafka-transactions", *where, *asked)
        assert ended.status == 0, ended.err
        assert topic not in ended.out, "its coordinator knows of it"
    producer.abort_transaction(20)
