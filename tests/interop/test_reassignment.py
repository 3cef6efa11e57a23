"""Throttled moves: by kafka-reassign-partitions on our brokers, by our verbs on Apache Kafka's."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bench import apache_kafka
from bench.apache_kafka import run_tool
from bench.server import Recipe, Server, free_ports, serving

pytestmark = pytest.mark.interop

RECORDS = 5_000
LINE = "x" * 999
SECONDS_MAX = 120


@pytest.fixture(scope="module")
def three(
    kafka: None,
    tmp_path_factory: pytest.TempPathFactory,
    recipe_under_test: Callable[..., Recipe],
) -> Iterator[Server]:
    with serving(recipe_under_test(tmp_path_factory.mktemp("three"), 3)) as running:
        yield running


@pytest.fixture(scope="module")
def apache(kafka: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(apache_kafka.recipe(3, tmp_path_factory.mktemp("apache"))) as running:
        yield running


def tool(server: Server, name: str, *arguments: str) -> str:
    ended = run_tool(name, "--bootstrap-server", server.bootstrap, *arguments)
    assert ended.status == 0, f"{name} {arguments}:\n{ended.out}\n{ended.err}"
    return ended.out


def ours(server: Server, *arguments: str, typed: str = "") -> str:
    command = [sys.executable, "-m", "cotidal", *arguments, "--bootstrap", server.bootstrap]
    ended = subprocess.run(command, input=typed, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, (arguments, ended.stderr)
    return ended.stdout


def partition(server: Server, topic: str) -> Any:
    (found,) = json.loads(ours(server, "topic", "describe", topic, "--json"))["partitions"]
    return found


def filled(server: Server, topic: str) -> tuple[int, int]:
    """A topic of one replica and five megabytes: who has it, and somebody who has not."""
    ours(server, "topic", "create", topic, "-p", "1", "-r", "1")
    ours(server, "produce", topic, typed=f"{LINE}\n" * RECORDS)
    (origin,) = partition(server, topic)["replicas"]
    return origin, next(node for node in (1, 2, 3) if node != origin)


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not what():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.3)


def test_kafkas_tool_moves_a_partition_under_a_throttle_and_lifts_it(
    three: Server, topic: str, tmp_path: Path
) -> None:
    origin, target = filled(three, topic)
    plan = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [target]}]}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    wish = ("--reassignment-json-file", str(tmp_path / "plan.json"))
    begun = time.monotonic()
    said = tool(three, "kafka-reassign-partitions", *wish, "--execute", "--throttle", "400000")
    assert "limit was set to 400000 B/s" in said
    assert f"Successfully started partition reassignment for {topic}-0" in said
    entity = ("--entity-type", "topics", "--entity-name", topic, "--describe")
    described = tool(three, "kafka-configs", *entity)
    assert f"leader.replication.throttled.replicas=0:{origin}" in described
    assert f"follower.replication.throttled.replicas=0:{target}" in described
    until(lambda: partition(three, topic)["replicas"] == [target])
    # Five megabytes at 400 kB a second; the first fetch of one megabyte goes ahead.
    assert time.monotonic() - begun > 8
    verified = tool(three, "kafka-reassign-partitions", *wish, "--verify")
    assert f"Reassignment of partition {topic}-0 is completed" in verified
    assert "throttled.replicas" not in tool(three, "kafka-configs", *entity)
    entity = ("--entity-type", "brokers", "--entity-name", str(origin), "--describe")
    assert "throttled.rate" not in tool(three, "kafka-configs", *entity)


def test_a_move_under_a_throttle_is_cancelled_by_kafkas_tool(
    three: Server, topic: str, tmp_path: Path
) -> None:
    origin, target = filled(three, topic)
    plan = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [target]}]}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    wish = ("--reassignment-json-file", str(tmp_path / "plan.json"))
    tool(three, "kafka-reassign-partitions", *wish, "--execute", "--throttle", "1000")
    listed = tool(three, "kafka-reassign-partitions", "--list")
    assert f"{topic}-0: replicas: {target},{origin}" in listed
    said = tool(three, "kafka-reassign-partitions", *wish, "--cancel")
    assert f"Successfully cancelled partition reassignment for: {topic}-0" in said
    assert partition(three, topic)["replicas"] == [origin]


def test_our_verbs_move_a_partition_of_apache_kafka(apache: Server, topic: str) -> None:
    origin, target = filled(apache, topic)
    plan = ours(apache, "reassign", "plan", topic, "--brokers", str(target), "--json")
    assert json.loads(plan)["partitions"] == [
        {"topic": topic, "partition": 0, "replicas": [target]}
    ]
    ours(apache, "reassign", "start", "-", "--throttle", "1MB", typed=plan)
    shown = json.loads(ours(apache, "throttle", "show", "--json"))
    assert [each["leader_bytes_per_second"] for each in shown["brokers"]] == [10**6] * 3
    ours(apache, "reassign", "progress", "--wait")
    assert partition(apache, topic)["replicas"] == [target]
    ours(apache, "throttle", "clear")
    assert json.loads(ours(apache, "throttle", "show", "--json")) == {"brokers": [], "topics": []}
    assert origin != target


def test_status_tells_of_apache_kafka_what_its_apis_can_tell(apache: Server, topic: str) -> None:
    ours(apache, "topic", "create", topic, "-p", "1", "-r", "3")
    ours(apache, "produce", topic, typed="a\nb\nc\n")

    def standing() -> Any:
        (found,) = json.loads(ours(apache, "status", topic, "--json"))["partitions"]
        return found

    until(lambda: [each["log_end_offset"] for each in standing()["standing"]] == [3, 3, 3])
    found = standing()
    assert (found["start_offset"], found["end_offset"], found["elr"]) == (0, 3, [])
    assert sorted(each["role"] for each in found["standing"]) == ["in sync", "in sync", "leader"]
    assert all(each["epochs"] is None for each in found["standing"])
    followers = [each for each in found["standing"] if each["role"] == "in sync"]
    for each in followers:
        assert each["loss_if_elected"] == {
            "acknowledged_with_acks_all": 0,
            "acknowledged_with_acks_1_at_most": 0,
            "bound": "exact",
        }
    assert "in sync" in ours(apache, "status", topic)


def two_disks(directory: Path) -> Recipe:
    """One node of ours with two log directories, formatted and not started."""
    client, controller = free_ports(2)
    file = directory / "server.properties"
    file.write_text(
        "process.roles=broker,controller\n"
        "node.id=1\n"
        f"listeners=PLAINTEXT://localhost:{client},CONTROLLER://localhost:{controller}\n"
        "controller.listener.names=CONTROLLER\n"
        f"controller.quorum.voters=1@localhost:{controller}\n"
        f"log.dirs={directory}/a,{directory}/b\n"
    )
    cotidal = (sys.executable, "-m", "cotidal")
    subprocess.run([*cotidal, "format", "--config", str(file)], check=True, capture_output=True)
    return Recipe("cotidal", ((*cotidal, "broker", "--config", str(file)),), (client,), directory)


def test_kafkas_tool_moves_a_replica_to_another_directory_under_its_throttle(
    kafka: None, topic: str, tmp_path: Path
) -> None:
    with serving(two_disks(tmp_path)) as server:
        ours(server, "topic", "create", topic, "-p", "1", "-r", "1")
        ours(server, "produce", topic, typed=f"{LINE}\n" * RECORDS)
        source, target = sorted(
            (tmp_path / "a", tmp_path / "b"), key=lambda path: not (path / f"{topic}-0").exists()
        )
        moved = {"topic": topic, "partition": 0, "replicas": [1], "log_dirs": [str(target)]}
        (tmp_path / "plan.json").write_text(json.dumps({"version": 1, "partitions": [moved]}))
        wish = ("--reassignment-json-file", str(tmp_path / "plan.json"))
        begun = time.monotonic()
        throttle = ("--replica-alter-log-dirs-throttle", "500000")
        said = tool(server, "kafka-reassign-partitions", *wish, "--execute", *throttle)
        assert f"Successfully started moving log directory to {target}" in said
        until((target / f"{topic}-0").exists)
        # Five megabytes at 500 kB a second.
        assert time.monotonic() - begun > 8
        until(lambda: not (source / f"{topic}-0").exists())
        verified = tool(server, "kafka-reassign-partitions", *wish, "--verify")
        assert f"Reassignment of replica {topic}-0-1 completed successfully" in verified
        entity = ("--entity-type", "brokers", "--entity-name", "1", "--describe")
        assert "alter.log.dirs" not in tool(server, "kafka-configs", *entity)
