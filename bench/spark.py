"""``python -m bench.spark``: what Spark's source and sink cost, a row at a time.

In CPU time, which a busy machine does not change much, for records of 100 bytes and of 1 KB:

  the decoder, the encoder and the digest alone;
  a task: a topic read or written by the source's and the sink's own classes, on three brokers.

Spark's own share is not measured here, nor the stock connector beside it: bench/spark_queries.py.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from bench import cotidal_cluster
from bench.server import serving
from cotidal.client.admin import create_topic
from cotidal.client.cluster import Cluster
from cotidal.spark.columns import arrow_schema, full_schema
from cotidal.spark.decoding import decode, section
from cotidal.spark.digest import Digest
from cotidal.spark.encoding import Rows, encode
from cotidal.spark.memory import settle
from cotidal.spark.options import parse_sink, parse_source
from cotidal.spark.planning import plan_batch
from cotidal.spark.reading import read_ranges
from cotidal.spark.sink import write_task
from cotidal.wire import record_bounds
from cotidal.wire.batch import read_batches
from cotidal.wire.records import Record, build_batch

SIZES: Final = (100, 1000)
ROWS: Final = {100: 50_000, 1000: 10_000}
"""Of one Arrow batch."""
PARTITIONS: Final = 6


class Row(NamedTuple):
    what: str
    cpu_us: float
    """Of CPU time for each row."""


def measured(what: str, rows: int, do: Callable[[], object], *, times: int = 3) -> Row:
    """The least of several: what else the machine does only adds."""
    do()
    spent = []
    for _ in range(times):
        before = time.process_time()
        do()
        spent.append(time.process_time() - before)
    return Row(what, min(spent) / rows * 1e6)


def table(size: int, rows: int) -> pa.RecordBatch:
    values = np.random.default_rng(size).bytes(size * rows)
    return pa.RecordBatch.from_pydict(
        {
            "key": [b"k%07d" % at for at in range(rows)],
            "value": [values[at * size : (at + 1) * size] for at in range(rows)],
        }
    )


def codec_rows(size: int) -> Iterator[Row]:
    rows = ROWS[size]
    made = table(size, rows)
    keys, values = made.column("key"), made.column("value")
    records = [
        Record(key, value, timestamp=1_700_000_000_000)
        for key, value in zip(keys.to_pylist(), values.to_pylist(), strict=True)
    ]
    batches = [build_batch(records[at : at + 500]) for at in range(0, rows, 500)]
    sections = [section(read_batches(each).headers[0], each) for each in batches]
    columns = Rows(keys, values, None, np.full(rows, 1_700_000_000_000))
    kind = "compiled" if record_bounds.__file__.endswith(".so") else "plain"
    yield measured(f"decode, {size} B, {kind} walk", rows, lambda: decode(sections))
    yield measured(f"encode, {size} B", rows, lambda: encode(columns))
    yield measured(f"digest, {size} B", rows, lambda: Digest().with_rows([keys, values]))


def task_rows(bootstrap: str, size: int, batches: int) -> Iterator[Row]:
    made = table(size, ROWS[size])
    rows = batches * ROWS[size]
    common = {"kafka.bootstrap.servers": bootstrap}
    numbers = iter(range(100))

    def written(delivery: str) -> str:
        topic = f"{delivery}-{size}-{next(numbers)}"
        with Cluster(bootstrap) as cluster:
            create_topic(cluster, topic, partitions=PARTITIONS, configs={})
        options = parse_sink({**common, "topic": topic, "delivery": delivery})
        wrote = write_task(options, topic, 0, iter([made] * batches))
        if options.exactly_once:
            settle(options, topic, 0, [wrote.task])
        return topic

    for delivery in ("at-least-once", "exactly-once"):
        yield measured(f"write task, {size} B, {delivery}", rows, lambda d=delivery: written(d))
    options = parse_source({**common, "subscribe": written("at-least-once")}, streaming=False)
    schema = arrow_schema(full_schema(headers=False))

    def read() -> None:
        found = sum(batch.num_rows for batch in read_ranges(options, plan_batch(options), schema))
        assert found == rows, f"{found} of {rows} rows"

    yield measured(f"read task, {size} B", rows, read)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description=__doc__)
    parser.add_argument("--brokers", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cotidal-spark-") as work:
        for size in SIZES:
            show(codec_rows(size))
        with serving(cotidal_cluster.recipe(asked.brokers, Path(work))) as server:
            for size in SIZES:
                show(task_rows(server.bootstrap, size, batches=4))
    return 0


def show(rows: Iterator[Row]) -> None:
    for row in rows:
        print(f"{row.what:<40}{row.cpu_us:8.2f} µs CPU a row", flush=True)


if __name__ == "__main__":
    sys.exit(main())
