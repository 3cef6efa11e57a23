"""How replication has fared, from what the brokers tell of it (docs/events.md).

Each function takes and gives a DataFrame, of a table or of a stream alike:

  events        the records of `__cotidal_events`, read as JSON, each once
  partitions    by window and partition: lag of the furthest follower, seconds that replicas or the
                minimum of them were missing, who left and joined, elections, records cut
  overall       by partition, all windows together
  outages       by partition: how long nobody led it
  flapping      replicas that leave the ISR again and again
  brokers       by window and broker: how much it leads, and what of that is not well
  uneven        brokers that lead more than their share

A partition is listed in every health sample, one a second, while it is not well: so samples are
seconds. A record that was dropped by its broker is missing here too; sequences tell how many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cotidal.spark import query_runs

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame, Row, SparkSession

TOPIC: Final = "__cotidal_events"
LATE: Final = "30 seconds"
"""So much later than others an event may come and still be counted, in a stream."""
FLAPS: Final = 3
FLAPPING_WITHIN: Final = "5 minutes"
UNEVEN: Final = 1.5
"""A broker that leads so many times its share leads too much."""

SCHEMA: Final = (
    "kind string, time long, teller int, incarnation string, sequence long, topic string,"
    " partition int, leader int, previous int, leader_epoch int, isr array<int>,"
    " removed array<int>, added array<int>, node int, records long, leads int, replicas int,"
    " under_replicated int, under_min_isr int, offline_replicas int, events_dropped long,"
    " partitions array<struct<topic string, partition int, high_watermark long, end_offset long,"
    " under_replicated boolean, under_min_isr boolean, isr array<int>,"
    " followers array<struct<node int, in_sync boolean, lag_records long, lag_ms long>>>>"
)


class Health(NamedTuple):
    """All that has been told so far. Each is a list of rows."""

    partitions: list[Row]
    """Over all windows."""
    outages: list[Row]
    flapping: list[Row]
    uneven: list[Row]


def so_far(spark: SparkSession, bootstrap: str) -> Health:
    """Read the topic once."""
    told = events(_source(spark.read, bootstrap).load()).cache()
    try:
        return Health(
            overall(partitions(told)).collect(),
            outages(told).orderBy("since").collect(),
            flapping(told).orderBy("window").collect(),
            uneven(brokers(told)).orderBy("window").collect(),
        )
    finally:
        told.unpersist()


def follow(
    spark: SparkSession,
    bootstrap: str,
    path: str,
    *,
    window: str = "10 seconds",
    on_windows: Callable[[list[Row]], None] = lambda rows: None,
    once: bool = False,
) -> None:
    """Write windows of partitions to Parquet as they end, for ever, or ``once`` all that there is.
    Begun again with the same path it goes on where it was."""

    def write(batch: DataFrame, number: int) -> None:
        rows = batch.cache()
        try:
            rows.write.mode("overwrite").parquet(f"{path}/windows/batch={number:08}")
            on_windows(rows.orderBy("window", "topic", "partition").collect())
        finally:
            rows.unpersist()

    told = events(_source(spark.readStream, bootstrap).load())
    writer = (
        partitions(told, window)
        .writeStream.outputMode("append")
        .foreachBatch(write)
        .option("checkpointLocation", f"{path}/checkpoint")
    )
    writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=window)
    query_runs.to_the_end(writer)


def _source(reader: Any, bootstrap: str) -> Any:
    return (
        reader.format("cotidal")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", TOPIC)
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", "false")  # events are kept for a day
    )


def events(records: DataFrame) -> DataFrame:
    """``records``: the topic, as the source gives it."""
    from pyspark.sql import functions as f

    told = (
        records.select(f.from_json(f.col("value").cast("string"), SCHEMA).alias("told"))
        .select("told.*")
        .withColumn("at", f.timestamp_millis("time"))
    )
    once = ["incarnation", "sequence"]
    if told.isStreaming:
        return told.withWatermark("at", LATE).dropDuplicatesWithinWatermark(once)
    return told.dropDuplicates(once)


def partitions(told: DataFrame, window: str = "10 seconds") -> DataFrame:
    from pyspark.sql import functions as f

    def happened(*kinds: str) -> Column:
        return f.col("kind").isin(*kinds).cast("int")

    sampled = f.explode(
        f.when(f.col("kind") == "health", f.col("partitions")).otherwise(
            # What happened to one partition is a sample of that partition alone.
            f.array(
                f.struct(
                    "topic",
                    "partition",
                    f.lit(None).cast("long").alias("high_watermark"),
                    f.lit(None).cast("long").alias("end_offset"),
                    f.lit(False).alias("under_replicated"),
                    f.lit(False).alias("under_min_isr"),
                    "isr",
                    f.array()
                    .cast("array<struct<node int, in_sync boolean, lag_records long, lag_ms long>>")
                    .alias("followers"),
                )
            )
        )
    )
    return (
        told.select("at", "kind", "records", sampled.alias("of"))
        .where("of.topic is not null")
        .groupBy(
            f.window("at", window).alias("window"),
            f.col("of.topic").alias("topic"),
            f.col("of.partition").alias("partition"),
        )
        .agg(
            f.coalesce(f.max(f.array_max("of.followers.lag_records")), f.lit(0)).alias(
                "lag_records"
            ),
            f.coalesce(f.max(f.array_max("of.followers.lag_ms")), f.lit(0)).alias("lag_ms"),
            f.sum(f.col("of.under_replicated").cast("int")).alias("under_replicated_s"),
            f.sum(f.col("of.under_min_isr").cast("int")).alias("under_min_isr_s"),
            f.sum(happened("isr_shrunk")).alias("left"),
            f.sum(happened("isr_expanded")).alias("joined"),
            f.sum(happened("leader_changed", "leader_epoch_raised")).alias("elections"),
            f.sum(happened("unclean_election")).alias("unclean"),
            f.coalesce(
                f.sum(f.when(f.col("kind") == "log_truncated", f.col("records"))), f.lit(0)
            ).alias("records_cut"),
        )
    )


def overall(windows: DataFrame) -> DataFrame:
    """Of a table of ``partitions`` only: every partition in one row."""
    from pyspark.sql import functions as f

    added = ("under_replicated_s", "under_min_isr_s", "left", "joined", "elections", "unclean")
    return (
        windows.groupBy("topic", "partition")
        .agg(
            f.max("lag_records").alias("lag_records"),
            f.max("lag_ms").alias("lag_ms"),
            *(f.sum(each).alias(each) for each in (*added, "records_cut")),
        )
        .orderBy("topic", "partition")
    )


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


def brokers(told: DataFrame, window: str = "10 seconds") -> DataFrame:
    from pyspark.sql import functions as f

    return (
        told.where("kind = 'health'")
        .groupBy(f.window("at", window).alias("window"), f.col("teller").alias("broker"))
        .agg(
            f.max_by("leads", "time").alias("leads"),
            f.max_by("replicas", "time").alias("replicas"),
            f.max("under_replicated").alias("under_replicated"),
            f.max("offline_replicas").alias("offline_replicas"),
            f.max("events_dropped").alias("events_dropped"),
        )
    )


def uneven(by_broker: DataFrame) -> DataFrame:
    """Of a table of ``brokers`` only: those that lead too much."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    share = f.avg("leads").over(Window.partitionBy("window"))
    return by_broker.withColumn("share", share).where(
        (f.col("leads") >= UNEVEN * f.col("share")) & (f.col("leads") > 1)
    )
