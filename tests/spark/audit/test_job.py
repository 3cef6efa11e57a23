"""The audit on Spark, of brokers that run: what was planted is found, with broker and offset."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cotidal.client.admin import create_topic
from cotidal.client.cluster import Cluster as Client
from cotidal.client.producer import Producer
from cotidal.spark.audit.copies import Subject, log_directories, subjects
from cotidal.spark.audit.findings import Finding, Kind
from cotidal.spark.audit.job import audit
from cotidal.testing.cluster import Cluster
from cotidal.wire.batch import read_batches, stamp_prefix

BATCHES, RECORDS = 12, 10


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audited")


@pytest.fixture(scope="module")
def client(data: Path) -> Iterator[Client]:
    with Cluster(directory=data) as cluster, Client(cluster.bootstrap) as client:
        yield client


@pytest.fixture
def subject(client: Client, data: Path, request: pytest.FixtureRequest) -> Subject:
    """A topic of the test's own: twelve batches of ten records."""
    topic = request.node.name
    create_topic(client, topic, partitions=1, configs={})
    for number in range(BATCHES):
        producer = Producer(client, topic, partition=0)
        for _ in range(RECORDS):
            producer.add(b"%d" % number)
        producer.flush()
    (found,) = subjects(client, [topic], log_directories([str(data)]))
    assert found.high_watermark == BATCHES * RECORDS
    return found


def follower(subject: Subject) -> tuple[int, Path]:
    """One that is not the leader, and its segment."""
    copy = next(each for each in subject.copies if each.broker != subject.leader)
    return copy.broker, Path(copy.place) / f"{0:020}.log"


def spans(segment: Path) -> list[tuple[int, int]]:
    """Where each batch of it lies."""
    found, at = [], 0
    for header in read_batches(segment.read_bytes()).headers:
        found.append((at, at + header.size_bytes))
        at += header.size_bytes
    return found


def faults(spark: Any, subject: Subject) -> list[Finding]:
    report = audit(spark, [subject], share_offsets=25)
    assert report.agreed is (not report.findings)
    return list(report.findings)


def test_replicas_that_agree(spark: Any, client: Client, subject: Subject) -> None:
    (asked,) = subjects(client, [subject.topic], {})
    for each in (asked, subject):
        report = audit(spark, [each], share_offsets=25)
        assert report.agreed
        assert report.findings == ()
        (total,) = report.totals
        assert (total.records, total.replicas) == (BATCHES * RECORDS, 3)


def test_a_flipped_bit(spark: Any, client: Client, subject: Subject) -> None:
    broker, segment = follower(subject)
    data = bytearray(segment.read_bytes())
    data[spans(segment)[6][1] - 1] ^= 1
    segment.write_bytes(data)
    (asked,) = subjects(client, [subject.topic], {})
    for each in (asked, subject):
        (found,) = faults(spark, each)
        assert (found.kind, found.broker, found.offset) == (Kind.DAMAGED, broker, 60)


def test_a_missing_batch(spark: Any, subject: Subject) -> None:
    broker, segment = follower(subject)
    data = segment.read_bytes()
    begin, end = spans(segment)[3]
    segment.write_bytes(data[:begin] + data[end:])
    found = faults(spark, subject)
    assert (found[0].kind.is_fault, found[0].broker, found[0].offset) == (True, broker, 30)
    assert "offsets 30 to 39" in found[0].sentence


def test_a_batch_that_was_replaced(spark: Any, subject: Subject) -> None:
    """A whole batch with a right checksum, but not the leader's."""
    broker, segment = follower(subject)
    data = segment.read_bytes()
    begin, end = spans(segment)[4]
    other = stamp_prefix(base_offset=50, size=end - begin, leader_epoch=0) + data[begin + 16 : end]
    begin, end = spans(segment)[5]
    segment.write_bytes(data[:begin] + other + data[end:])
    (found,) = faults(spark, subject)
    assert (found.kind, found.broker, found.offset) == (Kind.DIFFERS, broker, 50)


def test_an_extra_tail(spark: Any, subject: Subject) -> None:
    broker, segment = follower(subject)
    data = segment.read_bytes()
    begin, end = spans(segment)[-1]
    base = BATCHES * RECORDS
    extra = stamp_prefix(base_offset=base, size=end - begin, leader_epoch=0) + data[begin + 16 :]
    segment.write_bytes(data + extra)
    (found,) = faults(spark, subject)
    assert (found.kind, found.broker, found.offset) == (Kind.TAIL, broker, base)
