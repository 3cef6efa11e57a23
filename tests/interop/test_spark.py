"""Spark's source and sink are clients: what they do on cotidal they do on Apache Kafka."""

from __future__ import annotations

from typing import Any

import pytest

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
    from cotidal.spark.reading import read_range

    given = {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": topic,
        "kafka.isolation.level": level,
    }
    options = parse_source(given, streaming=False)
    schema = arrow_schema(full_schema(headers=False))
    return sorted(
        value
        for each in plan_batch(options)
        for batch in read_range(options, each, schema)
        for value in batch.column("value").to_pylist()
    )


@pytest.mark.parametrize("codec", CODECS)
def test_batches_are_written_once_and_read_committed(cluster: Trio, codec: str) -> None:
    from cotidal.spark.failures import DifferentBatch
    from cotidal.spark.memory import fence, settle
    from cotidal.spark.options import parse_sink
    from cotidal.spark.sink import write_task

    topic = f"spark-{codec}"
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
