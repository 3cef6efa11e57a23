"""The desk of the live console over three brokers of Apache Kafka: it shows what they can tell."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cotidal.cli.topic import wait_for_leaders
from cotidal.client.cluster import Cluster
from cotidal.console.desk.question import Desk
from cotidal.console.desk.questions import QUESTIONS
from cotidal.console.world import Command
from tests.interop.mixed_cluster import Make
from tests.interop.trios import trio

pytestmark = pytest.mark.interop

PATIENCE_S = 60.0

Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def ask(kafka: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    with trio(Make.KAFKA, tmp_path_factory.mktemp("desk"), {}) as running:

        def asked(what: str, **arguments: object) -> dict[str, Any]:
            with Cluster(running.bootstrap, timeout_s=30.0) as own:
                told = QUESTIONS[what].answer(Desk(own, None), Command({**arguments, "do": what}))
                if what == "create-topic":
                    wait_for_leaders(own, str(arguments["topic"]))
                return told

        yield asked


def test_every_view_tells_what_kafka_can_tell(ask: Ask) -> None:
    ask("create-topic", topic="orders", partitions=1, replicas=3)
    for number in range(5):
        ask("produce", topic="orders", partition=0, key=f"k{number}", value=f'{{"id":{number}}}')
    overview = ask("overview")
    assert overview["sentence"].startswith("All well: 3 brokers")
    assert {broker["state"] for broker in overview["brokers"]} == {"serves"}
    (partition,) = ask("topic", topic="orders")["partitions"]
    assert partition["end_offset"] == 5
    assert all(replica["epochs"] is None for replica in partition["standing"])
    found = ask("records", topic="orders", partition=0)["records"]
    assert [each["key"]["text"] for each in found] == [f"k{number}" for number in range(5)]
    assert ask("quorum")["leader"] in (1, 2, 3)
    assert ask("groups")["groups"] == []
    assert ask("transactions")["open"] == []
    assert ask("configs", kind="topic", name="orders")["configs"]
    assert ask("configs", kind="broker", name="1")["configs"]


def test_replicas_of_kafka_are_laid_side_by_side(ask: Ask) -> None:
    ask("create-topic", topic="copied", partitions=1, replicas=3)
    ask("produce", topic="copied", partition=0, value="v")
    deadline = time.monotonic() + PATIENCE_S
    while "3 replicas hold the same" not in ask("compare", topic="copied", partition=0)["sentence"]:
        assert time.monotonic() < deadline, ask("compare", topic="copied", partition=0)
        time.sleep(0.2)


def test_what_is_planned_is_done_by_kafka_too(ask: Ask) -> None:
    ask("create-topic", topic="changed", partitions=1, replicas=2)
    target = {"kind": "topic", "name": "changed", "setting": "retention.ms", "value": "5000"}
    assert "it will be '5000'" in ask("plan-set-config", **target)["sentences"][0]
    ask("set-config", **target)
    plan = ask("plan-reassign", topics=["changed"], replicas=3)
    ask("reassign", **plan["arguments"])
    deadline = time.monotonic() + PATIENCE_S
    while ask("moving")["moving"]:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert ask("plan-delete-topic", topic="changed")["loses"]
    ask("delete-topic", topic="changed")
