"""Health, window by window, as a stream that goes on where it was (health.py, flags.py).

Two queries, each with its checkpoint under the path: one of windows, which come when they are over
and LATE has passed; one of flags, whose machines are the state that Spark keeps between two
micro-batches. Each micro-batch overwrites a directory of Parquet of its own, so that one that is
done again changes nothing:

  windows/batch=N    partitions, by window
  brokers/batch=N    brokers, by window
  flags/batch=N      what was raised and lowered

and, if asked, adds its rows to a topic (docs/pipelines.md has its form), where the last record
of a key counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cotidal.client.admin import create_topic
from cotidal.client.cluster import Cluster
from cotidal.client.failures import Refused
from cotidal.errors import ErrorCode
from cotidal.spark import flags, health, query_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.streaming.state import GroupState

TOPIC: Final = "__cotidal_health"
TOPIC_CONFIGS: Final = {"retention.ms": str(24 * 60 * 60 * 1000), "min.insync.replicas": "1"}
"""As those of the events: read most eagerly when replicas are missing."""
ALL_BROKERS: Final = ""
"""The group of all samples among the flags; others are named after a partition."""

FLAG_SCHEMA: Final = (
    "kind string, time long, topic string, partition int, broker int, number int, share double,"
    " raised boolean"
)


class Follower(NamedTuple):
    spark: SparkSession
    bootstrap: str
    path: str
    publishes_to: str | None = None
    """A topic that gets the rows too."""
    window: str = "10 seconds"
    on_windows: Callable[[list[Row]], None] = lambda rows: None
    """Told of the partitions of each micro-batch."""
    events: str = health.TOPIC

    def run(self, *, once: bool = False) -> None:
        """For ever, or ``once`` all that there is."""
        if self.publishes_to is not None:
            make_topic(self.bootstrap, self.publishes_to)
        writers = [self._writer(self._windows(), "windows", self._write_windows)]
        writers.append(self._writer(self._flags(), "flags", self._write_flags))
        if once:
            for writer in writers:
                query_runs.to_the_end(writer.trigger(availableNow=True))
        else:
            query_runs.together([writer.trigger(processingTime=self.window) for writer in writers])

    def _windows(self) -> DataFrame:
        return health.windows(health.events(self._records()), self.window)

    def _flags(self) -> DataFrame:
        return flagged(self._records())

    def _records(self) -> DataFrame:
        return health.source(self.spark.readStream, self.bootstrap, self.events).load()

    def _writer(
        self, rows: DataFrame, name: str, write: Callable[[DataFrame, int], None]
    ) -> DataStreamWriter:
        def guarded(batch: DataFrame, number: int) -> None:
            kept = batch.cache()
            try:
                write(kept, number)
            finally:
                kept.unpersist()

        place = "checkpoint" if name == "windows" else f"checkpoint-{name}"
        return (
            rows.writeStream.outputMode("append")
            .foreachBatch(guarded)
            .option("checkpointLocation", f"{self.path}/{place}")
        )

    def _write_windows(self, of_all: DataFrame, number: int) -> None:
        partitions, brokers = health.partitions(of_all), health.brokers(of_all)
        self._keep(partitions, "windows", number)
        self._keep(brokers, "brokers", number)
        if self.publishes_to is not None:
            self._publish(told_partitions(partitions).union(told_brokers(brokers)))
        self.on_windows(partitions.orderBy("window", "topic", "partition").collect())

    def _write_flags(self, found: DataFrame, number: int) -> None:
        self._keep(found, "flags", number)
        if self.publishes_to is not None:
            self._publish(told_flags(found))

    def _keep(self, rows: DataFrame, name: str, number: int) -> None:
        rows.write.mode("overwrite").parquet(f"{self.path}/{name}/batch={number:08}")

    def _publish(self, records: DataFrame) -> None:
        (
            records.coalesce(1)
            .write.format("cotidal")
            .mode("append")
            .option("kafka.bootstrap.servers", self.bootstrap)
            .option("topic", self.publishes_to)
            .option("delivery", "at-least-once")  # again with the same key is the same row
            .save()
        )


def make_topic(bootstrap: str, name: str) -> None:
    """One partition, so that it has one order."""
    with Cluster(bootstrap) as cluster:
        try:
            create_topic(cluster, name, partitions=1, configs=TOPIC_CONFIGS)
        except Refused as refused:
            if refused.error is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise


def flagged(records: DataFrame) -> DataFrame:
    """``records``: the topic of events, as a stream. What flags.py says of it, with FLAG_SCHEMA."""
    from pyspark.sql import functions as f

    partition = f.concat_ws("-", "topic", f.col("partition").cast("string"))
    return (
        health.parsed(records)
        .where("kind in ('isr_shrunk', 'health')")
        .select(
            f.when(f.col("kind") == "health", f.lit(ALL_BROKERS)).otherwise(partition).alias("of"),
            *("at", "time", "topic", "partition", "teller", "leads", "removed"),
        )
        .groupBy("of")
        .applyInPandasWithState(
            _flags_of, FLAG_SCHEMA, "of string, text string", "append", "EventTimeTimeout"
        )
    )


def _flags_of(key: tuple[Any, ...], frames: Iterator[Any], state: GroupState) -> Iterator[Any]:
    """On an executor, for each group that has news or whose time has come."""
    import pandas as pd

    kept: tuple[str, str] | None = state.get if state.exists else None
    rows = pd.concat(list(frames) or [pd.DataFrame()])
    if key[0] == ALL_BROKERS:
        found = _leaderships(rows, state, kept)
    else:
        found = _departures(rows, state, kept)
    if found:
        yield pd.DataFrame(found)


def _leaderships(rows: Any, state: GroupState, kept: tuple[str, str] | None) -> list[Any]:
    leaderships = flags.Leaderships() if kept is None else flags.Leaderships.from_text(kept[1])
    for row in rows.itertuples():
        leaderships.told(int(row.time), int(row.teller), int(row.leads))
    found = [_row(flag, None, None) for flag in leaderships.judged()]
    state.update((ALL_BROKERS, leaderships.as_text()))
    return found


def _departures(rows: Any, state: GroupState, kept: tuple[str, str] | None) -> list[Any]:
    departures = flags.Departures() if kept is None else flags.Departures.from_text(kept[1])
    if state.hasTimedOut:
        assert kept is not None
        partition = kept[0]
        found = list(departures.passed(state.getCurrentWatermarkMs()))
    else:
        partition = f"{rows.topic.iloc[0]}-{int(rows.partition.iloc[0])}"
        found = []
        for row in rows.sort_values("time").itertuples():
            found += departures.left(int(row.time), [int(each) for each in row.removed])
    due = departures.due()
    if due is None:
        state.remove()
    else:
        state.update((partition, departures.as_text()))
        # Spark refuses a time that has passed: what comes late is looked at once more, at once.
        state.setTimeoutTimestamp(max(due, state.getCurrentWatermarkMs() + 1))
    topic, _, number = partition.rpartition("-")
    return [_row(flag, topic, int(number)) for flag in found]


def _row(flag: flags.Flag, topic: str | None, partition: int | None) -> dict[str, Any]:
    return {"topic": topic, "partition": partition, **flag._asdict()}


def told_partitions(rows: DataFrame) -> DataFrame:
    """As records of TOPIC; so are those below."""
    return _records(rows, "'partition'", "concat(topic, '-', partition)", health.PARTITION_COLUMNS)


def told_brokers(rows: DataFrame) -> DataFrame:
    columns = (*health.BROKER_COLUMNS, "acks", *health.ACK_QUANTILES)
    return _records(rows, "'broker'", "cast(broker as string)", columns)


def told_flags(rows: DataFrame) -> DataFrame:
    flapping = _flag_records(
        rows.where(f"kind = '{flags.FLAPPING}'"),
        "concat(topic, '-', partition, ':', broker)",
        ("topic", "partition", "broker as replica", "number as times"),
    )
    uneven = _flag_records(
        rows.where(f"kind = '{flags.UNEVEN_LEADER}'"),
        "cast(broker as string)",
        ("broker", "number as leads", "share"),
    )
    return flapping.union(uneven)


def _records(rows: DataFrame, kind: str, about: str, columns: tuple[str, ...]) -> DataFrame:
    timed = rows.selectExpr(
        "*", "unix_millis(window.start) as start", "unix_millis(window.end) as end"
    )
    return timed.selectExpr(
        f"concat({kind}, ':', {about}, ':', start) as key",
        f"to_json(struct(1 as v, {kind} as kind, start, end, {', '.join(columns)})) as value",
    )


def _flag_records(rows: DataFrame, about: str, columns: tuple[str, ...]) -> DataFrame:
    fields = ", ".join(columns)
    return rows.selectExpr(
        f"concat(kind, ':', {about}, ':', time) as key",
        f"to_json(struct(1 as v, kind, time, {fields}, raised)) as value",
    )
