"""Orders in a topic, and what examples/exactly_once.py must make of them: a total for each customer
in every micro-batch, no batch left out, none twice."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

from cotidal.client.admin import create_topic
from cotidal.client.cluster import Cluster as Client
from cotidal.client.producer import Producer
from cotidal.spark.columns import arrow_schema, full_schema
from cotidal.spark.options import parse_source
from cotidal.spark.planning import plan_batch
from cotidal.spark.reading import read_ranges

JOB: Final = Path(__file__).parents[2] / "examples" / "exactly_once.py"
CUSTOMERS: Final = 40

Model = defaultdict[str, list[int]]
"""Amounts by customer, in their order."""


def write_orders(client: Client, count: int, chance: random.Random) -> Model:
    """Topics ``orders`` and ``totals``, and so many orders in the first."""
    model: Model = defaultdict(list)
    for topic in ("orders", "totals"):
        create_topic(client, topic, partitions=3, replication_factor=3, configs={})
    producer = Producer(client, "orders")
    for _ in range(count):
        customer, amount = f"c{chance.randrange(CUSTOMERS)}", chance.randrange(100)
        model[customer].append(amount)
        producer.add(str(amount).encode(), key=customer.encode())
    producer.flush()
    return model


def committed(checkpoint: Path) -> int:
    """How many micro-batches Spark has noted as done."""
    notes = checkpoint / "commits"
    return sum(each.name.isdecimal() for each in notes.iterdir()) if notes.is_dir() else 0


def check_totals(bootstrap: str, model: Model, batches: int) -> None:
    written: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in read_committed(bootstrap, "totals"):
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
        assert before < after


def read_committed(bootstrap: str, topic: str) -> list[dict[str, Any]]:
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
        for batch in read_ranges(options, plan_batch(options), schema)
        for row in batch.to_pylist()
    ]
