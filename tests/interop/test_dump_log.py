"""kafka-dump-log reads our segments, indexes, producer snapshots and metadata log."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.apache_kafka import run_tool
from bench.server import serving

pytestmark = pytest.mark.interop

COMPLAINTS = ("isvalid: false", "Mismatches in", "Found timestamp", "corrupt")
"""What the tool says of files that it does not like; its exit status is 0 all the same. It also
says "non-consecutive offsets" of every segment that does not begin at 0: we compare offsets."""


@pytest.fixture(scope="module")
def stopped(
    kafka: None,
    write: Callable[[str, str], tuple[Any, ...]],
    recipe_under_test: Callable[[Path], Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, dict[str, tuple[Any, ...]]]:
    """What a server leaves behind after a clean stop, and what clients wrote."""
    directory = tmp_path_factory.mktemp("stopped")
    with serving(recipe_under_test(directory)) as server:
        codecs = ("none", "gzip", "snappy", "lz4", "zstd")
        written = {codec: write(server.bootstrap, codec) for codec in codecs}
    return directory, written


def partition(directory: Path, name: str) -> Path:
    """Data directories differ between servers; partition directories do not."""
    (found,) = directory.rglob(name)
    return found


def dump(files: list[Path], *options: str) -> str:
    assert files
    names = ",".join(str(file) for file in files)
    ended = run_tool("kafka-dump-log", *options, "--files", names)
    assert ended.status == 0, ended.err
    for complaint in COMPLAINTS:
        assert complaint.lower() not in (ended.out + ended.err).lower()
    return ended.out


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_record_is_found_in_the_segments(stopped: Any, codec: str) -> None:
    directory, written = stopped
    segments = sorted(partition(directory, f"written-{codec}-0").glob("*.log"))
    assert len(segments) > 1
    said = dump(segments, "--deep-iteration", "--print-data-log")
    batches = re.findall(r"^baseOffset: \d+ .*isvalid: true", said, re.MULTILINE)
    assert len(batches) > 20
    assert all(f"compresscodec: {codec}" in batch for batch in batches)
    records = re.findall(
        r"^\| offset: (\d+) CreateTime: (\d+) keySize: -?\d+ valueSize: -?\d+ .*?"
        r"headerKeys: \[(.*?)\](?: key: (\S+))?(?: payload: (\S+))?$",
        said,
        re.MULTILINE,
    )
    found = [(int(o), int(t), h, k.encode(), v.encode()) for o, t, h, k, v in records]
    assert found == [
        (
            *(offset, record.timestamp, ",".join(name for name, _ in record.headers)),
            *(record.key or b"", record.value or b""),
        )
        for offset, record in enumerate(written[codec])
    ]


@pytest.mark.parametrize("kind", ["index", "timeindex"])
def test_indexes_point_at_what_they_say(stopped: Any, kind: str) -> None:
    directory, _ = stopped
    files = sorted(partition(directory, "written-none-0").glob(f"*.{kind}"))
    assert len(files) > 1
    entries = re.findall(r"^(?:timestamp: \d+ )?offset: (\d+)", dump(files), re.MULTILINE)
    offsets = [int(offset) for offset in entries]
    assert len(offsets) > 20
    assert offsets == sorted(offsets)
    sane = dump(files, "--index-sanity-check")
    assert sane.count("passed sanity check") == len(files)


def test_producer_snapshots_name_the_idempotent_producer(stopped: Any) -> None:
    directory, written = stopped
    files = sorted(partition(directory, "written-none-0").glob("*.snapshot"))
    said = dump(files[-1:])
    last = re.search(r"producerId: \d+ producerEpoch: 0 .*lastSequence: (\d+)", said)
    assert last is not None, said
    assert int(last[1]) == len(written["none"]) - 1


def test_metadata_log_is_decoded(stopped: Any) -> None:
    directory, written = stopped
    segments = sorted(partition(directory, "__cluster_metadata-0").glob("*.log"))
    said = dump(segments, "--cluster-metadata-decoder")
    kinds = set(re.findall(r'"type":"(\w+)"', said))
    assert {"FEATURE_LEVEL_RECORD", "REGISTER_BROKER_RECORD"} <= kinds
    assert {"TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD"} <= kinds
    for codec in written:
        assert f'"name":"written-{codec}"' in said
