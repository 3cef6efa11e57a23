"""Clusters for the tests of others: what they start, kill and leave behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from cotidal.testing.cluster import Cluster, ClusterFailed, ProcessCluster

QUICK = {"retry.backoff.ms": 20, "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 100}


def write(bootstrap: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "log_level": 0, **QUICK})
    for value in values:
        producer.produce("orders", value, partition=0)
    assert producer.flush(20) == 0


def read(bootstrap: str, count: int) -> list[str]:
    settings = {"bootstrap.servers": bootstrap, "group.id": "-", "enable.auto.commit": False}
    consumer = Consumer({"log_level": 0, **settings, **QUICK})
    consumer.assign([TopicPartition("orders", 0, 0)])
    found = [message.value() or b"" for message in consumer.consume(count, 20)]
    consumer.close()
    return [value.decode() for value in found]


def test_a_node_of_this_process_can_die_and_come_back(cotidal_cluster: Cluster) -> None:
    write(cotidal_cluster.bootstrap, "one")
    for node in cotidal_cluster.nodes:
        cotidal_cluster.kill(node)
        write(cotidal_cluster.bootstrap, f"without {node}")
        cotidal_cluster.restart(node)
    expected = ["one", "without 1", "without 2", "without 3"]
    assert read(cotidal_cluster.bootstrap, 4) == expected


@pytest.mark.cotidal(brokers=1, settings={"num.partitions": "6"})
def test_a_mark_says_what_the_cluster_is_made_of(cotidal_cluster: Cluster) -> None:
    assert cotidal_cluster.nodes == (1,)
    write(cotidal_cluster.bootstrap, "one")
    consumer = Consumer({"bootstrap.servers": cotidal_cluster.bootstrap, "group.id": "-"})
    assert len(consumer.list_topics("orders", timeout=10).topics["orders"].partitions) == 6
    consumer.close()


def test_a_directory_that_was_given_outlives_the_cluster(tmp_path: Path) -> None:
    with Cluster(1, directory=tmp_path) as cluster:
        write(cluster.bootstrap, "kept")
    with Cluster(1, directory=tmp_path) as cluster:
        assert read(cluster.bootstrap, 1) == ["kept"]


def test_a_directory_of_its_own_goes_with_the_cluster() -> None:
    with Cluster(1) as cluster:
        home = cluster._data.path
        assert home.is_dir()
    assert not home.exists()


def test_a_mistake_in_the_settings_is_told_and_leaves_no_thread() -> None:
    with pytest.raises(Exception, match=r"num\.partitions"):
        Cluster(1, settings={"num.partitions": "many"}).start()


def test_only_what_runs_is_killed_and_only_what_does_not_is_started(
    cotidal_cluster: Cluster,
) -> None:
    with pytest.raises(ClusterFailed, match="node 2 runs"):
        cotidal_cluster.restart(2)
    cotidal_cluster.kill(2)
    with pytest.raises(ClusterFailed, match="node 2 does not run"):
        cotidal_cluster.kill(2)


def test_processes_are_paused_killed_and_started_again() -> None:
    with ProcessCluster(2) as cluster:
        write(cluster.bootstrap, "one")
        cluster.pause(1)
        cluster.resume(1)
        cluster.kill(1)
        cluster.start_again()
        assert read(cluster.bootstrap, 1) == ["one"]
        assert cluster.log(2, "orders-0") == cluster.log(1, "orders-0") != b""
        home = cluster.data
    assert not home.exists()


@pytest.mark.parametrize("kind", [Cluster, ProcessCluster])
def test_a_leader_without_its_followers_commits_nothing_until_links_heal(
    kind: type[Cluster] | type[ProcessCluster],
) -> None:
    with kind(3, settings={"replica.lag.time.max.ms": "60000"}) as cluster:
        write(cluster.bootstrap, "one")
        client = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        leader = client.list_topics("orders", timeout=10).topics["orders"].partitions[0].leader
        cluster.slow(leader, seconds=0.01)
        write(cluster.bootstrap, "slowly")
        cluster.partition(leader)
        told: list[bool] = []
        patient = {"acks": "all", "message.timeout.ms": 1_000, "log_level": 0, **QUICK}
        lonely = Producer({"bootstrap.servers": cluster.bootstrap, **patient})
        lonely.produce(
            "orders", "two", partition=0, on_delivery=lambda error, _: told.append(error is None)
        )
        lonely.flush(20)
        assert told == [False]
        cluster.heal()
        write(cluster.bootstrap, "three")
        assert read(cluster.bootstrap, 3)[:2] == ["one", "slowly"]


def test_a_link_that_is_not_there_is_an_error(cotidal_cluster: Cluster) -> None:
    with pytest.raises(ClusterFailed, match="no link"):
        cotidal_cluster.partition(1, 4)
    with pytest.raises(ClusterFailed, match="no link"):
        cotidal_cluster.partition(1, 1)


def test_a_process_of_several_is_restarted_whether_it_runs_or_not() -> None:
    with ProcessCluster(3) as cluster:
        cluster.restart(1)
        cluster.kill(2)
        cluster.restart(2)
        write(cluster.bootstrap, "one")
        assert all(cluster.is_running(node) for node in cluster.nodes)


def test_a_cluster_that_does_not_start_says_why() -> None:
    with pytest.raises(ClusterFailed, match=r"num\.partitions"):
        ProcessCluster(1, settings={"num.partitions": "many"}).start()
