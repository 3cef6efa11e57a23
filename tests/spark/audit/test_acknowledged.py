"""Receipts against a topic: what is missing, changed or doubled is found by offset."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from cotidal.client.cluster import Cluster as Client
from cotidal.client.producer import Producer
from cotidal.client.receipts import receipts
from cotidal.spark.audit.acknowledged import prove
from cotidal.spark.audit.copies import subjects
from cotidal.spark.audit.findings import Kind
from cotidal.spark.failures import Unusable
from cotidal.testing.cluster import Cluster

Found = list[tuple[Kind, int, int]]


@pytest.fixture
def judge(spark: Any, cluster: Cluster, client: Client, tmp_path: Path) -> Callable[..., Any]:
    """How many receipts were looked at, and what was found."""

    def judged(topic: str, lines: Sequence[str]) -> tuple[int, Found]:
        file = tmp_path / "receipts.jsonl"
        file.write_text("".join(f"{line}\n" for line in lines))
        proof = prove(spark, cluster.bootstrap, [str(file)], subjects(client, [topic], {}))
        return proof.receipts, [(each.kind, each.partition, each.offset) for each in proof.findings]

    return judged


def produced(client: Client, topic: str, *values: bytes | None, partition: int = 0) -> list[str]:
    """Write these, and return the receipts."""
    producer = Producer(client, topic, partition=partition)
    for value in values:
        producer.add(value)
    return [line for each in producer.flush() for line in receipts(topic, each)]


def changed(line: str, **fields: object) -> str:
    return json.dumps(json.loads(line) | fields)


def test_planted_losses_and_doubles_are_found(
    client: Client, cluster: Cluster, new_topic: Any, judge: Any
) -> None:
    topic = new_topic(partitions=2)
    told = produced(client, topic, *(b"%d" % at for at in range(50)), None, None)
    told += produced(client, topic, b"x", b"x", partition=1)  # two records of the same value
    produced(client, topic, b"never acknowledged")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for gone in admin.delete_records([TopicPartition(topic, 0, 6)]).values():
        gone.result(30)
    assert judge(topic, [*told, *told]) == (48, []), "what was deleted since is no loss"
    produced(client, topic, b"12", partition=1)
    lost, other = changed(told[8], offset=99), changed(told[7], sha256="0" * 64)
    elsewhere = changed(told[6], partition=5)
    assert judge(topic, [*told[9:], lost, other, elsewhere]) == (
        48,
        [
            (Kind.ACKNOWLEDGED, 0, 7),
            (Kind.ACKNOWLEDGED, 0, 99),
            (Kind.ACKNOWLEDGED, 5, 6),
            (Kind.DOUBLED, 0, 12),
        ],
    )


def test_a_line_that_is_no_receipt_is_told(
    client: Client, new_topic: Any, judge: Any, tmp_path: Path
) -> None:
    topic = new_topic()
    for line in ("no json", '{"partition": 1}'):
        with pytest.raises(Unusable, match="this is no receipt: "):
            judge(topic, [line])
