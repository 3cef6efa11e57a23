"""Kafka's own tools on a quorum whose voters change: kafka-metadata-quorum, -storage, -dump-log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.apache_kafka import run_tool
from real_cluster import until
from real_controllers import CLUSTER, Controllers

pytestmark = pytest.mark.interop

OFTEN = {"metadata.log.max.record.bytes.between.snapshots": "1000"}


@pytest.fixture(scope="module")
def controllers(kafka: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controllers]:
    made = Controllers(tmp_path_factory.mktemp("controllers"), OFTEN)
    for number in (1, 2, 3):
        made.start(number)
    until(lambda: made.serve() and made.observers() == [2, 3])
    yield made
    made.stop()


def ran(name: str, *arguments: str) -> str:
    ended = run_tool(name, *arguments)
    assert ended.status == 0, f"{name} {arguments}:\n{ended.out}\n{ended.err}"
    return ended.out


def directory_id(made: Controllers, number: int) -> str:
    meta = (made.data(number) / "meta.properties").read_text()
    (found,) = re.findall(r"^directory\.id=(.*)$", meta, re.MULTILINE)
    return str(found)


@pytest.mark.parametrize("where", ["server", "controller"])
def test_voters_and_observers_are_described(controllers: Controllers, where: str) -> None:
    address = controllers.bootstrap
    if where == "controller":
        address = ",".join(f"localhost:{port}" for port in controllers.controller_ports)
    said = ran("kafka-metadata-quorum", f"--bootstrap-{where}", address, "describe", "--status")
    assert re.search(rf"ClusterId: +{CLUSTER}", said)
    voters = re.search(r"CurrentVoters: +(.*)", said)
    assert voters is not None
    assert directory_id(controllers, 1) in voters[1]
    assert f"CONTROLLER://localhost:{controllers.controller_ports[0]}" in voters[1]
    told = ran("kafka-metadata-quorum", f"--bootstrap-{where}", address, "describe",
               "--replication")  # fmt: skip
    for number in (2, 3):
        assert directory_id(controllers, number) in told


def test_controllers_are_added_and_removed(controllers: Controllers) -> None:
    at_server = ("--bootstrap-server", controllers.bootstrap)
    at_controller = ("--bootstrap-controller", f"localhost:{controllers.controller_ports[0]}")
    for number, where in ((2, at_server), (3, at_controller)):
        config = ("--command-config", str(controllers.config(number)))
        said = ran("kafka-metadata-quorum", *where, *config, "add-controller")
        assert f"Added controller {number}" in said
    assert controllers.voters() == [1, 2, 3]
    removal = ("--controller-id", "3", "--controller-directory-id", directory_id(controllers, 3))
    ran("kafka-metadata-quorum", *at_server, "remove-controller", *removal)
    assert controllers.voters() == [1, 2]
    again = run_tool("kafka-metadata-quorum", *at_server, "remove-controller", *removal)
    assert again.status != 0
    assert "is no voter" in again.out + again.err


def test_the_checkpoints_are_read(controllers: Controllers) -> None:
    for number in range(12):
        controllers.run("topic", "create", f"dumped-{number}")
    directory = controllers.data(1) / "__cluster_metadata-0"
    until(lambda: len(list(directory.glob("*.checkpoint"))) == 3)
    for path in sorted(directory.glob("*.checkpoint")):
        said = ran("kafka-dump-log", "--cluster-metadata-decoder", "--files", str(path))
        end, epoch = path.stem.split("-")
        assert f"Snapshot end offset: {int(end)}, epoch: {int(epoch)}" in said
        assert "isvalid: false" not in said
        kinds = re.findall(r"(SnapshotHeader|KRaftVersion|KRaftVoters|SnapshotFooter) \{", said)
        assert kinds == ["SnapshotHeader", "KRaftVersion", "KRaftVoters", "SnapshotFooter"]
        assert f'"voterDirectoryId":"{directory_id(controllers, 1)}"' in said
    assert '"type":"TOPIC_RECORD"' in said
    assert '"type":"REGISTER_BROKER_RECORD"' in said


def test_a_directory_that_kafka_formatted_is_started_on(kafka: None, tmp_path: Path) -> None:
    made = Controllers(tmp_path)
    for path in sorted(made.data(1).rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    config = str(made.config(1))
    ran("kafka-storage", "format", "-t", CLUSTER, "-c", config, "--standalone")
    made.start(1)
    try:
        until(made.serve)
        (voter,) = made.quorum()["voters"]
        assert (voter["node"], voter["directory_id"]) == (1, directory_id(made, 1))
    finally:
        made.stop()
