"""The vectors printed for other codecs cover every message and are the same on every run."""

from __future__ import annotations

import json
from pathlib import Path

from cotidal.api.registry import OURS
from message_schema import read_modules
from wire_vectors import vectors

SCHEMA = Path(__file__).resolve().parents[2] / "schema"


def test_every_message_and_version_of_kafkas_is_printed() -> None:
    found = {(v["name"], v["version"]) for v in vectors([], 1)}
    assert found == {
        (message.name, version)
        for module in read_modules(SCHEMA)
        for message in module.messages
        if message.key not in OURS
        for version in message.versions
    }


def test_vectors_are_the_same_twice_and_speak_kafkas_json() -> None:
    first = list(vectors(["ProduceRequest"], 2))
    assert first == list(vectors(["ProduceRequest"], 2))
    assert len(first) == 22
    newest = json.loads(json.dumps(first[-1]))
    assert newest["version"] == 13
    assert set(newest["value"]) == {"transactionalId", "acks", "timeoutMs", "topicData"}
    partitions = [p for t in newest["value"]["topicData"] for p in t["partitionData"]]
    assert all(set(partition) == {"index", "records"} for partition in partitions)
