from __future__ import annotations

import json
import time
from typing import Any

from cotidal.testing.cluster import Cluster


def test_status_tells_brokers_and_partitions(cotidal: Any, node: str, topic: str) -> None:
    cotidal("produce", topic, stdin="a\nb\n")
    status = json.loads(cotidal("status", "--json").out)
    [broker] = status["brokers"]
    assert (broker["id"], f"{broker['host']}:{broker['port']}") == (1, node)
    [partition] = [each for each in status["partitions"] if each["topic"] == topic]
    assert (partition["leader"], partition["isr"], partition["replicas"]) == (1, [1], [1])
    assert (partition["start_offset"], partition["end_offset"]) == (0, 2)
    assert partition["size_bytes"] > 0
    assert len(status["cluster_id"]) == 22


def test_the_page_for_people_names_the_same(cotidal: Any, node: str, topic: str) -> None:
    page = cotidal("status").out
    assert page.startswith("cluster ")
    assert node in page
    assert any(line.split()[:3] == [topic, "0", "1"] for line in page.splitlines())


def test_a_cluster_that_is_well_has_nothing_under_replicated(cotidal: Any, topic: str) -> None:
    outcome = cotidal("status", "--under-replicated")
    assert outcome.status == 0
    assert outcome.out.endswith("every partition has all its replicas in sync\n")
    assert json.loads(cotidal("status", "--under-replicated", "--json").out)["partitions"] == []


def test_the_quorum_of_one_leads_itself(cotidal: Any) -> None:
    quorum = json.loads(cotidal("quorum", "--json").out)
    assert quorum["leader"] == 1
    assert quorum["leader_epoch"] >= 1
    [voter] = quorum["voters"]
    assert (voter["node"], voter["lag"]) == (1, 0)
    assert voter["end_offset"] >= quorum["high_watermark"] > 0
    assert "leader 1  epoch" in cotidal("quorum").out


def test_a_topic_is_shown_with_each_of_its_replicas(cotidal: Any, topic: str) -> None:
    cotidal("produce", topic, stdin="a\nb\n")
    page = cotidal("status", topic).out
    assert f"{topic}-0, led by 1 in epoch 0, 1 in sync of min 1" in page
    assert ["1", "leader", "0", "2", "2", "0:2", "-", "-"] in [
        line.split() for line in page.splitlines()
    ]
    assert "acks=0" not in page, "nobody else could be elected"


def test_a_topic_that_does_not_exist_is_named(cotidal: Any) -> None:
    outcome = cotidal("status", "no-such-topic")
    assert (outcome.status, outcome.out) == (1, "")
    assert "topic 'no-such-topic' does not exist" in outcome.err


def test_a_replica_that_fell_out_is_told_with_the_reason_and_the_loss(
    cotidal: Any, three: Cluster
) -> None:
    def run(*arguments: str, stdin: str = "") -> Any:
        outcome = cotidal(*arguments, stdin=stdin, bootstrap=three.bootstrap)
        assert outcome.status == 0, outcome.err
        return outcome

    run("topic", "create", "orders", "-p", "1", "-r", "3")
    run("produce", "orders", stdin="a\nb\nc\n")
    (partition,) = json.loads(run("status", "--json").out)["partitions"]
    assert {each["role"] for each in partition["standing"]} == {"leader", "in sync"}
    assert [each["log_end_offset"] for each in partition["standing"]] == [3, 3, 3]
    assert all(each["epochs"] for each in partition["standing"])

    gone = next(node for node in partition["replicas"] if node != partition["leader"])
    three.kill(gone)
    run("produce", "orders", stdin="d\ne\n")
    deadline = time.monotonic() + 20
    while True:
        status = json.loads(run("status", "--under-replicated", "--json").out)
        if status["partitions"] or time.monotonic() > deadline:
            break
    (partition,) = status["partitions"]
    (out,) = [each for each in partition["standing"] if each["broker"] == gone]
    assert out["role"] == "out of sync"
    assert out["loss_if_elected"] == {
        "acknowledged_with_acks_all": 2,
        "acknowledged_with_acks_1_at_most": 0,
        "bound": "at_most",
    }
    assert "holds up to 3 of 5" in out["why_not_in_sync"]
    page = run("status").out
    assert "at most 2 acknowledged with acks=all" in page
    assert "A write with acks=0 is acknowledged to nobody" in page
    (broker,) = [each for each in status["brokers"] if each["id"] == gone]
    assert (broker["fenced"], broker["answers"]) == (True, False)
    assert broker["fenced_for_ms"] >= 0
    three.restart(gone)
