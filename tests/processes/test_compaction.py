"""Three brokers compact a topic, each by itself, and are killed with -9 again and again: every
replica keeps the newest record of every key, and what it keeps is what was written."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("confluent_kafka")
from confluent_kafka import Producer

from cotidal.log.checkpoint import PARTITION_METADATA, decode_partition_metadata
from cotidal.log.contract import LogConfig
from cotidal.log.files import OsFiles
from cotidal.log.log import Log
from cotidal.values import WallMillis
from cotidal.wire.batch import read_batches
from cotidal.wire.records import read_records
from real_cluster import QUICK, RealCluster, until

TOPIC = "kept"
KEYS = 40
SETTINGS = {"log.cleaner.backoff.ms": "100"}
KILLS = (1, 2, 3, 1)


class Kept(NamedTuple):
    key: bytes
    value: bytes | None


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RealCluster]:
    with RealCluster(tmp_path, settings=SETTINGS) as started:
        yield started


class KeyedWriting:
    """Writes on, and remembers what was acknowledged at which offset."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged: dict[int, Kept] = {}
        self.failures: list[Any] = []
        self._number = 0
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.num.messages": 50,  # far less than a segment
                "delivery.timeout.ms": 40_000,
                "request.timeout.ms": 5_000,
                **QUICK,
            }
        )

    def write(self, count: int) -> None:
        for _ in range(count):
            self._number += 1
            value = None if self._number % 11 == 0 else b"%d" % self._number + b"." * 60
            key = b"key-%d" % (self._number * 7 % KEYS)
            self._producer.produce(TOPIC, value, key, partition=0, on_delivery=self._delivered)
            self._producer.poll(0.0005)

    def finish(self) -> None:
        assert self._producer.flush(40) == 0
        assert not self.failures

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failures.append(error)
        else:
            self.acknowledged[message.offset()] = Kept(message.key(), message.value())


def replica(cluster: RealCluster, node: int) -> Log:
    """As the node has left it on its disk."""
    directory = cluster.data / f"node-{node}/{TOPIC}-0"
    topic_id = decode_partition_metadata((directory / PARTITION_METADATA).read_bytes())
    return Log.open(
        OsFiles(),
        str(directory),
        LogConfig(compacted=True),
        topic_id=topic_id,
        clean=True,
        now_wall=WallMillis(0),
    )


def records(log: Log) -> dict[int, Kept]:
    found = {}
    offset = log.start_offset
    while offset < log.end_offset:
        data = log.read(offset, max_bytes=1 << 20, below=log.end_offset)
        position = 0
        for header in read_batches(data).headers:
            for record in read_records(data, position):
                assert record.key is not None
                found[record.offset] = Kept(record.key, record.value)
            position += header.size_bytes
            offset = header.next_offset
    return found


def test_every_replica_keeps_the_newest_record_of_every_key(cluster: RealCluster) -> None:
    cluster.create(
        TOPIC,
        1,
        cleanup_policy="compact",
        internal_segment_bytes="20000",
        min_cleanable_dirty_ratio="0.05",
        min_insync_replicas="2",
    )
    cluster.until_in_sync(TOPIC)
    writing = KeyedWriting(cluster.bootstrap)
    for node in KILLS:
        writing.write(1500)
        cluster.signal(node, signal.SIGKILL)
        until(lambda node=node: not cluster.is_running(node))
        writing.write(500)
        cluster.start_again()
        until(lambda node=node: cluster.is_running(node))
        cluster.until_in_sync(TOPIC)
    writing.write(500)
    writing.finish()
    cluster.until_in_sync(TOPIC)
    until(lambda: all(cleaned_to(cluster, node) > 5000 for node in cluster.nodes))
    assert cluster.stop() == 0
    written = writing.acknowledged
    newest = {kept.key: offset for offset, kept in sorted(written.items())}
    ends = set()
    for node in cluster.nodes:
        log = replica(cluster, node)
        assert log.verify() == ()
        held = records(log)
        ends.add(log.end_offset)
        assert len(held) < len(written) / 3, f"node {node} has hardly compacted"
        assert held == {offset: written[offset] for offset in held}
        for key, offset in newest.items():
            assert offset in held, f"node {node} lacks {key!r} at {offset}"
        log.close()
    assert len(ends) == 1


def cleaned_to(cluster: RealCluster, node: int) -> int:
    """As its checkpoint says; 0 without one."""
    path = cluster.data / f"node-{node}/cleaner-offset-checkpoint"
    if not path.exists():
        return 0
    lines = [line.split() for line in path.read_text().splitlines()]
    return max((int(line[2]) for line in lines if line[:2] == [TOPIC, "0"]), default=0)
