"""Spark's source and sink are clients: what they do on cotidal they do on Apache Kafka; and Spark's
own connector does on cotidal what it does there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import stock_connector
from bench.apache_kafka import KafkaMissing
from cotidal.client.admin import create_topic
from cotidal.client.cluster import Cluster as Client
from tests.interop.trios import Trio

pytestmark = pytest.mark.interop
pa = pytest.importorskip("pyarrow", reason="Spark is not here: make test installs it")
pytest.importorskip("pyspark", reason="Spark is not here: make test installs it")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def table(*values: bytes) -> Any:
    return pa.RecordBatch.from_pydict({"value": values, "key": [b"k" + value for value in values]})


def values(bootstrap: str, topic: str, level: str) -> list[bytes]:
    from cotidal.spark.columns import arrow_schema, full_schema
    from cotidal.spark.options import parse_source
    from cotidal.spark.planning import plan_batch
    from cotidal.spark.reading import read_ranges

    given = {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": topic,
        "kafka.isolation.level": level,
    }
    options = parse_source(given, streaming=False)
    schema = arrow_schema(full_schema(headers=False))
    return sorted(
        value
        for batch in read_ranges(options, plan_batch(options), schema)
        for value in batch.column("value").to_pylist()
    )


@pytest.mark.parametrize("codec", CODECS)
def test_batches_are_written_once_and_read_committed(cluster: Trio, topic: str, codec: str) -> None:
    from cotidal.spark.failures import DifferentBatch
    from cotidal.spark.memory import fence, settle
    from cotidal.spark.options import parse_sink
    from cotidal.spark.sink import write_task

    with Client(cluster.bootstrap) as client:
        create_topic(client, topic, partitions=3, replication_factor=3, configs={})
    options = parse_sink(
        {
            "kafka.bootstrap.servers": cluster.bootstrap,
            "topic": topic,
            "kafka.compression.type": codec,
        }
    )
    parts = [table(*(b"%d" % at for at in range(500))), table(b"x")]

    def run(batch: int, *rows: Any) -> None:
        told = [write_task(options, topic, at, iter([each])) for at, each in enumerate(rows)]
        settle(options, topic, batch, [each.task for each in told])
        fence(options, topic, range(len(told)))

    run(0, *parts)
    run(0, *parts)
    expected = sorted([*(b"%d" % at for at in range(500)), b"x"])
    assert values(cluster.bootstrap, topic, "read_committed") == expected
    assert len(values(cluster.bootstrap, topic, "read_uncommitted")) == 2 * len(expected)
    with pytest.raises(DifferentBatch, match="other rows: partition 1"):
        run(0, parts[0], table(b"y"))
    assert values(cluster.bootstrap, topic, "read_committed") == expected


@pytest.mark.timeout(900)
def test_sparks_own_connector_and_ours_read_what_either_wrote(
    cluster: Trio, topic: str, tmp_path: Path
) -> None:
    from tests.interop import both_formats

    try:
        jars = stock_connector.jars()
    except KafkaMissing as missing:
        pytest.skip(str(missing))
    with Client(cluster.bootstrap) as client:
        for writer in both_formats.FORMATS:
            create_topic(client, f"{topic}{writer}", partitions=3, replication_factor=3, configs={})
    given = (cluster.bootstrap, topic, tmp_path, *jars)
    done = subprocess.run(
        [sys.executable, both_formats.__file__, *map(str, given)],
        capture_output=True,
        text=True,
        timeout=850,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert len(told) == 8
    for writer, reader, kind, rows in told:
        written = {(f"{at}", f"value {at}", f"{topic}{writer}") for at in range(both_formats.ROWS)}
        assert {tuple(row[:3]) for row in rows} == written, (writer, reader, kind)
        assert len(rows) == len(written), (writer, reader, kind)
        assert {(row[4], row[5]) for row in rows} == {(0, writer)}, (writer, reader, kind)
    places = [{(row[0], row[3]) for row in rows} for _, _, kind, rows in told if kind == "batch"]
    assert all(each == places[0] for each in places), "a key goes where it goes with the other"
