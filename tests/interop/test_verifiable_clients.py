"""Kafka's own verifiable producer and consumer, the clients of its system tests, at RF 3."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import pytest

from bench.apache_kafka import VERSION, run_tool
from tests.interop.suites import Ran, Suite
from tests.interop.trios import Trio

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

RECORDS: Final = 2_000


def said(name: str, cluster: Trio, topic: str, *arguments: str) -> list[dict[str, Any]]:
    """The events that a tool prints, one object a line."""
    where = ("--bootstrap-server", cluster.bootstrap, "--topic", topic)
    ended = run_tool(name, *where, "--max-messages", str(RECORDS), *arguments, seconds=120)
    assert ended.status == 0, ended.out[-2_000:] + ended.err
    return [json.loads(line) for line in ended.out.splitlines() if line.startswith("{")]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_what_the_producer_says_it_sent_the_consumer_verifies(
    cluster: Trio, topic: str, judge: Callable[..., dict[str, str]], protocol: str
) -> None:
    made = said("kafka-verifiable-producer", cluster, topic, "--acks", "-1")
    read = said(
        "kafka-verifiable-consumer",
        cluster,
        topic,
        *("--group-id", topic, "--group-protocol", protocol, "--reset-policy", "earliest"),
    )
    events = Counter(event["name"] for event in (*made, *read))
    consumed = sum(event["count"] for event in read if event["name"] == "records_consumed")
    committed = [event["success"] for event in read if event["name"] == "offsets_committed"]
    wrong = {
        "every record is acknowledged": events["producer_send_success"] != RECORDS,
        "every record is consumed once": consumed != RECORDS,
        "every commit succeeds": not committed or not all(committed),
        "it joins and leaves in order": not events["partitions_assigned"]
        or not events["shutdown_complete"],
    }
    ran = Ran(
        tuple(check for check, failed in wrong.items() if not failed),
        {check: str(events) for check, failed in wrong.items() if failed},
        (),
    )
    suite = Suite("Apache Kafka", VERSION, f"verifiable producer and consumer ({protocol})")
    assert judge(suite, ran, {}) == {}
