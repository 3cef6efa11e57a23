from __future__ import annotations

import json
from typing import Any


def changed(cotidal: Any, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(cotidal("configs", "list", *arguments, "--json").out)
    return found


def test_a_setting_is_set_listed_described_and_unset(cotidal: Any, topic: str) -> None:
    outcome = cotidal("configs", "set", "topic", topic, "retention.ms=9000", "flush.ms=1000")
    assert outcome == (0, f"topic {topic}: retention.ms=9000\ntopic {topic}: flush.ms=1000\n", "")
    own = [each for each in changed(cotidal, "topic") if each["name"] == topic]
    assert {each["setting"]: each["value"] for each in own} == {
        "retention.ms": "9000",
        "flush.ms": "1000",
    }
    described = cotidal("configs", "describe", "topic", topic, "retention.ms", "--json")
    [config] = json.loads(described.out)
    assert (config["value"], config["from"], config["changeable"]) == ("9000", "topic", True)

    assert cotidal("configs", "unset", "topic", topic, "retention.ms", "flush.ms").status == 0
    [config] = json.loads(
        cotidal("configs", "describe", "topic", topic, "retention.ms", "--json").out
    )
    assert config["from"] == "default"


def test_two_settings_are_changed_both_or_none(cotidal: Any, topic: str) -> None:
    outcome = cotidal("configs", "set", "topic", topic, "retention.ms=9000", "flush.ms=often")
    assert outcome.status == 1
    assert outcome.err.count("\n") == 1
    assert [each for each in changed(cotidal, "topic") if each["name"] == topic] == []


def test_a_mistyped_setting_is_answered_with_the_nearest(cotidal: Any, topic: str) -> None:
    refused = cotidal("configs", "set", "topic", topic, "retention.sm=1")
    assert refused.status == 1
    assert "did you mean retention.ms?" in refused.err
    asked = cotidal("configs", "describe", "topic", topic, "retention.sm")
    assert (
        asked.err
        == f"topic '{topic}' has no setting 'retention.sm'; did you mean 'retention.ms'?\n"
    )


def test_a_brokers_settings_say_where_they_come_from(cotidal: Any) -> None:
    described = cotidal("configs", "describe", "broker", "1", "node.id", "log.dirs", "--json")
    node_id, log_dirs = json.loads(described.out)
    assert (node_id["value"], node_id["from"]) == ("1", "server.properties")
    assert log_dirs["changeable"] is False


def test_the_meaning_of_a_setting_can_be_asked(cotidal: Any, topic: str) -> None:
    outcome = cotidal("configs", "describe", "topic", topic, "retention.ms", "--doc")
    first, meaning = outcome.out.splitlines()
    assert first.startswith("retention.ms=")
    assert meaning.startswith("    ")


def test_a_broker_that_does_not_exist_is_told_with_those_that_do(cotidal: Any) -> None:
    outcome = cotidal("configs", "set", "broker", "7", "log.retention.ms=1")
    assert outcome == (1, "", "there is no broker '7'; there are 1 and 'all'\n")
