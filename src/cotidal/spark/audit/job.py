"""The audit as a Spark job: every replica read range by range, side by side, and compared.

  1  the driver asks the cluster for its partitions, their replicas and high watermarks
  2  executors read the same ranges of every replica and bring back what each comes to: one row a
     range, however many records it holds
  3  Spark lays the replicas of each range side by side; only ranges that are not alike come back
  4  executors look closely at those, batch by batch, to name the first offset that differs
  5  the tails above the high watermarks, followers before leaders, where directories are given

Topics may grow meanwhile: what is compared ends at the high watermarks of step 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from cotidal.client.failures import ClientError
from cotidal.spark.audit import findings as telling
from cotidal.spark.audit.copies import (
    SHARE_OFFSETS,
    Copy,
    Subject,
    shares,
)
from cotidal.spark.audit.findings import Doubt, Finding
from cotidal.spark.audit.replica_logs import pieces
from cotidal.spark.audit.stretches import Line, Share, Stretch, lines, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHARES: Final = (
    "topic string, topic_id binary, partition int, broker int, place string, on_disk boolean,"
    " compacted boolean, first long, below long"
)
STRETCHES: Final = (
    "topic string, partition int, broker int, first long, below long, batches long, records long,"
    " size_bytes long, first_offset long, end_offset long, first_epoch int, last_epoch int,"
    " digest binary, fault string, fault_offset long, unread string"
)
LINES: Final = (
    "topic string, partition int, broker int, first long, base_offset long, last_offset long,"
    " leader_epoch int, records int, digest binary"
)
DOUBTS_MAX: Final = 200
"""Ranges that are looked at closely: after so many the topic is not damaged but another one."""
TAIL_BATCHES_MAX: Final = 10_000
"""Of one replica above the high watermark: more, and it is not a tail."""
END: Final = 1 << 62
ARROW: Final = {
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
}


class Total(NamedTuple):
    """What was read of one partition."""

    topic: str
    partition: int
    replicas: int
    records: int
    """In the replica that holds most."""
    size_bytes: int
    """Of all replicas."""
    high_watermark: int


class Report(NamedTuple):
    totals: tuple[Total, ...]
    findings: tuple[Finding, ...]
    doubts_left: int
    """Ranges that differ and were not looked at closely."""
    receipts: int = 0
    """Of acknowledged writes, held against the topics."""

    @property
    def agreed(self) -> bool:
        return not self.doubts_left and not any(each.kind.is_fault for each in self.findings)


def audit(
    spark: SparkSession, found: Sequence[Subject], *, share_offsets: int = SHARE_OFFSETS
) -> Report:
    """Compare all replicas of these partitions."""
    wanted = [each for subject in found for each in shares(subject, share_offsets)]
    seen = _measured(spark, wanted).cache()
    try:
        doubts: list[tuple[Subject, Doubt]] = []
        told: list[Finding] = []
        by_name = {(each.topic, each.partition): each for each in found}
        for stretches in _unlike(seen):
            subject = by_name[stretches[0].topic, stretches[0].partition]
            certain, unclear = telling.judged(subject, stretches)
            told += certain
            doubts += ((subject, doubt) for doubt in unclear)
        told += _parted(spark, doubts[:DOUBTS_MAX])
        totals, short = _totals(seen, by_name)
    finally:
        seen.unpersist()
    told += short
    for subject in found:
        told += telling.unreachable(subject)
        told += _tails(subject)
    return Report(totals, tuple(_once(told)), max(0, len(doubts) - DOUBTS_MAX))


def _measured(spark: SparkSession, wanted: Sequence[Share]) -> DataFrame:
    return _spread(spark, wanted).mapInArrow(_each_share(_measure, STRETCHES), STRETCHES)


def _spread(spark: SparkSession, wanted: Sequence[Share]) -> DataFrame:
    """So many tasks as keep every executor busy to the end."""
    tasks = min(len(wanted), 4 * spark.sparkContext.defaultParallelism) or 1
    return spark.createDataFrame(list(wanted), SHARES).repartition(tasks)


def _each_share(
    read: Callable[[Share], Iterable[tuple[Any, ...]]], columns: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    names = [column.split()[0] for column in columns.split(", ")]
    schema = pa.schema(
        [
            (name, ARROW[column.split()[1]])
            for name, column in zip(names, columns.split(", "), strict=True)
        ]
    )

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for share in batch.to_pylist():
                found = list(read(Share(**share)))
                arrays = [list(column) for column in zip(*found, strict=True)]
                if found:
                    yield pa.RecordBatch.from_pydict(
                        dict(zip(names, arrays, strict=True)), schema=schema
                    )

    return rows


def _measure(share: Share) -> Iterator[Stretch]:
    try:
        yield measured(share, pieces(share))
    except (ClientError, OSError) as error:
        yield Stretch(
            share.topic, share.partition, share.broker, share.first, share.below, unread=str(error)
        )


def _look(share: Share) -> Iterator[tuple[Any, ...]]:
    for line in lines(share, pieces(share)):
        yield (share.topic, share.partition, share.broker, share.first, *line)


def _unlike(seen: DataFrame) -> Iterator[list[Stretch]]:
    """The ranges whose replicas are not all well and alike, and those that do not begin where the
    one before ends."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    range_ = ("topic", "partition", "first")
    unlike = (
        seen.groupBy(*range_)
        .agg(
            f.collect_list(f.struct(*Stretch._fields)).alias("stretches"),
            f.count_distinct("digest").alias("digests"),
            f.count("fault").alias("faults"),
            f.count("unread").alias("unread"),
        )
        .where("digests > 1 or faults > 0 or unread > 0")
    )
    for row in unlike.toLocalIterator():
        yield [Stretch(**each.asDict()) for each in row.stretches]
    before = Window.partitionBy("topic", "partition", "broker").orderBy("first")
    torn = (
        seen.where("batches > 0 and digest != X''")
        .withColumn("before", f.lag("end_offset").over(before))
        .where("before != first_offset and fault is null")
    )
    for row in torn.toLocalIterator():
        found = Stretch(**{name: row[name] for name in Stretch._fields})
        fault = f"offsets {row.before} to {row.first_offset - 1} are missing"
        yield [found._replace(fault=fault, fault_offset=row.before)]


def _parted(spark: SparkSession, doubts: Sequence[tuple[Subject, Doubt]]) -> Iterator[Finding]:
    """Look at ranges that differ, batch by batch."""
    if not doubts:
        return
    wanted = {
        subject.share(subject.copy_of(broker), doubt.first, doubt.below): None
        for subject, doubt in doubts
        for broker in (doubt.broker, doubt.against)
    }
    found: dict[tuple[str, int, int, int], list[Line]] = {}
    rows = _spread(spark, list(wanted)).mapInArrow(_each_share(_look, LINES), LINES)
    for row in rows.toLocalIterator():
        where = (row.topic, row.partition, row.broker, row.first)
        line = Line(row.base_offset, row.last_offset, row.leader_epoch, row.records, row.digest)
        found.setdefault(where, []).append(line._replace(digest=bytes(row.digest)))
    for subject, doubt in doubts:
        at = (subject.topic, subject.partition)
        mine = sorted(found.get((*at, doubt.broker, doubt.first), ()))
        theirs = sorted(found.get((*at, doubt.against, doubt.first), ()))
        yield from telling.parted(subject, doubt, mine, theirs)


def _totals(
    seen: DataFrame, by_name: dict[tuple[str, int], Subject]
) -> tuple[tuple[Total, ...], list[Finding]]:
    """What was read of each partition, and which replicas end too early."""
    from pyspark.sql import functions as f

    ends = (
        seen.groupBy("topic", "partition", "broker")
        .agg(
            f.sum("records").alias("records"),
            f.sum("size_bytes").alias("size_bytes"),
            f.max("end_offset").alias("end_offset"),
            f.count("unread").alias("unread"),
            f.count("fault").alias("faults"),
        )
        .collect()
    )
    totals: list[Total] = []
    short: list[Finding] = []
    for (topic, partition), subject in by_name.items():
        mine = [row for row in ends if (row.topic, row.partition) == (topic, partition)]
        for row in mine:
            if not row.unread and not row.faults:
                found = telling.lag(subject, row.broker, max(row.end_offset, subject.start_offset))
                short += [] if found is None else [found]
        totals.append(
            Total(
                topic,
                partition,
                len(subject.copies),
                max((row.records for row in mine), default=0),
                sum(row.size_bytes for row in mine),
                subject.high_watermark,
            )
        )
    return tuple(totals), short


def _tails(subject: Subject) -> list[Finding]:
    """Above the high watermark, from directories: followers first, for the leader's only grows."""
    on_disk = {each.broker: each for each in subject.copies if each.on_disk}
    leader = on_disk.pop(subject.leader, None)
    if leader is None or subject.compacted:
        return []

    def tail_of(copy: Copy) -> list[Line]:
        share = subject.share(copy, subject.high_watermark, END)
        return list(islice(lines(share, pieces(share)), TAIL_BATCHES_MAX))

    tails = {broker: tail_of(copy) for broker, copy in on_disk.items()}
    own = tail_of(leader)
    return [
        each for broker, mine in tails.items() for each in telling.tail(subject, broker, mine, own)
    ]


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """Neighbouring ranges may tell of the same place; in the order of brokers and offsets."""
    kept: dict[tuple[str, int, int, int], Finding] = {}
    for each in findings:
        kept.setdefault((each.topic, each.partition, each.broker, each.offset), each)
    return [kept[key] for key in sorted(kept)]
