"""Kafka's console producer and consumer and its load tools: the Java client, end to end."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from bench.apache_kafka import run_tool
from bench.server import Server

pytestmark = pytest.mark.interop

Tool = Callable[..., str]


def consumed(tool: Tool, topic: str, offset: str, count: int) -> list[str]:
    """Keys and values of one partition; no group takes part."""
    said = tool(
        "kafka-console-consumer",
        *("--topic", topic, "--partition", "0", "--offset", offset),
        *("--max-messages", str(count), "--timeout-ms", "20000"),
        *("--formatter-property", "print.key=true", "--formatter-property", "key.separator==>"),
    )
    return said.splitlines()


@pytest.fixture
def one_partition(tool: Tool, topic: str) -> str:
    tool("kafka-topics", "--create", "--topic", topic, "--partitions", "1")
    return topic


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_the_console_producer_sends_the_console_consumer_reads(
    tool: Tool, one_partition: str, codec: str
) -> None:
    pairs = [(f"key{i}", f"value {i} ü") for i in range(50)]
    tool(
        "kafka-console-producer",
        *("--topic", one_partition, "--compression-codec", codec),
        *("--reader-property", "parse.key=true", "--reader-property", "key.separator=:"),
        typed="".join(f"{key}:{value}\n" for key, value in pairs),
    )
    expected = [f"{key}=>{value}" for key, value in pairs]
    assert consumed(tool, one_partition, "earliest", 50) == expected
    assert consumed(tool, one_partition, "40", 10) == expected[40:]


@pytest.mark.parametrize("acks", ["1", "all"])
def test_producer_performance_tool_has_every_record_acknowledged(
    server: Server, tool: Tool, one_partition: str, acks: str
) -> None:
    ended = run_tool(
        "kafka-producer-perf-test",
        *("--topic", one_partition, "--num-records", "20000", "--record-size", "100"),
        *("--throughput", "-1", "--bootstrap-server", server.bootstrap),
        *("--command-property", f"acks={acks}"),
        *("--command-property", f"enable.idempotence={'true' if acks == 'all' else 'false'}"),
    )
    assert ended.status == 0, ended.err
    assert re.search(r"20000 records sent, [\d.]+ records/sec", ended.out), ended.out
    offsets = tool("kafka-get-offsets", "--topic", one_partition, "--time", "latest")
    assert offsets.strip() == f"{one_partition}:0:20000"
