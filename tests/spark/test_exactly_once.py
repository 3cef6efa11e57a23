"""The job of examples/exactly_once.py, whose driver is killed with -9 again and again."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from cotidal.client.admin import create_topic
from cotidal.client.cluster import Cluster as Client
from cotidal.client.producer import Producer
from cotidal.spark.columns import arrow_schema, full_schema
from cotidal.spark.options import parse_source
from cotidal.spark.planning import plan_batch
from cotidal.spark.reading import read_range
from cotidal.testing.cluster import ProcessCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

JOB = Path(__file__).parents[2] / "examples" / "exactly_once.py"
KILLS = 3
ORDERS = 6_000
START_SECONDS_MAX = 400


def committed(checkpoint: Path) -> int:
    """How many micro-batches Spark has noted as done."""
    notes = checkpoint / "commits"
    return sum(each.name.isdecimal() for each in notes.iterdir()) if notes.is_dir() else 0


def start(bootstrap: str, checkpoint: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(JOB), f"--bootstrap={bootstrap}", f"--checkpoint={checkpoint}"]
    with (checkpoint.parent / "job.log").open("ab") as log:
        return subprocess.Popen(
            [*command, "--per-batch=150", *more],
            stdout=log,
            stderr=log,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            start_new_session=True,  # so that its Java and its workers can be killed with it
        )


def read(bootstrap: str, topic: str) -> list[dict[str, Any]]:
    options = parse_source(
        {
            "kafka.bootstrap.servers": bootstrap,
            "subscribe": topic,
            "kafka.isolation.level": "read_committed",
        },
        streaming=False,
    )
    schema = arrow_schema(full_schema(headers=False))
    return [
        row
        for each in plan_batch(options)
        for batch in read_range(options, each, schema)
        for row in batch.to_pylist()
    ]


def test_totals_equal_the_model_though_the_driver_is_killed(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    chance = random.Random(7)
    model: defaultdict[str, list[int]] = defaultdict(list)
    with ProcessCluster() as cluster, Client(cluster.bootstrap) as client:
        for topic in ("orders", "totals"):
            create_topic(client, topic, partitions=3, replication_factor=3, configs={})
        producer = Producer(client, "orders")
        for _ in range(ORDERS):
            customer, amount = f"c{chance.randrange(40)}", chance.randrange(100)
            model[customer].append(amount)
            producer.add(str(amount).encode(), key=customer.encode())
        producer.flush()
        for _ in range(KILLS):
            before = committed(checkpoint)
            job = start(cluster.bootstrap, checkpoint)
            try:
                deadline = time.monotonic() + START_SECONDS_MAX
                while committed(checkpoint) < before + 2:
                    assert job.poll() is None, (tmp_path / "job.log").read_text()[-3000:]
                    assert time.monotonic() < deadline, (tmp_path / "job.log").read_text()[-3000:]
                    time.sleep(0.02)
                time.sleep(chance.random() * 0.5)  # anywhere within a micro-batch
            finally:
                os.killpg(job.pid, signal.SIGKILL)
                job.wait()
        assert committed(checkpoint) < ORDERS // 150, "it was done before it was killed"
        last = start(cluster.bootstrap, checkpoint, "--once")
        assert last.wait(600) == 0, (tmp_path / "job.log").read_text()[-3000:]
        batches = committed(checkpoint)
        written: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for row in read(cluster.bootstrap, "totals"):
            told = json.loads(row["value"])
            written[row["key"].decode()].append((told["orders"], told["spent"]))
    assert written.keys() == model.keys()
    for customer, amounts in model.items():
        counts = [orders for orders, _ in written[customer]]
        assert counts == sorted(counts)
        assert counts[-1] == len(amounts)
        for orders, spent in written[customer]:
            assert spent == sum(amounts[:orders])
    # Each batch tells of every customer that there is, so one told twice would be one too many.
    assert max(len(told) for told in written.values()) == batches
    for back in range(1, batches):
        after, before = (
            sum(told[-at][0] for told in written.values() if len(told) >= at)
            for at in (back, back + 1)
        )
        assert before < after <= ORDERS
