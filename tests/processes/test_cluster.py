"""Three real brokers: what a cluster keeps when its processes die, and how soon it goes on."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

pytest.importorskip("confluent_kafka")
from cotidal.testing.cluster import ProcessCluster
from real_cluster import RealCluster, Writing, read_all, until

GAP_SECONDS_MAX = 8
"""Until the next acknowledged write. It is 0.1 s for a client that asks without a pause and 1.5 s
for librdkafka, which looks for a new leader once a second; the rest is for a busy machine."""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    with RealCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster
        assert cluster.stop() == 0


@pytest.fixture
def cluster(shared: RealCluster) -> RealCluster:
    """The shared one, with all its nodes there."""
    shared.start_again()
    until(lambda: all(shared.is_running(node) for node in shared.nodes))
    until(lambda: len(shared.admin().list_topics(timeout=10).brokers) == 3)
    return shared


def test_replicas_are_spread_over_all_brokers_and_all_in_sync(cluster: RealCluster) -> None:
    cluster.create("spread", 6)
    cluster.until_in_sync("spread")
    partitions = cluster.partitions("spread").values()
    assert {tuple(sorted(partition.replicas)) for partition in partitions} == {(1, 2, 3)}
    assert sorted(partition.leader for partition in partitions) == [1, 1, 2, 2, 3, 3]


def chosen(cluster: RealCluster, topic: str, victim: str) -> tuple[int, int]:
    """A partition to write to, and the node to kill, which leads it or the quorum, or both."""
    controller = cluster.controller()
    leaders = {partition.leader: number for number, partition in cluster.partitions(topic).items()}
    if victim == "both":
        return leaders[controller], controller
    elsewhere = next(node for node in leaders if node != controller)
    return leaders[elsewhere], controller if victim == "controller" else elsewhere


@pytest.mark.parametrize("victim", ["leader", "controller", "both"])
def test_nothing_acknowledged_is_lost_when_a_process_is_killed(
    cluster: RealCluster, victim: str
) -> None:
    topic = f"killed-{victim}"
    cluster.create(topic)
    cluster.until_in_sync(topic)
    partition, killed = chosen(cluster, topic, victim)
    survivors = cluster.bootstrap_without(killed)
    writing = Writing(survivors, topic, partition)
    writing.until_acknowledged(200)
    cluster.kill(killed)
    until(lambda: not cluster.is_running(killed))
    writing.until_acknowledged(300)
    writing.finish()
    assert writing.failures == []
    assert writing.longest_gap_s() < GAP_SECONDS_MAX
    held = read_all(survivors, topic, partition, set(writing.acknowledged))
    assert sorted(held, key=int) == sorted(writing.acknowledged, key=int)  # none lost, none twice
    cluster.start_again()
    cluster.until_in_sync(topic)
    assert killed in cluster.partitions(topic)[partition].isrs


def test_a_broker_that_is_told_to_stop_fails_no_write(cluster: RealCluster) -> None:
    cluster.create("left")
    cluster.until_in_sync("left")
    partition, leaving = chosen(cluster, "left", "both")
    writing = Writing(cluster.bootstrap_without(leaving), "left", partition)
    writing.until_acknowledged(200)
    cluster.signal(leaving, signal.SIGTERM)
    until(lambda: not cluster.is_running(leaving))
    writing.until_acknowledged(200)
    writing.finish()
    assert writing.failures == []
    assert writing.longest_gap_s() < GAP_SECONDS_MAX
    assert (cluster.data / f"node-{leaving}/.kafka_cleanshutdown").exists()
    assert cluster.partitions("left")[partition].leader not in (-1, leaving)
    cluster.start_again()
    cluster.until_in_sync("left")


def test_every_node_has_a_directory_and_a_rack_of_its_own(cluster: RealCluster) -> None:
    admin = cluster.admin()
    described: Any = admin.describe_cluster().result(20)
    assert sorted((node.id, node.rack) for node in described.nodes) == [
        (node, f"rack-{node}") for node in cluster.nodes
    ]
    ids = {
        line
        for node in cluster.nodes
        for line in (cluster.data / f"node-{node}/meta.properties").read_text().split("\n")
        if line.startswith("cluster.id=")
    }
    assert len(ids) == 1


def test_a_stopped_cluster_goes_on_with_its_data_elsewhere(tmp_path: Path) -> None:
    with RealCluster(tmp_path) as cluster:
        cluster.create("kept", 1)
        writing = Writing(cluster.bootstrap, "kept", 0)
        writing.until_acknowledged(100)
        writing.finish()
        assert cluster.stop(signal.SIGTERM) == 0
        assert not any(cluster.is_running(node) for node in cluster.nodes)
        cluster.port = RealCluster(tmp_path).port
        assert f"localhost:{cluster.port}," in cluster.start().bootstrap
        held = read_all(cluster.bootstrap, "kept", 0, set(writing.acknowledged))
        assert set(writing.acknowledged) <= set(held)
        cluster.until_in_sync("kept")
        assert cluster.stop() == 0


def test_all_nodes_killed_at_once_come_back_with_what_was_acknowledged(tmp_path: Path) -> None:
    with RealCluster(tmp_path) as cluster:
        cluster.create("kept", 1)
        writing = Writing(cluster.bootstrap, "kept", 0)
        writing.until_acknowledged(100)
        writing.finish()
        for node in cluster.nodes:
            cluster.kill(node)
        assert cluster.process is not None
        assert cluster.process.wait(20) == 1  # no node is left
        cluster.process.communicate()
        cluster.start()
        held = read_all(cluster.bootstrap, "kept", 0, set(writing.acknowledged))
        assert set(writing.acknowledged) <= set(held)
        cluster.until_in_sync("kept")


def test_controllers_beside_the_brokers_find_out_at_once_that_one_was_killed(
    tmp_path: Path,
) -> None:
    """By its listener, which goes after its connections: not when its session is over."""
    with ProcessCluster(3, controllers=3, directory=tmp_path) as cluster:
        for node in cluster.nodes:
            fenced = f"fenced broker {node}: "
            cluster.kill(node)
            until(lambda fenced=fenced: fenced in cluster.journal.read_text())  # type: ignore[misc]
            assert f"{fenced}nobody listens there" in cluster.journal.read_text()
            cluster.restart(node)


def test_nodes_whose_parent_is_gone_stop_in_order(tmp_path: Path) -> None:
    with RealCluster(tmp_path) as cluster:
        assert cluster.process is not None
        nodes = psutil.Process(cluster.process.pid).children()
        assert len(nodes) == 3
        cluster.process.kill()
        _, alive = psutil.wait_procs(nodes, 20)
        assert not alive
        for node in cluster.nodes:
            assert (cluster.data / f"node-{node}/.kafka_cleanshutdown").exists()


def test_more_brokers_than_voters_serve_too(tmp_path: Path) -> None:
    with RealCluster(tmp_path, brokers=4) as cluster:
        cluster.create("wide", 4)
        cluster.until_in_sync("wide")
        leaders = {
            partition.leader: number for number, partition in cluster.partitions("wide").items()
        }
        assert sorted(leaders) == [1, 2, 3, 4]
        writing = Writing(cluster.bootstrap, "wide", leaders[4])
        writing.until_acknowledged(50)
        writing.finish()
        assert writing.failures == []
        assert cluster.stop() == 0


@pytest.mark.parametrize("node", [1, 2, 3])
def test_a_topic_comes_into_being_whichever_broker_is_asked(
    cluster: RealCluster, node: int
) -> None:
    others = [each for each in cluster.nodes if each != node]
    writing = Writing(cluster.bootstrap_without(*others), f"asked-of-{node}", 0)
    writing.until_acknowledged(1)
    assert len(cluster.partitions(f"asked-of-{node}")[0].replicas) == 3
