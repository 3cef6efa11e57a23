"""Topics in Parquet: every record once, whatever dies."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cotidal.spark import archive
from cotidal.spark.archive import Directory, current, parse


def test_a_directory_is_named_after_its_batches() -> None:
    for each in (Directory(3, 3), Directory(0, 12)):
        assert parse(each.name) == each
    assert parse("checkpoint") is None
    assert parse("batch=00000001-2") is None


def test_one_that_spans_others_takes_their_place() -> None:
    found = [Directory(0, 0), Directory(1, 1), Directory(0, 1), Directory(2, 2)]
    assert current(found) == [Directory(0, 1), Directory(2, 2)]


@pytest.fixture
def stream(spark: Any, source: Callable[..., dict[str, str]]) -> Callable[[str], Any]:
    def of(topic: str) -> Any:
        options = source(topic, startingOffsets="earliest", includeHeaders="true")
        return spark.readStream.format("cotidal").options(**options).load()

    return of


def rows(spark: Any, path: Path) -> list[tuple[int, int, bytes]]:
    found = archive.read(spark, str(path)).select("partition", "offset", "value").collect()
    return sorted((row.partition, row.offset, bytes(row.value)) for row in found)


def forget(path: Path) -> None:
    """That the last batch was done: as if the driver had died before it was written down."""
    commits = path / "checkpoint" / "commits"
    last = max(int(each.name) for each in commits.iterdir() if each.name.isdigit())
    (commits / f"{last}").unlink()
    (commits / f".{last}.crc").unlink()


def test_an_archive_goes_on_where_it_was(
    spark: Any, stream: Any, new_topic: Any, write: Any, tmp_path: Path
) -> None:
    topic = new_topic(partitions=2)
    written = []
    for number in range(3):
        for partition in range(2):
            write(topic, [b"%d" % number] * 4, partition=partition)
            written += [(partition, number * 4 + each, b"%d" % number) for each in range(4)]
        archive.archive(spark, stream(topic), str(tmp_path))
    assert rows(spark, tmp_path) == sorted(written)
    forget(tmp_path)
    archive.archive(spark, stream(topic), str(tmp_path))
    assert rows(spark, tmp_path) == sorted(written), "the same batch again overwrites itself"


def test_small_directories_are_made_one(
    spark: Any, stream: Any, new_topic: Any, write: Any, tmp_path: Path
) -> None:
    topic = new_topic()
    for number in range(3):
        write(topic, [b"%d" % number] * 4)
        archive.archive(spark, stream(topic), str(tmp_path))
    before = rows(spark, tmp_path)
    kept = tmp_path / "kept"
    shutil.copytree(tmp_path / "batches", kept)
    assert archive.merge(spark, str(tmp_path)) == 3
    (left,) = (tmp_path / "batches").iterdir()
    assert left.name == "batch=00000000-00000002"
    assert rows(spark, tmp_path) == before
    for each in kept.iterdir():  # killed before the old ones were removed
        shutil.copytree(each, tmp_path / "batches" / each.name)
    assert rows(spark, tmp_path) == before
    write(topic, [b"more"])
    archive.archive(spark, stream(topic), str(tmp_path))
    assert len(rows(spark, tmp_path)) == len(before) + 1


def test_a_topic_is_restored_as_it_was(
    spark: Any, stream: Any, source: Any, new_topic: Any, write: Any, tmp_path: Path
) -> None:
    old, new = new_topic(partitions=2), new_topic(partitions=2)
    for number in range(20):
        write(
            old,
            [b"%d" % number, None],
            partition=number % 2,
            key=b"k%d" % (number % 3) if number % 4 else None,
            timestamp=1_700_000_000_000 + number,
            headers=[("n", b"%d" % number)] if number % 5 == 0 else [],
        )
    archive.archive(spark, stream(old), str(tmp_path))
    archive.restore(spark, str(tmp_path), source()["kafka.bootstrap.servers"], topic=old, into=new)

    def table(topic: str) -> Any:
        options = source(
            topic, includeHeaders="true", **{"kafka.isolation.level": "read_committed"}
        )
        return spark.read.format("cotidal").options(**options).load()

    kept = archive.read(spark, str(tmp_path))
    assert [tuple(row)[:3] for row in archive.digests(kept).collect()] == [
        (old, 0, 20),
        (old, 1, 20),
    ]
    assert archive.unlike(kept, table(old)) == []
    assert archive.unlike(kept, table(new)) == []
    assert archive.unlike(kept, table(new).where("not (partition = 1 and value = '7')")) == [1]


def test_what_is_no_archive_is_told(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no archive"):
        archive.read(spark, str(tmp_path))
