"""What only Spark itself can show: that it finds the format, and takes what readers give."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from cotidal.spark.failures import sentence_in

pytestmark = pytest.mark.timeout(300)  # a session takes a minute to warm up on a busy machine


def test_a_query_reads_a_topic_and_its_errors_are_sentences(
    spark: Any, new_topic: Any, write: Any, source: Any
) -> None:
    topic = new_topic(partitions=2)
    for partition in (0, 1):
        write(
            topic,
            [b"%d" % at for at in range(50)],
            partition=partition,
            key=b"k",
            timestamp=1_700_000_000_123,
            headers=[("h", b"1")],
        )
    table = spark.read.format("cotidal").options(**source(topic, includeHeaders="true")).load()
    assert [field.name for field in table.schema] == [
        "key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers",
        "leader_epoch", "producer_id",
    ]  # fmt: skip
    found = table.selectExpr(
        "cast(value as string) as value", "partition", "offset", "unix_millis(timestamp) as time",
        "headers[0].key as header",
    ).collect()  # fmt: skip
    assert sorted((row.partition, row.offset, row.value) for row in found) == [
        (partition, at, str(at)) for partition in (0, 1) for at in range(50)
    ]
    assert {(row.time, row.header) for row in found} == {(1_700_000_000_123, "h")}
    narrow = spark.read.format("cotidal").schema("offset bigint").options(**source(topic)).load()
    assert narrow.agg({"offset": "sum"}).collect()[0][0] == 2 * sum(range(50))
    with pytest.raises(PySparkException) as raised:
        spark.read.format("cotidal").options(**source(topic, subscribed="x")).load().count()
    told = sentence_in(str(raised.value))
    assert told is not None
    assert re.fullmatch(r"there is no option subscribed.*subscribe\b.*", told)


def test_a_stream_goes_on_from_its_checkpoint(
    spark: Any, new_topic: Any, write: Any, source: Any, tmp_path: Path
) -> None:
    topic = new_topic()

    def run() -> Any:
        query = (
            spark.readStream.format("cotidal")
            .options(**source(topic, startingOffsets="earliest", maxOffsetsPerTrigger="40"))
            .load()
            .writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(200)
        return query

    write(topic, [b"%d" % at for at in range(60)])
    first = run()
    assert sum(each["numInputRows"] for each in first.recentProgress) == 60
    write(topic, [b"%d" % at for at in range(60, 90)])
    second = run()
    told = json.loads(second.recentProgress[-1]["sources"][0]["latestOffset"])
    assert told[topic] == {"0": 90}
    assert told["@lag"] == {"total": 0, "max": 0}
    offsets = [row.offset for row in spark.read.parquet(str(tmp_path / "out")).collect()]
    assert sorted(offsets) == list(range(90))


def test_a_batch_is_written_once_and_a_micro_batch_that_is_run_again_too(
    spark: Any, new_topic: Any, write: Any, source: Any, tmp_path: Path
) -> None:
    """The driver dies after the sink has committed and before Spark has noted it: the note is
    missing, and the batch comes again."""
    given, taken = new_topic(partitions=2), new_topic(partitions=3)
    committed = source(taken, **{"kafka.isolation.level": "read_committed"})
    rows = spark.range(100).selectExpr("cast(id as string) as key", "cast(id as string) as value")
    rows.write.format("cotidal").options(**source(topic=given)).mode("append").save()

    def run() -> None:
        query = (
            spark.readStream.format("cotidal")
            .options(**source(given, startingOffsets="earliest", maxOffsetsPerTrigger="60"))
            .load()
            .select("key", "value")
            .writeStream.format("cotidal")
            .options(**source(topic=taken))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(200)

    def keys() -> list[int]:
        found = spark.read.format("cotidal").schema("key binary").options(**committed).load()
        return sorted(int(row.key) for row in found.collect())

    run()
    commits = tmp_path / "checkpoint" / "commits"
    last = max(int(each.name) for each in commits.iterdir() if each.name.isdecimal())
    for note in (commits / str(last), commits / f".{last}.crc"):
        note.unlink()
    rows.selectExpr("key", "value").limit(30).write.format("cotidal").options(
        **source(topic=given)
    ).mode("append").save()
    run()
    assert len(keys()) == 130
    assert sorted(set(keys())) == list(range(100))
