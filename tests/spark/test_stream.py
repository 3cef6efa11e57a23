from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from cotidal.client.admin import create_partitions, create_topic, delete_topics
from cotidal.client.cluster import Cluster as Client
from cotidal.client.offsets import Position
from cotidal.client.producer import Producer
from cotidal.spark.columns import full_schema
from cotidal.spark.failures import DataLost
from cotidal.spark.source import CotidalSource
from cotidal.spark.stream import StreamReader
from cotidal.spark.stream_offsets import StreamOffset, from_json, to_json
from cotidal.testing.cluster import Cluster
from cotidal.values import LeaderEpoch, Offset, TopicPartition, Uuid

ALL = ReadAllAvailable()


@pytest.fixture(autouse=True)
def _ask_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cotidal.spark.stream.SPARK_LATEST_AGE_MAX_S", 0.0)


def reader(options: dict[str, str]) -> StreamReader:
    made = CotidalSource(options).streamReader(full_schema(headers=False))
    assert isinstance(made, StreamReader)
    return made


def rows(stream: StreamReader, start: Any, end: Any) -> Iterator[bytes]:
    for each in stream.partitions(start, end):
        for batch in stream.read(each):
            yield from batch.column("value").to_pylist()


def test_offsets_survive_a_checkpoint() -> None:
    positions = {
        TopicPartition("orders", 10): Position(Offset(17), LeaderEpoch(3)),
        TopicPartition("orders", 2): Position(Offset(4), LeaderEpoch(-1)),
    }
    offset = StreamOffset(positions, {"orders": Uuid(bytes(range(16)))})
    written = to_json(offset)
    assert written["orders"] == {"2": 4, "10": 17}
    assert from_json(written) == offset


def test_a_stream_reads_what_comes_batch_by_batch(new_topic: Any, write: Any, source: Any) -> None:
    topic = new_topic()
    write(topic, [b"before"])
    stream = reader(source(topic))
    start = stream.initialOffset()
    assert stream.latestOffset(start, ALL) == start
    assert stream.partitions(start, start) == []
    write(topic, [b"a", b"b"])
    end = stream.latestOffset(start, ALL)
    assert list(rows(stream, start, end)) == [b"a", b"b"]
    write(topic, [b"c"])
    assert list(rows(stream, end, stream.latestOffset(end, ALL))) == [b"c"]
    assert list(rows(stream, start, end)) == [b"a", b"b"]  # replayed


def test_ends_are_not_asked_for_each_time(
    new_topic: Any, write: Any, source: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cotidal.spark.stream.SPARK_LATEST_AGE_MAX_S", 60.0)
    topic = new_topic()
    stream = reader(source(topic))
    start = stream.initialOffset()
    write(topic, [b"a"])
    assert stream.latestOffset(start, ALL) == start


def test_limits_hold_back_what_a_batch_takes(new_topic: Any, write: Any, source: Any) -> None:
    topic = new_topic()
    write(topic, [b"%d" % at for at in range(10)])
    stream = reader(source(topic, startingOffsets="earliest", maxOffsetsPerTrigger="4"))
    assert stream.getDefaultReadLimit() == ReadMaxRows(4)
    at = stream.initialOffset()
    sizes = []
    for _ in range(3):
        after = stream.latestOffset(at, stream.getDefaultReadLimit())
        sizes.append(len(list(rows(stream, at, after))))
        at = after
    assert sizes == [4, 4, 2]
    everything = stream.latestOffset(stream.initialOffset(), ALL)
    assert everything[topic] == {"0": 10}


def test_too_little_waits_until_it_is_enough_or_late(
    new_topic: Any, write: Any, source: Any
) -> None:
    topic = new_topic()
    stream = reader(
        source(topic, startingOffsets="earliest", minOffsetsPerTrigger="3", maxTriggerDelay="60s")
    )
    start = stream.initialOffset()
    limit = stream.getDefaultReadLimit()
    assert limit == ReadMinRows(3)
    write(topic, [b"a", b"b"])
    assert stream.latestOffset(start, limit) == start
    stream._triggered_at = time.monotonic() - 61
    late = stream.latestOffset(start, limit)
    assert late[topic] == {"0": 2}
    write(topic, [b"c", b"d", b"e"])
    assert stream.latestOffset(late, limit)[topic] == {"0": 5}


def test_available_now_ends_where_the_topic_ended(new_topic: Any, write: Any, source: Any) -> None:
    topic = new_topic()
    write(topic, [b"a"])
    stream = reader(source(topic, startingOffsets="earliest"))
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    write(topic, [b"b"])
    assert stream.latestOffset(start, ALL)[topic] == {"0": 1}


def test_progress_tells_the_lag(new_topic: Any, write: Any, source: Any) -> None:
    topic = new_topic(partitions=2)
    for partition in (0, 1):
        write(topic, [b"x"] * 10, partition=partition)
    stream = reader(source(topic, startingOffsets="earliest", maxOffsetsPerTrigger="8"))
    assert stream.reportLatestOffset() is None
    stream.latestOffset(stream.initialOffset(), stream.getDefaultReadLimit())
    told = stream.reportLatestOffset()
    assert told is not None
    assert told[topic] == {"0": 10, "1": 10}
    assert told["@lag"] == {"total": 12, "max": 6}


def test_a_partition_that_is_new_is_read_from_its_beginning(
    client: Client, new_topic: Any, write: Any, source: Any
) -> None:
    topic = new_topic()
    stream = reader(source(topic))
    start = stream.initialOffset()
    create_partitions(client, topic, partitions=2)
    write(topic, [b"first"], partition=1)
    end = stream.latestOffset(start, ALL)
    assert end[topic] == {"0": 0, "1": 1}
    assert list(rows(stream, start, end)) == [b"first"]


def test_a_topic_made_anew_is_not_taken_for_the_old_one(
    client: Client, new_topic: Any, write: Any, source: Any
) -> None:
    topic = new_topic()
    write(topic, [b"old"])
    stream = reader(source(topic, startingOffsets="earliest"))
    start = stream.initialOffset()
    delete_topics(client, [topic])
    create_topic(client, topic, partitions=1, configs={})
    write(topic, [b"new"])
    with pytest.raises(DataLost, match="was deleted and made anew"):
        stream.partitions(start, stream.latestOffset(start, ALL))


def test_records_that_retention_took_are_told(
    cluster: Cluster, new_topic: Any, write: Any, source: Any
) -> None:
    from confluent_kafka import TopicPartition as At
    from confluent_kafka.admin import AdminClient

    topic = new_topic()
    stream = reader(source(topic))
    start = stream.initialOffset()
    write(topic, [b"a", b"b", b"c"])
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for gone in admin.delete_records([At(topic, 0, 2)]).values():
        gone.result(30)
    end = stream.latestOffset(start, ALL)
    with pytest.raises(DataLost, match=r"offsets 0 to 1 of .* the log begins at offset 2"):
        stream.partitions(start, end)
    tolerant = reader(source(topic, failOnDataLoss="false"))
    assert list(rows(tolerant, start, end)) == [b"c"]


def test_a_log_cut_by_an_unclean_election_is_told_with_its_range() -> None:
    """What the stream had read is gone, and others stand in its place: no offset shows it."""
    settings = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    with Cluster(settings=settings) as cluster, Client(cluster.bootstrap) as client:
        create_topic(client, "orders", partitions=1, replication_factor=2, configs=settings)
        replicas = client.topic("orders").partitions[0].replicas
        producer = Producer(client, "orders")

        def write(*values: bytes) -> None:
            for value in values:
                producer.add(value)
            producer.flush()

        def leader() -> int:
            return client.topic("orders").partitions[0].leader

        write(b"a", b"b")
        first = leader()
        (other,) = (each for each in replicas if each != first)
        given = {"kafka.bootstrap.servers": cluster.bootstrap, "subscribe": "orders"}
        stream = reader({**given, "startingoffsets": "earliest"})
        cluster.kill(other)
        write(b"c", b"d", b"e")
        start = stream.initialOffset()
        read_to = stream.latestOffset(start, ALL)
        assert list(rows(stream, start, read_to)) == [b"a", b"b", b"c", b"d", b"e"]
        cluster.kill(first)
        cluster.restart(other)
        deadline = time.monotonic() + 30
        while leader() != other:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        write(b"1", b"2", b"3", b"4")
        end = stream.latestOffset(read_to, ALL)
        with pytest.raises(DataLost, match=r"offsets 2 to 4 of orders-0 .* truncated to 2"):
            stream.partitions(read_to, end)
        tolerant = reader({**given, "failondataloss": "false"})
        assert list(rows(tolerant, read_to, end)) == [b"1", b"2", b"3", b"4"]
