"""One replica, read over the wire and from its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cotidal.client.admin import create_topic
from cotidal.client.cluster import Cluster as Client
from cotidal.client.failures import UnknownTopic
from cotidal.client.producer import Producer
from cotidal.spark.audit import replica_logs
from cotidal.spark.audit.copies import Subject, log_directories, shares, subjects
from cotidal.spark.audit.replica_logs import pieces
from cotidal.spark.audit.stretches import Stretch, measured
from cotidal.testing.cluster import Cluster

BATCHES, RECORDS = 40, 50


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audited")


@pytest.fixture(scope="module")
def client(data: Path) -> Iterator[Client]:
    settings = {"log.index.interval.bytes": "4096", "log.segment.bytes": "1048576"}
    with (
        Cluster(directory=data, settings=settings) as cluster,
        Client(cluster.bootstrap) as client,
    ):
        create_topic(client, "orders", partitions=1, configs={})
        for number in range(BATCHES):
            producer = Producer(client, "orders", partition=0)
            for _ in range(RECORDS):
                producer.add(f"{number:01000}".encode())
            producer.flush()
        yield client


def read(subject: Subject, size: int) -> list[Stretch]:
    return [measured(each, pieces(each)) for each in shares(subject, size)]


def test_every_replica_is_the_same_over_the_wire_and_on_disk(client: Client, data: Path) -> None:
    (asked,) = subjects(client, ["orders"], {})
    (on_disk,) = subjects(client, ["orders"], log_directories([str(data)]))
    assert [each.on_disk for each in asked.copies] == [False] * 3
    assert [each.on_disk for each in on_disk.copies] == [True] * 3
    found = read(asked, 700)
    assert found == read(on_disk, 700)
    assert {each.broker for each in found} == {1, 2, 3}
    ranges = {each.first: each.digest for each in found}
    assert len(ranges) == 3
    assert all(each.digest == ranges[each.first] for each in found)
    assert sum(each.records for each in found) == 3 * BATCHES * RECORDS


def test_a_range_is_found_in_the_middle_of_a_segment(
    client: Client, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However small the pieces are in which a file is read."""
    (subject,) = subjects(client, ["orders"], log_directories([str(data)]))
    whole = read(subject, 130)
    monkeypatch.setattr(replica_logs, "PIECE_BYTES", 1_000)
    assert read(subject, 130) == whole
    assert sum(each.batches for each in whole) == 3 * BATCHES


def test_an_index_is_only_a_hint(client: Client, data: Path) -> None:
    """Zeros behind what was written of it, as Kafka leaves them, or none at all."""
    (subject,) = subjects(client, ["orders"], log_directories([str(data)]))
    before = read(subject, 130)
    for place in (each.place for each in subject.copies):
        for index in Path(place).glob("*.index"):
            index.write_bytes(index.read_bytes() + bytes(80))
    assert read(subject, 130) == before
    for place in (each.place for each in subject.copies):
        for index in Path(place).glob("*.index"):
            index.unlink()
    assert read(subject, 130) == before


def test_a_topic_that_is_not_there_is_told_with_its_nearest_name(client: Client) -> None:
    with pytest.raises(UnknownTopic, match="orders"):
        subjects(client, ["order"], {})


def test_a_directory_without_logs_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no meta\.properties"):
        log_directories([str(tmp_path)])
    with pytest.raises(FileNotFoundError, match="there is no directory"):
        log_directories([str(tmp_path / "nowhere")])
