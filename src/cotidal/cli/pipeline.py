"""``cotidal pipeline``: jobs on Spark over a cluster's data. They need the extra cotidal[spark]."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from cotidal.cli.engine import master_option
from cotidal.cli.table import bytes_text, print_json, print_table, red
from cotidal.cli.verb import Failed, Verb, VerbGroup, bootstrap_option, json_option
from cotidal.words import counted

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

    from cotidal.cli.table import Cell
    from cotidal.spark.audit.job import Report
    from cotidal.spark.health import Health

FINDINGS_TOLD = 20


@click.group(
    cls=VerbGroup,
    examples=(
        ("do all replicas hold the same?", "cotidal pipeline run audit"),
        ("how has replication fared?", "cotidal pipeline run health"),
        ("a topic as Parquet files", "cotidal pipeline run archive orders --out orders"),
    ),
)
def command() -> None:
    """Run jobs on Spark over a cluster's data."""


@command.group(
    cls=VerbGroup,
    examples=(
        ("do all replicas hold the same?", "cotidal pipeline run audit --topic orders"),
        ("how has replication fared?", "cotidal pipeline run health"),
    ),
)
def run() -> None:
    """Run a pipeline; each needs 'cotidal[spark]' and Java 17."""


@contextmanager
def spark_session(name: str, master: str) -> Iterator[SparkSession]:
    """What Spark cannot do is one sentence, not a stack of Java's."""
    from cotidal.spark.failures import SparkFailure, sentence_in
    from cotidal.spark.session import start

    try:
        spark = start(f"cotidal {name}", master=master)
    except SparkFailure as failure:
        raise Failed(str(failure)) from failure
    from pyspark.errors import PySparkException

    try:
        yield spark
    except (SparkFailure, FileNotFoundError) as failure:
        raise Failed(str(failure)) from failure
    except PySparkException as failure:
        sentence = sentence_in(str(failure))
        if sentence is None:
            raise
        raise Failed(sentence) from failure
    finally:
        spark.stop()


@run.command(
    cls=Verb,
    examples=(
        ("every topic, over the wire", "cotidal pipeline run audit"),
        (
            "one topic, from the brokers' files",
            "cotidal pipeline run audit --topic orders --data data",
        ),
        (
            "and is all there that was acknowledged?",
            "cotidal pipeline run audit --receipts acknowledged.jsonl",
        ),
        ("on a cluster of Spark's", "cotidal pipeline run audit --master spark://host:7077"),
    ),
)
@click.option("--topic", "topics", multiple=True, help="May be given again; default: all.")
@click.option(
    "--data",
    multiple=True,
    type=click.Path(file_okay=False),
    help="Log directories, or what `up --data` keeps: files instead of asking their brokers.",
)
@click.option(
    "--receipts",
    multiple=True,
    help="What `produce --receipts` wrote: all of it must be there, once. A path Spark can read.",
)
@master_option
@bootstrap_option
@json_option
def audit(
    topics: tuple[str, ...],
    data: tuple[str, ...],
    receipts: tuple[str, ...],
    master: str,
    bootstrap: str,
    as_json: bool,
) -> None:
    """Read every replica of every partition and see whether they agree.

    Below the high watermark all replicas must hold the same batches, byte for byte: offsets without
    a gap, checksums right, epochs that never go back. With --data what lies above it is looked at
    too. The exit status is 1 when something is wrong.
    """
    from cotidal.client.cluster import Cluster
    from cotidal.spark.audit.copies import log_directories, subjects

    try:
        with Cluster(bootstrap) as cluster:
            found = subjects(cluster, topics, log_directories(data))
    except FileNotFoundError as missing:
        raise Failed(str(missing)) from missing
    with spark_session("audit", master) as spark:
        from cotidal.spark.audit.job import audit as run_audit

        report = run_audit(spark, found)
        if receipts:
            from cotidal.spark.audit.acknowledged import prove

            proof = prove(spark, bootstrap, receipts, found)
            report = report._replace(
                findings=(*report.findings, *proof.findings), receipts=proof.receipts
            )
    if as_json:
        print_json(
            {
                "agreed": report.agreed,
                "receipts": report.receipts,
                "partitions": [each._asdict() for each in report.totals],
                "findings": [
                    each._asdict() | {"kind": each.kind.value} for each in report.findings
                ],
            }
        )
    else:
        tell(report)
    if not report.agreed:
        faults = counted(sum(each.kind.is_fault for each in report.findings), "finding")
        raise Failed(
            f"the replicas do not agree: {faults}; a broker that is stopped, its"
            " partition's directory removed and started again fetches it anew"
            if any(each.kind.is_of_replica for each in report.findings)
            else f"the replicas agree, but not with the receipts: {faults}"
        )


def tell(report: Report) -> None:
    print_table(
        ("PARTITION", "REPLICAS", "RECORDS", "READ", "UP TO OFFSET"),
        [
            (
                f"{each.topic}-{each.partition}",
                each.replicas,
                f"{each.records:,}",
                bytes_text(each.size_bytes),
                each.high_watermark,
            )
            for each in report.totals
        ],
    )
    for each in report.findings[:FINDINGS_TOLD]:
        line = f"{each.topic}-{each.partition}, broker {each.broker}: {each.sentence}"
        click.echo(red(line) if each.kind.is_fault else line)
    if len(report.findings) > FINDINGS_TOLD:
        click.echo(f"and {len(report.findings) - FINDINGS_TOLD} more (--json tells all)")
    if report.agreed:
        records = sum(each.records for each in report.totals)
        click.echo(f"agreed: {records:,} records, the same in every replica that was read")
        if report.receipts:
            click.echo(f"all {report.receipts:,} records with a receipt are there, once")


@run.command(
    cls=Verb,
    examples=(
        ("all that is known", "cotidal pipeline run health"),
        ("as a picture", "cotidal pipeline run health --plot health.svg"),
        ("windows as they end, into Parquet", "cotidal pipeline run health --follow --out health"),
        (
            "and into a topic, for the console's page",
            "cotidal pipeline run health --follow --out health --publish",
        ),
    ),
)
@click.option("--follow", is_flag=True, help="Go on, window by window, until Ctrl-C.")
@click.option(
    "--out", type=click.Path(file_okay=False), help="With --follow: windows, and how far it got."
)
@click.option("--window", default="10 seconds", show_default=True, help="With --follow.")
@click.option("--publish", is_flag=True, help="With --follow: also to the topic __cotidal_health.")
@click.option("--plot", type=click.Path(dir_okay=False), help="Partitions by window, as SVG.")
@master_option
@bootstrap_option
@json_option
def health(
    follow: bool,
    out: str | None,
    window: str,
    publish: bool,
    plot: str | None,
    master: str,
    bootstrap: str,
    as_json: bool,
) -> None:
    """Tell how replication has fared, from the topic __cotidal_events.

    Brokers write it when cotidal.events.enable is set, as `cotidal up` does.
    """
    from cotidal.client.cluster import Cluster
    from cotidal.spark.health import TOPIC

    if follow and out is None:
        raise Failed("--follow needs --out, where it keeps how far it has got", status=2)
    if publish and not follow:
        raise Failed("--publish goes with --follow: rows are added as windows end", status=2)
    with Cluster(bootstrap) as cluster:
        found = cluster.metadata([TOPIC]).topic(TOPIC)
        if found is None or not found.partitions:
            raise Failed(f"there is no topic {TOPIC}: set cotidal.events.enable=true")
    with spark_session("health", master) as spark:
        from cotidal.spark import health as pipeline
        from cotidal.spark import health_stream

        if out is not None and follow:
            show = print_windows_json if as_json else print_windows
            with suppress(KeyboardInterrupt):
                into = health_stream.TOPIC if publish else None
                health_stream.Follower(spark, bootstrap, out, into, window, show).run()
            return
        told = pipeline.so_far(spark, bootstrap)
        if plot is not None:
            from cotidal.cli.health_map import health_map

            with open(plot, "w", encoding="utf-8") as file:
                file.write(health_map(pipeline.by_window(spark, bootstrap, window)))
    if as_json:
        print_json(
            {
                name: [row.asDict(recursive=True) for row in rows]
                for name, rows in told._asdict().items()
            }
        )
    else:
        tell_health(told)


HEALTH_COLUMNS = (
    "PARTITION", "LAG MAX", "FOR", "UNDER-REPLICATED", "UNDER MIN ISR", "LEFT", "JOINED",
    "ELECTIONS", "UNCLEAN", "CUT",
)  # fmt: skip


def health_cells(row: Row) -> tuple[Cell, ...]:
    return (
        f"{row.topic}-{row.partition}",
        row.lag_records,
        f"{row.lag_ms} ms",
        f"{row.under_replicated_s} s",
        f"{row.under_min_isr_s} s",
        row.left,
        row.joined,
        row.elections,
        row.unclean,
        row.records_cut,
    )


def tell_health(found: Health) -> None:
    print_table(HEALTH_COLUMNS, [health_cells(row) for row in found.partitions])
    for row in found.outages:
        lasted = "still" if row.without_leader_ms is None else f"for {row.without_leader_ms} ms"
        click.echo(f"{row.topic}-{row.partition}: nobody led it {lasted}, since {row.since}")
    for row in found.flapping:
        click.echo(
            f"{row.topic}-{row.partition}: replica {row.replica} left the ISR {row.times} times"
            f" within five minutes"
        )
    uneven = {row.broker: row for row in found.uneven}
    for broker, row in uneven.items():
        click.echo(f"broker {broker} led {row.leads} partitions where {row.share:.0f} is its share")


def print_windows(rows: list[Row]) -> None:
    if rows:
        print_table(
            ("UNTIL", *HEALTH_COLUMNS),
            [(f"{row.window.end:%H:%M:%S}", *health_cells(row)) for row in rows],
        )


def print_windows_json(rows: list[Row]) -> None:
    for row in rows:
        click.echo(json.dumps(row.asDict(recursive=True), default=str))


@run.command(
    cls=Verb,
    examples=(
        ("what there is now", "cotidal pipeline run archive orders --out orders"),
        (
            "every minute, for ever",
            "cotidal pipeline run archive orders --out a --every '1 minute'",
        ),
        ("many small files made few", "cotidal pipeline run archive --out orders --merge"),
    ),
)
@click.argument("topics", nargs=-1)
@click.option("--out", required=True, help="The archive: a directory, or any path Spark can write.")
@click.option("--every", help="Go on for ever, so often: '1 minute'.")
@click.option(
    "--per-batch",
    type=click.IntRange(min=1),
    default=1_000_000,
    show_default=True,
    help="Offsets in one micro-batch at most: what is done again after a kill.",
)
@click.option("--merge", is_flag=True, help="Make one directory of those of the micro-batches.")
@master_option
@bootstrap_option
def archive(
    topics: tuple[str, ...],
    out: str,
    every: str | None,
    per_batch: int,
    merge: bool,
    master: str,
    bootstrap: str,
) -> None:
    """Write topics to Parquet files, by topic and day, every record once.

    Begun again with the same --out it goes on where it was, whatever had killed it.
    """
    from cotidal.client.cluster import Cluster

    if not topics and not merge:
        raise Failed("name a topic, or --merge", status=2)
    with Cluster(bootstrap) as cluster:
        for topic in topics:
            cluster.topic(topic)
    with spark_session("archive", master) as spark:
        from cotidal.spark import archive as pipeline

        if topics:
            records = (
                spark.readStream.format("cotidal")
                .option("kafka.bootstrap.servers", bootstrap)
                .option("subscribe", ",".join(topics))
                .option("startingOffsets", "earliest")
                .option("includeHeaders", "true")
                .option("maxOffsetsPerTrigger", per_batch)
                .load()
            )
            with suppress(KeyboardInterrupt):
                pipeline.archive(spark, records, out, every=every)
        if merge:
            merged = pipeline.merge(spark, out)
            click.echo(f"{merged} directories of micro-batches are one")
        count = pipeline.read(spark, out).groupBy("topic").count().orderBy("topic").collect()
    for row in count:
        click.echo(f"{row.topic}: {row['count']:,} records in {out}")


@run.command(
    cls=Verb,
    examples=(
        ("into a new topic", "cotidal pipeline run restore orders --from archive --into orders-2"),
        (
            "and see that it is the same",
            "cotidal pipeline run restore orders --from archive --into orders-2 --check",
        ),
    ),
)
@click.argument("topic")
@click.option("--from", "path", required=True, help="The archive.")
@click.option("--into", help="The topic to write to; default: the archived one's name.")
@click.option("--check", is_flag=True, help="Read what was written, and compare digests.")
@master_option
@bootstrap_option
def restore(
    topic: str, path: str, into: str | None, check: bool, master: str, bootstrap: str
) -> None:
    """Write an archived topic to a topic again: same partitions, order, timestamps.

    The topic must be there, with as many partitions. Readers with read_committed see all records
    or none.
    """
    from cotidal.client.cluster import Cluster
    from cotidal.client.offsets import end_offsets
    from cotidal.values import TopicPartition

    into = into or topic
    with Cluster(bootstrap) as cluster:
        partitions = len(cluster.topic(into).partitions)
        ends = end_offsets(cluster, [TopicPartition(into, each) for each in range(partitions)])
    with spark_session("restore", master) as spark:
        from pyspark.sql import functions as f

        from cotidal.spark import archive as pipeline

        kept = pipeline.read(spark, path).where(f.col("topic") == topic)
        found = kept.agg(f.count("*").alias("records"), f.max("partition").alias("last")).first()
        if found is None or not found.records:
            raise Failed(f"{path} holds no records of '{topic}'")
        if found.last >= partitions:
            raise Failed(
                f"'{into}' has {partitions} partitions, the archived topic {found.last + 1}:"
                f" `cotidal topic alter {into} --partitions {found.last + 1}`"
            )
        pipeline.restore(spark, path, bootstrap, topic=topic, into=into)
        click.echo(f"{found.records:,} records of '{topic}' are in '{into}'")
        if check:
            since = {str(at.partition): offset for at, offset in ends.items()}
            written = (
                spark.read.format("cotidal")
                .option("kafka.bootstrap.servers", bootstrap)
                .option("subscribe", into)
                .option("startingOffsets", json.dumps({into: since}))
                .option("includeHeaders", "true")
                .option("kafka.isolation.level", "read_committed")
                .load()
            )
            unlike = pipeline.unlike(kept, written)
            if unlike:
                raise Failed(f"partitions {unlike} of '{into}' do not hold what was archived")
            click.echo("the same keys, values, headers and timestamps in the same order")
