from __future__ import annotations

import json
from typing import Any


def test_a_created_topic_is_listed_described_and_deleted(cotidal: Any) -> None:
    created = cotidal("topic", "create", "whole-life", "-p", "3", "--config", "retention.ms=5000")
    assert created == (0, "created topic 'whole-life': 3 partitions, 1 replica each\n", "")

    listed = json.loads(cotidal("topic", "list", "--json").out)
    [entry] = [each for each in listed if each["topic"] == "whole-life"]
    assert (entry["partition_count"], entry["replication_factor"]) == (3, 1)
    assert "whole-life" in cotidal("topic", "list", "--quiet").out.splitlines()

    described = json.loads(cotidal("topic", "describe", "whole-life", "--json").out)
    assert described["configs"] == {"retention.ms": "5000"}
    assert [each["leader"] for each in described["partitions"]] == [1, 1, 1]

    assert cotidal("topic", "delete", "whole-life").out == "deleted topic 'whole-life'\n"
    assert "whole-life" not in cotidal("topic", "list", "--quiet").out.splitlines()


def test_a_table_has_a_heading_and_aligned_columns(cotidal: Any, topic: str) -> None:
    heading, *rows = cotidal("topic", "describe", topic).out.splitlines()[2:]
    assert heading == "PARTITION  LEADER  EPOCH  REPLICAS  ISR  OFFLINE"
    assert rows == ["        0       1      0  1         1    -"]


def test_a_topic_that_exists_is_not_created_again(cotidal: Any, topic: str) -> None:
    again = cotidal("topic", "create", topic)
    assert again.status == 1
    assert again.err.count("\n") == 1
    assert "already exists; look at it with `cotidal topic describe`" in again.err
    lenient = cotidal("topic", "create", topic, "--if-not-exists")
    assert (lenient.status, lenient.out) == (0, f"topic '{topic}' exists already\n")


def test_a_dry_run_creates_nothing(cotidal: Any) -> None:
    assert cotidal("topic", "create", "only-asked", "--dry-run").status == 0
    assert "only-asked" not in cotidal("topic", "list", "-q").out.splitlines()


def test_more_replicas_than_brokers_are_refused_with_the_reason(cotidal: Any) -> None:
    outcome = cotidal("topic", "create", "wide", "-r", "3")
    assert outcome.status == 1
    assert "replication factor 3" in outcome.err
    assert outcome.err.endswith("see the brokers with `cotidal status`\n")


def test_a_mistyped_topic_is_answered_with_the_nearest(cotidal: Any) -> None:
    assert cotidal("topic", "create", "invoices").status == 0
    for arguments in (("topic", "describe"), ("topic", "delete"), ("consume",), ("produce",)):
        outcome = cotidal(*arguments, "invocies")
        assert outcome == (1, "", "topic 'invocies' does not exist; did you mean 'invoices'?\n")


def test_partitions_grow_and_never_shrink(cotidal: Any, topic: str) -> None:
    assert cotidal("topic", "alter", topic, "-p", "4").out == f"topic '{topic}' has 4 partitions\n"
    assert len(json.loads(cotidal("topic", "describe", topic, "--json").out)["partitions"]) == 4
    assert cotidal("topic", "alter", topic, "-p", "2").status == 1


def test_settings_are_altered_and_unset(cotidal: Any, topic: str) -> None:
    def configs() -> dict[str, str]:
        described = json.loads(cotidal("topic", "describe", topic, "--json").out)
        return dict(described["configs"])

    assert cotidal("topic", "alter", topic, "--config", "retention.ms=7000").status == 0
    assert configs() == {"retention.ms": "7000"}
    changed = cotidal(
        "topic", "alter", topic, "--unset", "retention.ms", "--config", "segment.bytes=1048576"
    )
    assert changed.status == 0
    assert configs() == {"segment.bytes": "1048576"}


def test_a_topic_that_is_gone_is_no_failure_when_asked_so(cotidal: Any) -> None:
    assert cotidal("topic", "delete", "never-was").status == 1
    assert cotidal("topic", "delete", "never-was", "--if-exists").status == 0
