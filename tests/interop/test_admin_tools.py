"""kafka-topics, kafka-configs and the other tools of an operator, run as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.apache_kafka import run_tool
from bench.server import Server

pytestmark = pytest.mark.interop

Tool = Callable[..., str]


def create(tool: Tool, topic: str, partitions: int = 1, *more: str) -> None:
    tool("kafka-topics", "--create", "--topic", topic, "--partitions", str(partitions), *more)


def produce(tool: Tool, topic: str, count: int) -> None:
    tool("kafka-console-producer", "--topic", topic, typed="".join(f"v{i}\n" for i in range(count)))


def broker_ids(tool: Tool) -> list[int]:
    said = tool("kafka-broker-api-versions")
    return [int(number) for number in re.findall(r"\(id: (\d+) rack:", said)]


def test_topic_is_created_described_grown_and_deleted(tool: Tool, topic: str) -> None:
    create(tool, topic, 2, "--config", "retention.ms=3600000")
    assert topic in tool("kafka-topics", "--list").split()
    described = tool("kafka-topics", "--describe", "--topic", topic)
    assert "PartitionCount: 2" in described
    assert "ReplicationFactor: 1" in described
    assert "retention.ms=3600000" in described
    leaders = re.findall(
        r"Partition: (\d+)\s+Leader: (\d+)\s+Replicas: (\d+)\s+Isr: (\d+)", described
    )
    assert [int(row[0]) for row in leaders] == [0, 1]
    assert all(row[1] == row[2] == row[3] for row in leaders)

    tool("kafka-topics", "--alter", "--topic", topic, "--partitions", "5")
    assert "PartitionCount: 5" in tool("kafka-topics", "--describe", "--topic", topic)

    tool("kafka-topics", "--delete", "--topic", topic)
    assert topic not in tool("kafka-topics", "--list").split()


def test_topic_that_exists_cannot_be_created_again(server: Server, tool: Tool, topic: str) -> None:
    create(tool, topic)
    arguments = ("--bootstrap-server", server.bootstrap, "--create", "--topic", topic)
    ended = run_tool("kafka-topics", *arguments, "--partitions", "1")
    assert ended.status == 1
    assert "TopicExistsException" in ended.out + ended.err


def test_partitions_cannot_be_taken_away(server: Server, tool: Tool, topic: str) -> None:
    create(tool, topic, 3)
    arguments = ("--bootstrap-server", server.bootstrap, "--alter", "--topic", topic)
    ended = run_tool("kafka-topics", *arguments, "--partitions", "2")
    assert ended.status == 1
    assert "InvalidPartitionsException" in ended.out + ended.err


def test_topic_configuration_is_set_shown_and_removed(tool: Tool, topic: str) -> None:
    create(tool, topic)
    entity = ("--entity-type", "topics", "--entity-name", topic)
    tool("kafka-configs", *entity, "--alter", "--add-config", "retention.ms=7200000")
    assert "retention.ms=7200000" in tool("kafka-configs", *entity, "--describe")
    everything = tool("kafka-configs", *entity, "--describe", "--all")
    assert "segment.bytes=1073741824" in everything
    assert "DYNAMIC_TOPIC_CONFIG:retention.ms=7200000" in everything
    tool("kafka-configs", *entity, "--alter", "--delete-config", "retention.ms")
    assert "retention.ms" not in tool("kafka-configs", *entity, "--describe")


def test_unknown_topic_configuration_is_refused(server: Server, tool: Tool, topic: str) -> None:
    create(tool, topic)
    entity = ("--entity-type", "topics", "--entity-name", topic)
    where = ("--bootstrap-server", server.bootstrap)
    ended = run_tool("kafka-configs", *where, *entity, "--alter", "--add-config", "no.such=1")
    assert ended.status == 1
    assert "no.such" in ended.out + ended.err


def test_broker_configuration_is_set_shown_and_removed(tool: Tool) -> None:
    entity = ("--entity-type", "brokers", "--entity-name", str(broker_ids(tool)[0]))
    tool("kafka-configs", *entity, "--alter", "--add-config", "log.retention.ms=7200000")
    assert "log.retention.ms=7200000" in tool("kafka-configs", *entity, "--describe")
    tool("kafka-configs", *entity, "--alter", "--delete-config", "log.retention.ms")
    assert "7200000" not in tool("kafka-configs", *entity, "--describe")


def test_default_of_all_brokers_is_set_shown_and_removed(tool: Tool) -> None:
    entity = ("--entity-type", "brokers", "--entity-default")
    tool("kafka-configs", *entity, "--alter", "--add-config", "log.retention.ms=7300000")
    assert "log.retention.ms=7300000" in tool("kafka-configs", *entity, "--describe")
    tool("kafka-configs", *entity, "--alter", "--delete-config", "log.retention.ms")
    assert "7300000" not in tool("kafka-configs", *entity, "--describe")


def test_offsets_are_told_at_both_ends_and_at_the_newest_timestamp(tool: Tool, topic: str) -> None:
    create(tool, topic)
    produce(tool, topic, 7)

    def offset_at(time: str) -> str:
        return tool("kafka-get-offsets", "--topic", topic, "--time", time).strip()

    assert offset_at("latest") == f"{topic}:0:7"
    assert offset_at("earliest") == f"{topic}:0:0"
    assert re.fullmatch(rf"{topic}:0:[0-6]", offset_at("max-timestamp"))


def test_records_are_deleted_up_to_an_offset(tool: Tool, topic: str, tmp_path: Path) -> None:
    create(tool, topic)
    produce(tool, topic, 10)
    wish = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 4}]}
    (tmp_path / "wish.json").write_text(json.dumps(wish))
    said = tool("kafka-delete-records", "--offset-json-file", str(tmp_path / "wish.json"))
    assert re.search(rf"{topic}-0\s+low_watermark: 4", said)
    earliest = tool("kafka-get-offsets", "--topic", topic, "--time", "earliest")
    assert earliest.strip() == f"{topic}:0:4"


def test_log_directories_tell_the_size_of_each_partition(tool: Tool, topic: str) -> None:
    create(tool, topic, 2)
    produce(tool, topic, 20)
    said = tool("kafka-log-dirs", "--describe", "--topic-list", topic)
    answer = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
    (broker,) = answer["brokers"]
    (directory,) = broker["logDirs"]
    assert directory["error"] is None
    sizes = {found["partition"]: found["size"] for found in directory["partitions"]}
    assert sorted(sizes) == [f"{topic}-0", f"{topic}-1"]
    assert sum(sizes.values()) > 20 * len("v0")
    assert all(found["offsetLag"] == 0 for found in directory["partitions"])


def test_api_versions_have_no_api_that_the_tool_cannot_use(tool: Tool) -> None:
    said = tool("kafka-broker-api-versions")
    assert len(broker_ids(tool)) == 1
    for api in ("Produce(0)", "Fetch(1)", "Metadata(3)", "CreateTopics(19)", "ApiVersions(18)"):
        line = next(line for line in said.splitlines() if line.strip().startswith(api))
        assert "UNSUPPORTED" not in line
        assert "[usable:" in line


def test_quorum_has_a_leader_that_every_voter_follows(tool: Tool) -> None:
    status = tool("kafka-metadata-quorum", "describe", "--status")
    leader = re.search(r"LeaderId:\s+(\d+)", status)
    assert leader is not None
    watermark = re.search(r"HighWatermark:\s+(\d+)", status)
    assert watermark is not None
    assert int(watermark[1]) > 0
    replication = tool("kafka-metadata-quorum", "describe", "--replication").splitlines()
    rows = [line.split() for line in replication[1:] if line.strip()]
    assert [row[0] for row in rows if row[-1] == "Leader"] == [leader[1]]


def test_cluster_has_an_id_and_endpoints(server: Server, tool: Tool) -> None:
    where = ("--bootstrap-server", server.bootstrap)
    named = run_tool("kafka-cluster", "cluster-id", *where)
    assert named.status == 0, named.err
    assert re.search(r"Cluster ID: [\w-]{22}\s", named.out)
    listed = run_tool("kafka-cluster", "list-endpoints", *where)
    assert listed.status == 0, listed.err
    assert str(server.recipe.ports[0]) in listed.out


def test_finalized_features_are_told(server: Server) -> None:
    ended = run_tool("kafka-features", "--bootstrap-server", server.bootstrap, "describe")
    assert ended.status == 0, ended.err
    assert re.search(r"Feature: metadata.version\s+.*FinalizedVersionLevel: 4\.\d-IV\d", ended.out)
