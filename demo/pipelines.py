"""What Spark makes of the story: do the replicas agree, and what did replication go through?"""

from __future__ import annotations

import importlib.util
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cotidal.client.cluster import Cluster
from cotidal.client.producer import Acknowledged
from cotidal.client.receipts import receipts
from cotidal.values import Offset
from demo.clients import TOPIC
from demo.telling import Failed, tell

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from cotidal.spark.audit.copies import Subject


def tell_verdict(bootstrap: str, data: str, acked: Mapping[int, int]) -> None:
    """Where Spark can run; else one sentence about what it would take. ``acked``: the numbers
    that were acknowledged with acks=all, and their offsets."""
    lacks = what_lacks()
    if lacks is not None:
        tell(f"The pipelines' verdict is left out: {lacks}")
        return
    from cotidal.spark.session import start

    begun = time.perf_counter()
    spark = start("cotidal demo", master="local[2]", brief=True)
    tell("Spark is there, for the pipelines", time.perf_counter() - begun)
    try:
        _audit(spark, bootstrap, data, acked)
        _health(spark, bootstrap)
    finally:
        spark.stop()


def what_lacks() -> str | None:
    from cotidal.spark.session import java_fault

    if importlib.util.find_spec("pyspark") is None:
        return java_fault() or "install 'cotidal[spark]'"
    return java_fault()


def _audit(spark: SparkSession, bootstrap: str, data: str, acked: Mapping[int, int]) -> None:
    from cotidal.spark.audit.copies import log_directories, subjects
    from cotidal.spark.audit.job import audit

    begun = time.perf_counter()
    with Cluster(bootstrap) as cluster:
        found = subjects(cluster, [TOPIC], log_directories([data]))
    report = audit(spark, found)
    if not report.agreed:
        raise Failed("; ".join(each.sentence for each in report.findings))
    records = sum(each.records for each in report.totals)
    tell(
        f"audit: {records:,} records, the same in every replica, checksums and epochs right",
        time.perf_counter() - begun,
    )
    _prove(spark, bootstrap, found, acked)


def _prove(
    spark: SparkSession, bootstrap: str, found: Sequence[Subject], acked: Mapping[int, int]
) -> None:
    from cotidal.spark.audit.acknowledged import prove

    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="cotidal-demo-") as work:
        file = Path(work) / "acknowledged.jsonl"
        file.write_text(receipt_lines(acked))
        proof = prove(spark, bootstrap, [str(file)], found)
    if proof.findings:
        raise Failed("; ".join(each.sentence for each in proof.findings))
    if proof.receipts != len(acked):
        raise Failed(f"only {proof.receipts} of {len(acked)} receipts were looked at")
    tell(
        f"audit: every acknowledged record is there once, by {proof.receipts:,} receipts",
        time.perf_counter() - begun,
    )


def receipt_lines(acked: Mapping[int, int]) -> str:
    """As `cotidal produce --receipts` writes them."""
    return "".join(
        f"{line}\n"
        for number, offset in acked.items()
        for line in receipts(TOPIC, Acknowledged(0, Offset(offset), (b"%d" % number,)))
    )


def _health(spark: SparkSession, bootstrap: str) -> None:
    from cotidal.cli.pipeline import tell_health
    from cotidal.spark.health import so_far

    begun = time.perf_counter()
    found = so_far(spark, bootstrap)
    mine = [row for row in found.partitions if row.topic == TOPIC]
    if not mine or not mine[0].elections or not mine[0].left:
        raise Failed("the brokers' events do not tell of the election")
    tell("health: what the brokers told of it, added up", time.perf_counter() - begun)
    outages = [outage for outage in found.outages if outage.topic == TOPIC]
    tell_health(found._replace(partitions=mine, outages=outages))
