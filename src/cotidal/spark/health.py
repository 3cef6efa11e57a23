"""How replication has fared, from what the brokers tell of it (docs/events.md).

Each function takes and gives a DataFrame, of a table or of a stream alike:

  events        the records of `__cotidal_events`, read as JSON, each once
  windows       by window, partition and broker; of these
  partitions    lag of the furthest follower, seconds that replicas or the minimum of them were
                missing, who left and joined, elections, records cut
  brokers       how much it leads, what of that is not well, how long acknowledgements took
  outages       by partition: how long nobody led it
  flapping      replicas that leave the ISR again and again
  uneven        brokers that lead more than their share

A partition is listed in every health sample, one a second, while it is not well: so samples are
seconds. A record that was dropped by its broker is missing here too; sequences tell how many.
health_stream.py follows them, window by window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cotidal.limits import ACK_SPANS
from cotidal.spark.flags import FLAPPING_WITHIN_MS, FLAPS, UNEVEN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession

TOPIC: Final = "__cotidal_events"
LATE: Final = "30 seconds"
"""So much later than others an event may come and still be counted, in a stream."""
FLAPPING_WITHIN: Final = f"{FLAPPING_WITHIN_MS} milliseconds"

FOLLOWER: Final = "struct<node int, in_sync boolean, lag_records long, lag_ms long>"
SCHEMA: Final = (
    "kind string, time long, teller int, incarnation string, sequence long, topic string,"
    " partition int, leader int, previous int, leader_epoch int, isr array<int>,"
    " removed array<int>, added array<int>, node int, records long, leads int, replicas int,"
    " under_replicated int, under_min_isr int, offline_replicas int, events_dropped long,"
    " ack_ms array<long>, partitions array<struct<topic string, partition int,"
    f" under_replicated boolean, under_min_isr boolean, followers array<{FOLLOWER}>>>"
)
PARTITION_COLUMNS: Final = (
    "topic", "partition", "lag_records", "lag_ms", "under_replicated_s", "under_min_isr_s",
    "left", "joined", "elections", "unclean", "records_cut",
)  # fmt: skip
BROKER_COLUMNS: Final = (
    "broker", "leads", "replicas", "under_replicated", "offline_replicas", "events_dropped",
)  # fmt: skip
ACK_QUANTILES: Final = {"ack_p50_ms": 0.5, "ack_p99_ms": 0.99, "ack_max_ms": 1.0}


class Health(NamedTuple):
    """All that has been told so far. Each is a list of rows."""

    partitions: list[Row]
    brokers: list[Row]
    outages: list[Row]
    flapping: list[Row]
    uneven: list[Row]


def so_far(spark: SparkSession, bootstrap: str) -> Health:
    """Read the topic once."""
    told = events(source(spark.read, bootstrap).load()).cache()
    try:
        all_time = windows(told, None)
        return Health(
            partitions(all_time).orderBy("topic", "partition").collect(),
            brokers(all_time).orderBy("broker").collect(),
            outages(told).orderBy("since").collect(),
            flapping(told).orderBy("window").collect(),
            uneven(brokers(windows(told))).orderBy("window").collect(),
        )
    finally:
        told.unpersist()


def by_window(spark: SparkSession, bootstrap: str, window: str) -> list[Row]:
    """``partitions``, of all that has been told."""
    told = events(source(spark.read, bootstrap).load())
    return partitions(windows(told, window)).collect()


def source(reader: Any, bootstrap: str, topic: str = TOPIC) -> Any:
    """``reader``: spark.read or spark.readStream."""
    return (
        reader.format("cotidal")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", "false")  # events are kept for a day
    )


def events(records: DataFrame) -> DataFrame:
    """``records``: the topic, as the source gives it."""
    told = parsed(records)
    once = ["incarnation", "sequence"]
    if told.isStreaming:
        return told.dropDuplicatesWithinWatermark(once)
    return told.dropDuplicates(once)


def parsed(records: DataFrame) -> DataFrame:
    """As ``events``, but what was written twice is there twice."""
    from pyspark.sql import functions as f

    told = (
        records.select(f.from_json(f.col("value").cast("string"), SCHEMA).alias("told"))
        .select("told.*")
        .withColumnRenamed("under_replicated", "told_under_replicated")
        .withColumn("at", f.timestamp_millis("time"))
    )
    return told.withWatermark("at", LATE) if told.isStreaming else told


def windows(told: DataFrame, window: str | None = "10 seconds") -> DataFrame:
    """By window, and by partition or broker: ``broker`` is null in the rows of partitions, and
    ``topic`` in those of brokers. One aggregate for both, so that a stream is read once. Without a
    window, all that was told is in one, which is null."""
    from pyspark.sql import functions as f

    def happened(*kinds: str) -> Column:
        return f.sum(f.col("kind").isin(*kinds).cast("int"))

    def most(what: str) -> Column:
        return f.coalesce(f.max(f.array_max(f.col(what))), f.lit(0))

    cut = f.sum(f.when(f.col("kind") == "log_truncated", f.col("records")))
    spans = (f.sum(f.coalesce(f.get("ack_ms", f.lit(at)), f.lit(0))) for at in range(ACK_SPANS))
    return (
        told.select("*", f.explode(_subjects()).alias("of"))
        .where("of.topic is not null or of.broker is not null")
        .groupBy(
            (f.lit(None) if window is None else f.window("at", window)).alias("window"),
            f.col("of.topic").alias("topic"),
            f.col("of.partition").alias("partition"),
            f.col("of.broker").alias("broker"),
        )
        .agg(
            most("of.followers.lag_records").alias("lag_records"),
            most("of.followers.lag_ms").alias("lag_ms"),
            f.sum(f.col("of.under_replicated").cast("int")).alias("under_replicated_s"),
            f.sum(f.col("of.under_min_isr").cast("int")).alias("under_min_isr_s"),
            happened("isr_shrunk").alias("left"),
            happened("isr_expanded").alias("joined"),
            happened("leader_changed", "leader_epoch_raised").alias("elections"),
            happened("unclean_election").alias("unclean"),
            f.coalesce(cut, f.lit(0)).alias("records_cut"),
            f.max_by("leads", "time").alias("leads"),
            f.max_by("replicas", "time").alias("replicas"),
            f.max("told_under_replicated").alias("under_replicated"),
            f.max("offline_replicas").alias("offline_replicas"),
            f.max("events_dropped").alias("events_dropped"),
            f.array(*spans).alias("ack_ms"),
        )
    )


def _subjects() -> Column:
    """Whom an event is about: the partitions that a sample lists and the broker that tells it, or
    the one partition that something happened to."""
    from pyspark.sql import functions as f

    def about(broker: Column, topic: Column, partition: Column) -> Column:
        return f.array(
            f.struct(
                topic.cast("string").alias("topic"),
                partition.cast("int").alias("partition"),
                broker.cast("int").alias("broker"),
                f.lit(False).alias("under_replicated"),
                f.lit(False).alias("under_min_isr"),
                f.array().cast(f"array<{FOLLOWER}>").alias("followers"),
            )
        )

    nobody = f.lit(None)
    listed = f.transform(
        f.coalesce(f.col("partitions"), f.array()),
        lambda each: f.struct(
            each["topic"].alias("topic"),
            each["partition"].alias("partition"),
            nobody.cast("int").alias("broker"),
            each["under_replicated"].alias("under_replicated"),
            each["under_min_isr"].alias("under_min_isr"),
            each["followers"].alias("followers"),
        ),
    )
    return f.when(
        f.col("kind") == "health", f.concat(listed, about(f.col("teller"), nobody, nobody))
    ).otherwise(about(nobody, f.col("topic"), f.col("partition")))


def partitions(of_all: DataFrame) -> DataFrame:
    """Those rows of ``windows``."""
    return of_all.where("topic is not null").select("window", *PARTITION_COLUMNS)


def brokers(of_all: DataFrame) -> DataFrame:
    """Those rows of ``windows``; acknowledgement times as powers of two, null where there were
    none."""
    return of_all.where("broker is not null").select(
        "window",
        *BROKER_COLUMNS,
        _acks().alias("acks"),
        *(_ack_ms(q).alias(name) for name, q in ACK_QUANTILES.items()),
    )


def _acks() -> Column:
    from pyspark.sql import functions as f

    return f.aggregate("ack_ms", f.lit(0).cast("long"), lambda total, each: total + each)


def _ack_ms(quantile: float) -> Column:
    """The end of the span that so many of the acknowledgements lie below."""
    from pyspark.sql import functions as f

    below = f.transform(
        f.sequence(f.lit(1), f.lit(ACK_SPANS)),
        lambda upto: (
            f.aggregate(
                f.slice("ack_ms", f.lit(1), upto),
                f.lit(0).cast("long"),
                lambda total, each: total + each,
            )
            >= f.lit(quantile) * _acks()
        ),
    )
    span = f.array_position(below, True).cast("int")
    return f.when(_acks() > 0, f.pow(f.lit(2), span - 1).cast("int"))


def outages(told: DataFrame) -> DataFrame:
    """Of a table only: one row for each time that a partition lost its leader."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    by_partition = Window.partitionBy("topic", "partition").orderBy("leader_epoch", "time")
    return (
        told.where("kind = 'leader_changed'")
        .withColumn("next_time", f.lead("time").over(by_partition))
        .withColumn("next_leader", f.lead("leader").over(by_partition))
        .where("leader = -1")
        .select(
            "topic",
            "partition",
            f.timestamp_millis("time").alias("since"),
            f.col("previous").alias("led_before"),
            f.col("next_leader").alias("led_after"),
            (f.col("next_time") - f.col("time")).alias("without_leader_ms"),
        )
    )


def flapping(told: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return (
        told.where("kind = 'isr_shrunk'")
        .select("at", "topic", "partition", f.explode("removed").alias("replica"))
        .groupBy(f.window("at", FLAPPING_WITHIN), "topic", "partition", "replica")
        .agg(f.count("*").alias("times"))
        .where(f.col("times") >= FLAPS)
    )


def uneven(by_broker: DataFrame) -> DataFrame:
    """Of a table of ``brokers`` only: those that lead too much."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    share = f.avg("leads").over(Window.partitionBy("window"))
    return by_broker.withColumn("share", share).where(
        (f.col("leads") >= UNEVEN * f.col("share")) & (f.col("leads") > 1)
    )
