"""Logs that Apache Kafka wrote, opened by ours: after a clean stop, and after kill -9.

After kill -9 Kafka leaves index files preallocated to their full size and no clean-shutdown mark.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as ClientPartition

from bench import apache_kafka
from bench.server import Server
from cotidal.log.checkpoint import (
    CLEAN_SHUTDOWN,
    RECOVERY_POINTS,
    decode_offsets,
    decode_partition_metadata,
)
from cotidal.log.contract import LogConfig
from cotidal.log.files import OsFiles
from cotidal.log.log import Log
from cotidal.values import Offset, TopicPartition, WallMillis
from cotidal.wire.batch import read_batches
from cotidal.wire.records import Record, read_records

pytestmark = pytest.mark.interop

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
TRANSACTIONAL: Final = "transactional"
TRANSACTIONAL_END: Final = 10 + 1 + 10 + 1 + 1 + 1
"""Each transaction's records, and its marker."""
READ_BYTES: Final = 100_000
"""Several batches, and many reads a segment."""


class Left(NamedTuple):
    """Data directories as a Kafka node left them, and what clients had written."""

    killed: Path
    stopped: Path
    written: dict[str, tuple[Any, ...]]


@pytest.fixture(scope="module")
def left(
    kafka: None,
    write: Callable[[str, str], tuple[Any, ...]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Left:
    directory = tmp_path_factory.mktemp("kafka")
    settings = {"transaction.state.log.num.partitions": "1"}
    recipe = apache_kafka.recipe(1, directory, settings)
    data = apache_kafka.data_directory(directory, 1)
    server = Server(recipe).start()
    try:
        written = {codec: write(server.bootstrap, codec) for codec in CODECS}
        _write_transactions(server.bootstrap)
    finally:
        server.kill()
    killed = directory / "killed"
    shutil.copytree(data, killed)
    Server(recipe).start().stop()  # Kafka recovers, then stops in order
    return Left(killed, data, written)


def _write_transactions(bootstrap: str) -> None:
    """Ten records committed, ten aborted, one committed."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "interop"})
    producer.init_transactions(60)
    for name, count in (("kept", 10), ("dropped", 10), ("last", 1)):
        producer.begin_transaction()
        for number in range(count):
            producer.produce(TRANSACTIONAL, f"{name}-{number}".encode(), partition=0)
        producer.flush(30)
        if name == "dropped":
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    _await_end(bootstrap, TRANSACTIONAL_END)


def _await_end(bootstrap: str, end: int) -> None:
    """A commit is acknowledged when it is decided; its marker is written to partitions later."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none"})
    deadline = time.monotonic() + 30
    while consumer.get_watermark_offsets(ClientPartition(TRANSACTIONAL, 0), 10)[1] < end:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    consumer.close()


def opened(data: Path, topic: str, *, clean: bool, to: Path) -> Log:
    """Our log on a copy: opening may mend files, and other tests read the same ones."""
    directory = to / f"{topic}-0"
    shutil.copytree(data / directory.name, directory)
    saved = (data / RECOVERY_POINTS).read_bytes()
    points = decode_offsets(saved, RECOVERY_POINTS) if saved else {}
    metadata = (directory / "partition.metadata").read_bytes()
    return Log.open(
        OsFiles(),
        str(directory),
        LogConfig(),
        topic_id=decode_partition_metadata(metadata),
        clean=clean,
        recovery_point=points.get(TopicPartition(topic, 0), Offset(0)),
        log_start=Offset(0),
        now_wall=WallMillis(int(time.time() * 1000)),
    )


def everything(log: Log) -> bytes:
    """All bytes of the log, read as a consumer reads: from where the last read ended."""
    parts = []
    offset = log.start_offset
    while offset < log.end_offset:
        data = bytes(log.read(offset, max_bytes=READ_BYTES, below=log.end_offset))
        batches = read_batches(data)
        assert batches.fault is None
        assert batches.headers
        offset = batches.headers[-1].next_offset
        parts.append(data)
    return b"".join(parts)


def every_record(data: bytes) -> list[Record]:
    records, position = [], 0
    for header in read_batches(data).headers:
        records += read_records(data, position)
        position += header.size_bytes
    return records


@pytest.mark.parametrize("end", ["killed", "stopped"])
@pytest.mark.parametrize("codec", CODECS)
def test_every_record_that_kafka_wrote_is_read(
    left: Left, tmp_path: Path, codec: str, end: str
) -> None:
    data: Path = getattr(left, end)
    topic = f"written-{codec}"
    written = left.written[codec]
    log = opened(data, topic, clean=end == "stopped", to=tmp_path)
    assert (log.start_offset, log.end_offset) == (0, len(written))
    assert len(log.segment_bases) > 1
    found = everything(log)
    log.close()
    segments = sorted((data / f"{topic}-0").glob("*.log"))
    assert found == b"".join(segment.read_bytes() for segment in segments)
    records = every_record(found)
    assert [record.offset for record in records] == list(range(len(written)))
    assert [
        (record.key, record.value, tuple(record.headers), record.timestamp) for record in records
    ] == [tuple(record) for record in written]


def test_clean_shutdown_mark_is_there_only_after_a_clean_stop(left: Left) -> None:
    assert (left.stopped / CLEAN_SHUTDOWN).exists()
    assert not (left.killed / CLEAN_SHUTDOWN).exists()


def test_checkpoint_that_kafka_has_made_but_not_yet_filled_holds_no_offsets(left: Left) -> None:
    saved = (left.killed / RECOVERY_POINTS).read_bytes()
    assert saved == b""
    assert decode_offsets(saved, RECOVERY_POINTS) == {}


@pytest.mark.parametrize("end", ["killed", "stopped"])
def test_offsets_are_found_by_time(left: Left, tmp_path: Path, end: str) -> None:
    log = opened(getattr(left, end), "written-lz4", clean=end == "stopped", to=tmp_path)
    written = left.written["lz4"]
    for number in (0, 1, 1777, len(written) - 1):
        found = log.offset_for_time(WallMillis(written[number].timestamp), below=log.end_offset)
        assert found is not None
        assert (found.offset, found.timestamp) == (number, written[number].timestamp)
    after = WallMillis(written[-1].timestamp + 1)
    assert log.offset_for_time(after, below=log.end_offset) is None
    log.close()


@pytest.mark.parametrize("end", ["killed", "stopped"])
def test_transactions_keep_their_markers_and_their_aborted_ranges(
    left: Left, tmp_path: Path, end: str
) -> None:
    log = opened(getattr(left, end), TRANSACTIONAL, clean=end == "stopped", to=tmp_path)
    headers = read_batches(everything(log)).headers
    assert log.end_offset == TRANSACTIONAL_END
    assert [header.base_offset for header in headers if header.is_control] == [10, 21, 23]
    assert all(header.is_transactional for header in headers)
    (aborted,) = log.aborted_between(Offset(0), log.end_offset)
    assert (aborted.first_offset, aborted.last_offset) == (11, 21)
    log.close()


def test_producer_snapshot_of_a_clean_stop_is_read(left: Left, tmp_path: Path) -> None:
    log = opened(left.stopped, "written-none", clean=True, to=tmp_path)
    snapshot = log.opened.producer_snapshot
    assert snapshot is not None
    assert snapshot.offset == log.end_offset
    (producer,) = snapshot.entries
    assert producer.last_sequence == len(left.written["none"]) - 1
    assert log.opened.headers_after == ()
    log.close()
