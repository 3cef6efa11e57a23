"""kill -9 at any moment: what was acknowledged is there, in order, once."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cotidal.errors import ErrorCode
from real_node import RealNode, real_node
from tests.clients.confluent import Confluent
from tests.clients.kafka_python import KafkaPython
from tests.clients.speaking import Acks, Refused, Sent
from tests.processes.ledger import Ledger, moments

ALL = Acks(-1)
ROUNDS = 5


@pytest.mark.parametrize(
    ("seed", "settings"),
    [
        (1, {}),
        (2, {"log.segment.bytes": "1048576"}),  # rolls, and producer snapshots with it
        (3, {"log.flush.interval.messages": "50"}),
    ],
    ids=["plain", "rolling", "flushing"],
)
def test_nothing_acknowledged_is_lost(tmp_path: Path, seed: int, settings: dict[str, str]) -> None:
    with real_node(tmp_path, settings) as node:
        ledger = Ledger(node, partitions=4)
        for seconds in moments(seed, ROUNDS):
            ledger.write_for(seconds, padding=200)
            node.restart()
        ledger.write_for(0.2)
        ledger.settle()
        ledger.verify()
        node.restart()
        ledger.verify()
        assert node.sentences("error") == []


def test_a_node_that_is_killed_while_it_starts_starts(tmp_path: Path) -> None:
    node = RealNode(tmp_path)
    node.start()
    ledger = Ledger(node, partitions=4)
    ledger.write_for(0.5, padding=200)
    ledger.settle()
    for milliseconds in range(50, 500, 60):
        node.kill()
        node.start_and_kill_after(milliseconds / 1000)
        node.start()
    ledger.verify()
    assert node.stop() == 0


def test_decisions_survive_that_were_answered(tmp_path: Path) -> None:
    with real_node(tmp_path) as node:
        client = Confluent(node.bootstrap)
        client.create_topic("kept", partitions=2, configs={"retention.ms": "86400000"})
        node.restart()
        assert client.partition_count("kept") == 2
        assert client.configs("kept")["retention.ms"] == "86400000"
        client.alter_config("kept", "max.message.bytes", "12345")
        node.restart()
        assert client.configs("kept")["max.message.bytes"] == "12345"
        client.add_partitions("kept", total=5)
        node.restart()
        assert client.partition_count("kept") == 5
        assert client.write("kept", 4, [Sent(None, b"v")], codec="none", acks=ALL) == [0]
        client.delete_topic("kept")
        node.restart()
        assert "kept" not in client.topics()
        with pytest.raises(Refused) as refused:
            client.delete_topic("kept")
        assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_is_new_though_one_of_its_name_was_deleted_just_before(tmp_path: Path) -> None:
    """The crash comes at once, or when the old log is out of the way and little else is done."""
    with real_node(tmp_path) as node:
        client = Confluent(node.bootstrap)
        for wait in (False, True):
            client.create_topic("again")
            client.write("again", 0, [Sent(None, b"old")] * 5, codec="none", acks=ALL)
            assert client.delete_records("again", 0, before=3) == 3
            client.delete_topic("again")
            while wait and node.log_directory("again").exists():
                time.sleep(0.01)
            node.restart()
            client.create_topic("again")
            assert client.watermarks("again", 0) == (0, 0)
            client.write("again", 0, [Sent(None, b"new")], codec="none", acks=ALL)
            assert [got.value for got in client.read("again", [0], 1)] == [b"new"]
            client.delete_topic("again")


def test_a_producer_id_is_never_given_twice(tmp_path: Path) -> None:
    idempotent = Acks(-1, idempotent=True)
    with real_node(tmp_path) as node:
        client = KafkaPython(node.bootstrap)
        client.create_topic("t")
        for _ in range(3):
            client.write("t", 0, [Sent(None, b"v")], codec="none", acks=idempotent)
            node.restart()
        # one producer each: were an id given again, the second would be taken for the first
        assert client.watermarks("t", 0) == (0, 3)
        assert client.observe("t")[2] == [0, 0, 0]
