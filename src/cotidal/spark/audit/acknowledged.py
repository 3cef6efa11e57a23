"""Is every record that was acknowledged there, once?

Held against each other: receipts, written by whoever produced (client/receipts.py), and the topics
as their leaders hold them; that the other replicas hold the same is the rest of the audit.

  missing   no record at an acknowledged offset, or one with another value
  doubled   a value is there more often than it was acknowledged

So whoever wants doubles found gives every record a value of its own; and a record whose
acknowledgement was lost, and which was written again, is a double too. What retention has removed
since is no fault. A compacted topic keeps the last of each key, so its receipts prove nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from cotidal.spark.audit.copies import Subject
from cotidal.spark.audit.findings import Finding, Kind
from cotidal.spark.failures import Unusable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

RECEIPT: Final = "topic string, partition int, offset long, sha256 string, _corrupt_record string"
WHERE: Final = ("topic", "partition", "offset")
NO_LEADER: Final = -1
SHOWN_MAX: Final = 1_000
"""Findings of each kind: more say nothing that these do not."""
PLACES_MAX: Final = 5
"""Named of one value that is there again and again."""


class Proof(NamedTuple):
    receipts: int
    """That were held against the topics."""
    findings: tuple[Finding, ...]


def prove(
    spark: SparkSession, bootstrap: str, files: Sequence[str], subjects: Sequence[Subject]
) -> Proof:
    """Receipts of other topics than those of ``subjects`` are left aside."""
    kept = {(each.topic, each.partition): each for each in subjects if not each.compacted}
    claims = receipts(spark, files, list(kept.values())).cache()
    try:
        count = claims.count()
        topics = sorted({each.topic for each in kept.values()})
        if not count or not topics:
            return Proof(0, ())
        there = held(spark, bootstrap, topics).cache()
        try:
            found = [*missing(claims, there, kept), *doubled(claims, there, kept)]
        finally:
            there.unpersist()
    finally:
        claims.unpersist()
    return Proof(count, tuple(found))


def receipts(spark: SparkSession, files: Sequence[str], subjects: Sequence[Subject]) -> DataFrame:
    """The claims about what is still kept, each once. Unusable where a line is none."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as f

    try:
        lines = spark.read.schema(RECEIPT).json(list(files))
    except AnalysisException as refused:
        raise Unusable(f"the receipts cannot be read: {str(refused).splitlines()[0]}") from None
    wrong = lines.where("_corrupt_record is not null or topic is null or offset is null").first()
    if wrong is not None:
        raise Unusable(
            f"this is no receipt: {wrong._corrupt_record or wrong.asDict()}; one is"
            ' {"topic": "orders", "partition": 0, "offset": 17, "sha256": "…"}'
        )
    starts = spark.createDataFrame(
        [(each.topic, each.partition, each.start_offset) for each in subjects],
        "topic string, partition int, start long",
    )
    told = lines.drop("_corrupt_record").distinct()
    mine = told.where(f.col("topic").isin(sorted({each.topic for each in subjects})))
    # A partition that is not there keeps its claims: nothing will be found at their offsets.
    return mine.join(f.broadcast(starts), ["topic", "partition"], "left").where(
        "start is null or offset >= start"
    )


def held(spark: SparkSession, bootstrap: str, topics: Sequence[str]) -> DataFrame:
    """Where records are, and the digests of their values."""
    from pyspark.sql import functions as f

    records = (
        spark.read.format("cotidal")
        .schema("value binary, topic string, partition int, offset bigint")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", ",".join(topics))
        .load()
    )
    return records.select(*WHERE, f.sha2("value", 256).alias("sha256"))


def missing(
    claims: DataFrame, there: DataFrame, subjects: Mapping[tuple[str, int], Subject]
) -> list[Finding]:
    from pyspark.sql import functions as f

    found = there.select(*WHERE, f.col("sha256").alias("found"), f.lit(True).alias("is_there"))
    wrong = (
        claims.join(found, list(WHERE), "left")
        .where("is_there is null or not (sha256 <=> found)")
        .orderBy(*WHERE)
        .limit(SHOWN_MAX)
    )

    def sentence(row: Row) -> str:
        if row.is_there is None:
            return f"offset {row.offset} was acknowledged, and no record is there"
        return f"offset {row.offset} was acknowledged with another value than is there"

    return [_finding(Kind.ACKNOWLEDGED, row, sentence(row), subjects) for row in wrong.collect()]


def doubled(
    claims: DataFrame, there: DataFrame, subjects: Mapping[tuple[str, int], Subject]
) -> list[Finding]:
    """Tombstones are all alike, and are not counted."""
    from pyspark.sql import functions as f

    value = ["topic", "sha256"]
    told = claims.groupBy(*value).agg(f.count("*").alias("acknowledged"))
    places = f.sort_array(f.collect_list(f.struct("partition", "offset")))
    again = (
        there.join(told, value)
        .groupBy(*value, "acknowledged")
        .agg(f.count("*").alias("times"), f.slice(places, 1, PLACES_MAX).alias("places"))
        .where("times > acknowledged")
        .selectExpr("*", "places[0].partition as partition", "places[0].offset as offset")
        .orderBy("topic", "partition", "offset")
        .limit(SHOWN_MAX)
    )

    def sentence(row: Row) -> str:
        where = ", ".join(f"{row.topic}-{at.partition} at {at.offset}" for at in row.places)
        return (
            f"a value that was acknowledged {_times(row.acknowledged)} is there"
            f" {_times(row.times)}: {where}{', …' if row.times > len(row.places) else ''}"
        )

    return [_finding(Kind.DOUBLED, row, sentence(row), subjects) for row in again.collect()]


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _finding(
    kind: Kind, row: Row, sentence: str, subjects: Mapping[tuple[str, int], Subject]
) -> Finding:
    subject = subjects.get((row.topic, row.partition))
    leader = NO_LEADER if subject is None else subject.leader
    return Finding(kind, row.topic, row.partition, leader, row.offset, -1, sentence)
