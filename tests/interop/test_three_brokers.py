"""Kafka's own tools against a cluster of three brokers: replicas, elections, reassignments."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.apache_kafka import run_tool
from bench.server import Recipe, Server, serving
from real_cluster import until

pytestmark = pytest.mark.interop


class Tools:
    """Kafka's tools, pointed at one cluster."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def __call__(self, name: str, *arguments: str, typed: str = "") -> str:
        where = ("--bootstrap-server", self.server.bootstrap)
        ended = run_tool(name, *where, *arguments, typed=typed)
        assert ended.status == 0, f"{name} {arguments}:\n{ended.out}\n{ended.err}"
        return ended.out

    def create(self, topic: str, *more: str) -> None:
        self("kafka-topics", "--create", "--topic", topic, *more)

    def replicas(self, topic: str) -> dict[int, tuple[int, list[int], list[int]]]:
        """Leader, replicas and ISR of each partition."""
        row = re.compile(r"Partition: (\d+)\s+Leader: (\d+)\s+Replicas: ([\d,]+)\s+Isr: ([\d,]+)")
        return {
            int(number): (int(leader), _numbers(replicas), _numbers(isr))
            for number, leader, replicas, isr in row.findall(
                self("kafka-topics", "--describe", "--topic", topic)
            )
        }


def _numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


@pytest.fixture(scope="module")
def tools(
    kafka: None,
    tmp_path_factory: pytest.TempPathFactory,
    recipe_under_test: Callable[..., Recipe],
) -> Iterator[Tools]:
    with serving(recipe_under_test(tmp_path_factory.mktemp("three"), brokers=3)) as server:
        yield Tools(server)


def test_replicas_are_spread_and_in_sync(tools: Tools, topic: str) -> None:
    tools.create(topic, "--partitions", "6", "--replication-factor", "3")
    found = tools.replicas(topic)
    assert len(found) == 6
    for leader, replicas, isr in found.values():
        assert sorted(replicas) == sorted(isr) == [1, 2, 3]
        assert leader == replicas[0]
    assert {leader for leader, _, _ in found.values()} == {1, 2, 3}
    described = ("--describe", "--under-replicated-partitions", "--topic", topic)
    assert "Partition:" not in tools("kafka-topics", *described)


def test_every_broker_is_described(tools: Tools) -> None:
    said = tools("kafka-broker-api-versions")
    assert sorted(map(int, re.findall(r"\(id: (\d+) rack:", said))) == [1, 2, 3]
    listed = run_tool(
        "kafka-cluster", "list-endpoints", "--bootstrap-server", tools.server.bootstrap
    )
    for port in tools.server.recipe.ports:
        assert str(port) in listed.out


def test_the_quorum_is_described_with_its_voters(tools: Tools) -> None:
    status = tools("kafka-metadata-quorum", "describe", "--status")
    voters = re.search(r"CurrentVoters: +(.*)", status)
    assert voters is not None
    assert re.findall(r'"id": (\d)', voters[1]) == ["1", "2", "3"]
    rows = tools("kafka-metadata-quorum", "describe", "--replication").splitlines()[1:]
    roles = sorted(row.split()[-1] for row in rows if row.strip())
    assert roles == ["Follower", "Follower", "Leader"]


def test_fixed_voters_become_changeable_by_kafkas_tool(tools: Tools) -> None:
    """Last of all that describes the quorum: it cannot be taken back."""
    tools("kafka-features", "upgrade", "--feature", "kraft.version=1")
    described = tools("kafka-features", "describe")
    row = next(line for line in described.splitlines() if "kraft.version" in line)
    assert "FinalizedVersionLevel: 1" in row
    rows = tools("kafka-metadata-quorum", "describe", "--replication").splitlines()[1:]
    directories = {row.split()[1] for row in rows if row.strip()}
    assert len(directories) == 3
    assert not any(each.startswith("AAAAAAAA") for each in directories)


def test_a_partition_moves_throttled_and_the_throttle_goes_when_it_is_verified(
    tools: Tools, topic: str, tmp_path: Path
) -> None:
    tools.create(topic, "--replica-assignment", "1:2")
    tools("kafka-console-producer", "--topic", topic, typed="x\n" * 500)
    plan = tmp_path / "plan.json"
    wish = {"topic": topic, "partition": 0, "replicas": [3, 1]}
    plan.write_text(json.dumps({"version": 1, "partitions": [wish]}))
    asked = ("kafka-reassign-partitions", "--reassignment-json-file", str(plan))
    said = tools(*asked, "--execute", "--throttle", "10000000")
    assert "Successfully started partition reassignment" in said
    verified = ""

    def is_complete() -> bool:
        nonlocal verified
        verified = tools(*asked, "--verify")
        return f"Reassignment of partition {topic}-0 is completed" in verified

    until(is_complete, seconds=60)
    assert "Clearing broker-level throttles" in verified
    (_, replicas, isr) = tools.replicas(topic)[0]
    assert (replicas, sorted(isr)) == ([3, 1], [1, 3])
    for entity in (("topics", topic), ("brokers", "3")):
        kind, name = entity
        left = tools("kafka-configs", "--entity-type", kind, "--entity-name", name, "--describe")
        assert "throttled" not in left
    offsets = tools("kafka-get-offsets", "--topic", topic, "--time", "latest")
    assert offsets.strip() == f"{topic}:0:500"


def test_preferred_leaders_are_elected(tools: Tools, topic: str, tmp_path: Path) -> None:
    tools.create(topic, "--replica-assignment", "1:2:3")
    plan = tmp_path / "plan.json"
    wish = {"topic": topic, "partition": 0, "replicas": [2, 3, 1]}
    plan.write_text(json.dumps({"version": 1, "partitions": [wish]}))
    tools("kafka-reassign-partitions", "--reassignment-json-file", str(plan), "--execute")
    until(lambda: tools.replicas(topic)[0][1] == [2, 3, 1])
    only = ("--topic", topic, "--partition", "0", "--election-type", "preferred")
    said = tools("kafka-leader-election", *only)
    assert f"{topic}-0" in said
    until(lambda: tools.replicas(topic)[0][0] == 2)


def test_the_load_tools_write_and_read_replicated_records(tools: Tools, topic: str) -> None:
    tools.create(topic, "--partitions", "3", "--replication-factor", "3")
    ended = run_tool(
        "kafka-producer-perf-test",
        *("--topic", topic, "--num-records", "30000", "--record-size", "100"),
        *("--throughput", "-1", "--bootstrap-server", tools.server.bootstrap),
        *("--command-property", "acks=all"),
    )
    assert ended.status == 0, ended.err
    assert re.search(r"30000 records sent, [\d.]+ records/sec", ended.out), ended.out
    said = tools("kafka-get-offsets", "--topic", topic, "--time", "latest").split()
    assert sum(int(row.rsplit(":", 1)[1]) for row in said) == 30_000


def test_what_the_load_tool_wrote_the_other_one_reads_as_a_group(tools: Tools, topic: str) -> None:
    tools.create(topic, "--partitions", "3", "--replication-factor", "3")
    tools("kafka-console-producer", "--topic", topic, typed="x\n" * 3_000)
    ended = run_tool(
        "kafka-consumer-perf-test",
        *("--topic", topic, "--num-records", "3000", "--timeout", "30000"),
        *("--bootstrap-server", tools.server.bootstrap),
    )
    assert ended.status == 0, ended.err
    assert re.search(r", 3000, ", ended.out), ended.out


def test_the_console_clients_write_and_read(tools: Tools, topic: str) -> None:
    tools.create(topic, "--partitions", "1", "--replication-factor", "3")
    tools("kafka-console-producer", "--topic", topic, typed="herrings\nlimes\n")
    said = tools(
        "kafka-console-consumer",
        *("--topic", topic, "--group", f"readers-of-{topic}", "--from-beginning"),
        *("--max-messages", "2", "--timeout-ms", "30000"),
    )
    assert said.splitlines() == ["herrings", "limes"]


def test_settings_are_changed_and_described(tools: Tools, topic: str) -> None:
    tools.create(topic, "--replication-factor", "3")
    of_topic = ("kafka-configs", "--entity-type", "topics", "--entity-name", topic)
    tools(*of_topic, "--alter", "--add-config", "min.insync.replicas=2,retention.ms=12345")
    said = tools(*of_topic, "--describe")
    assert "min.insync.replicas=2" in said
    assert "retention.ms=12345" in said
    tools(*of_topic, "--alter", "--delete-config", "retention.ms")
    assert "retention.ms" not in tools(*of_topic, "--describe")
