"""Topics as Parquet files, each record once, whatever is killed in between.

    ARCHIVE/
      batches/batch=00000000/topic=orders/day=2026-11-15/part-….parquet  one directory a micro-batch
      batches/batch=00000000-00000007/…                                   several of them, made one
      checkpoint/                                                       how far the stream has got

A micro-batch that is done again, because the driver died before it was written down as done, has
the same records and overwrites its own directory. ``merge`` makes one directory of many small ones:
it is written beside them, renamed, and only then are they removed; one that spans others counts
instead of them from the moment it has its name, so no record ever counts twice. A directory counts
once Spark has put its _SUCCESS into it.

Records keep all that the source gives: key, value, headers, partition, offset, timestamp, epoch.
``restore`` writes them to a topic again, through the exactly-once sink.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cotidal.spark import query_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame, SparkSession

_NAME: Final = re.compile(r"batch=(\d{8})(?:-(\d{8}))?")
MERGING: Final = "merging"


class Directory(NamedTuple):
    """The micro-batches from ``first`` to ``last``."""

    first: int
    last: int

    @property
    def name(self) -> str:
        single = f"batch={self.first:08}"
        return single if self.first == self.last else f"{single}-{self.last:08}"

    def spans(self, other: Directory) -> bool:
        return self != other and self.first <= other.first and other.last <= self.last


def parse(name: str) -> Directory | None:
    found = _NAME.fullmatch(name)
    return Directory(int(found[1]), int(found[2] or found[1])) if found else None


def current(found: Iterable[Directory]) -> list[Directory]:
    """Those that count: not what a larger one has taken the place of."""
    all_ = sorted(found)
    return [each for each in all_ if not any(other.spans(each) for other in all_)]


def archive(
    spark: SparkSession,
    records: DataFrame,
    path: str,
    *,
    every: str | None = None,
    on_batch: Callable[[int], None] = lambda batch: None,
) -> None:
    """Write a stream of records to an archive: what there is now, or with ``every`` ("1 minute")
    for ever. Begun again with the same path it goes on where it was."""
    from pyspark.sql import functions as f

    def write(batch: DataFrame, number: int) -> None:
        (
            batch.withColumn("day", f.to_date("timestamp"))
            .repartition("topic", "partition")
            .sortWithinPartitions("topic", "partition", "offset")
            .write.mode("overwrite")
            .partitionBy("topic", "day")
            .parquet(f"{path}/batches/{Directory(number, number).name}")
        )
        on_batch(number)

    writer = records.writeStream.foreachBatch(write).option(
        "checkpointLocation", f"{path}/checkpoint"
    )
    writer = writer.trigger(processingTime=every) if every else writer.trigger(availableNow=True)
    query_runs.to_the_end(writer)


def read(spark: SparkSession, path: str) -> DataFrame:
    """Everything in an archive."""
    files = _Files(spark, path)
    found = current(files.directories())
    if not found:
        raise FileNotFoundError(f"{path} is no archive, or an empty one")
    root = f"{path}/batches"
    table = spark.read.option("basePath", root).parquet(*(f"{root}/{each.name}" for each in found))
    return table.drop("batch")


def merge(spark: SparkSession, path: str, *, files_each: int = 1) -> int:
    """Make one directory of all; returns how many there were. Nobody may archive meanwhile."""
    files = _Files(spark, path)
    files.clear()
    found = current(files.directories())
    if len(found) < 2:
        return len(found)
    whole = Directory(found[0].first, found[-1].last)
    (
        read(spark, path)
        .repartition(files_each, "topic", "day")
        .sortWithinPartitions("topic", "day", "partition", "offset")
        .write.mode("overwrite")
        .partitionBy("topic", "day")
        .parquet(f"{path}/{MERGING}")
    )
    files.rename(MERGING, f"batches/{whole.name}")
    files.clear()
    return len(found)


def restore(spark: SparkSession, path: str, bootstrap: str, *, topic: str, into: str) -> None:
    """Write the records of a topic to another one, each to its old partition, in their order, with
    their timestamps: all of them in one go, or none."""
    from pyspark.sql import functions as f

    (
        read(spark, path)
        .where(f.col("topic") == topic)
        .repartition("partition")
        .sortWithinPartitions("partition", "offset")
        .select("key", "value", "headers", "partition", "timestamp")
        .write.format("cotidal")
        .mode("append")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", into)
        .option("includeTimestamps", "true")
        .save()
    )


def unlike(archived: DataFrame, restored: DataFrame) -> list[int]:
    """The partitions of a topic that do not hold what was archived of it, in order."""
    kept, found = (
        {row.partition: (row.records, row.digest) for row in digests(each).collect()}
        for each in (archived, restored)
    )
    return sorted(at for at in kept.keys() | found.keys() if kept.get(at) != found.get(at))


def digests(records: DataFrame) -> DataFrame:
    """By partition: how many records, and a number that is the same for the same keys, values,
    headers and timestamps in the same order. Offsets do not count: markers take some."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    place = f.row_number().over(Window.partitionBy("topic", "partition").orderBy("offset"))
    headers = f.to_json(f.col("headers"))  # a list of none and no list are the same
    return (
        records.select(
            "topic",
            "partition",
            f.xxhash64("key", "value", headers, "timestamp", place).alias("hash"),
        )
        .groupBy("topic", "partition")
        .agg(f.count("*").alias("records"), f.bit_xor("hash").alias("digest"))
        .orderBy("topic", "partition")
    )


class _Files:
    """An archive's directories, on whatever file system Spark reaches."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        jvm: Any = spark.sparkContext._jvm
        self._path = jvm.org.apache.hadoop.fs.Path
        self._root = path
        self._files = self._path(path).getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())

    def directories(self) -> list[Directory]:
        at = self._path(f"{self._root}/batches")
        if not self._files.exists(at):
            return []
        names = [each.getPath().getName() for each in self._files.listStatus(at)]
        whole = [name for name in names if self._files.exists(self._path(at, f"{name}/_SUCCESS"))]
        return [found for name in whole if (found := parse(name)) is not None]

    def rename(self, old: str, new: str) -> None:
        if not self._files.rename(
            self._path(f"{self._root}/{old}"), self._path(f"{self._root}/{new}")
        ):
            raise OSError(f"{self._root}/{old} could not be renamed to {new}")

    def clear(self) -> None:
        """Remove what a larger directory has taken the place of, and what was never finished."""
        self._files.delete(self._path(f"{self._root}/{MERGING}"), True)
        found = self.directories()
        for each in set(found) - set(current(found)):
            self._files.delete(self._path(f"{self._root}/batches/{each.name}"), True)
