from __future__ import annotations

import json
from typing import Any


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
