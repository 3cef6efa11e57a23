"""A bit flips in a segment of one of three brokers: the replica is mended from the others."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("confluent_kafka")
from confluent_kafka import ElectionType, TopicPartition

from cotidal.client.addresses import Address
from cotidal.client.connection import Connection
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from cotidal.messages.rpc.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from real_cluster import RealCluster, Writing, read_all, until

PLACE = 70
"""Of the first batch: in its records, which its checksum covers."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    with RealCluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started
        assert started.stop() == 0


def written(cluster: RealCluster, topic: str) -> Writing:
    cluster.create(topic, 1)
    cluster.until_in_sync(topic)
    writing = Writing(cluster.bootstrap, topic, 0)
    writing.until_acknowledged(100)
    writing.finish()
    return writing


def restart(cluster: RealCluster, node: int, topic: str) -> None:
    """In order: then its logs are believed, and nobody has read them."""
    cluster.signal(node, signal.SIGTERM)
    until(lambda: not cluster.is_running(node))
    cluster.start_again()
    until(lambda: cluster.is_running(node))
    cluster.until_in_sync(topic)


def segment(cluster: RealCluster, node: int, topic: str) -> Path:
    return cluster.data / f"node-{node}/{topic}-0/{0:020d}.log"


def flip(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(PLACE)
        byte = file.read(1)[0]
        file.seek(PLACE)
        file.write(bytes([byte ^ 0x10]))


def until_mended(cluster: RealCluster, node: int, topic: str) -> None:
    other = next(each for each in cluster.nodes if each != node)
    until(
        lambda: (
            segment(cluster, node, topic).read_bytes()
            == segment(cluster, other, topic).read_bytes()
        )
    )
    cluster.until_in_sync(topic)
    said = cluster.journal.read_text()
    assert f"{topic}-0: {0:020d}.log is damaged at byte 0: crc mismatch" in said
    assert f"{topic}-0: cut at offset 0, to be fetched again from broker" in said


def test_a_leader_whose_log_is_damaged_is_replaced_and_mended(cluster: RealCluster) -> None:
    writing = written(cluster, "led")
    victim = cluster.partitions("led")[0].leader
    restart(cluster, victim, "led")
    flip(segment(cluster, victim, "led"))
    admin = cluster.admin()
    admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition("led", 0)]).result(20)
    until(lambda: cluster.partitions("led")[0].leader == victim)
    held = read_all(cluster.bootstrap, "led", 0, set(writing.acknowledged))
    assert sorted(held, key=int) == sorted(writing.acknowledged, key=int)
    assert cluster.partitions("led")[0].leader not in (-1, victim)
    until_mended(cluster, victim, "led")


def test_a_follower_whose_log_is_damaged_is_mended(cluster: RealCluster) -> None:
    written(cluster, "followed")
    leader = cluster.partitions("followed")[0].leader
    victim = next(node for node in cluster.nodes if node != leader)
    restart(cluster, victim, "followed")
    flip(segment(cluster, victim, "followed"))
    assert fetch_from(cluster, victim, "followed") == ErrorCode.KAFKA_STORAGE_ERROR
    until_mended(cluster, victim, "followed")
    assert cluster.partitions("followed")[0].leader == leader
    assert fetch_from(cluster, victim, "followed") == 0


def fetch_from(cluster: RealCluster, node: int, topic: str) -> int:
    """As a consumer that reads from the replica next to it: the error code."""
    with Connection(Address("localhost", cluster.port + node - 1)) as connection:
        asked = MetadataRequest(topics=(MetadataRequestTopic(name=topic),))
        told = connection.call(ApiKey.METADATA, asked, MetadataResponse)
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1 << 20,
            session_epoch=-1,
            topics=(FetchTopic(topic=topic, topic_id=told.topics[0].topic_id,
                               partitions=(partition,)),),
        )  # fmt: skip
        answer = connection.call(ApiKey.FETCH, request, FetchResponse)
        return answer.responses[0].partitions[0].error_code
