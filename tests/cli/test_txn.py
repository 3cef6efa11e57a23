"""Transactions from the command line, on a real node."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from hanging import UNVERIFIED, hang
from real_node import real_node

_names = count()


class Transacting:
    def __init__(self, bootstrap: str, topic: str) -> None:
        self.id = f"shop-{next(_names)}"
        self.topic = topic
        self.producer = Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": self.id, "log_level": 0}
        )
        self.producer.init_transactions(20)

    def open(self) -> None:
        self.producer.begin_transaction()
        self.producer.produce(self.topic, b"v", partition=0)
        assert self.producer.flush(20) == 0


@pytest.fixture
def shop(node: str, topic: str) -> Transacting:
    return Transacting(node, topic)


def hanging(cotidal: Any, topic: str, *options: str, **where: str) -> Any:
    asked = ("--topic", topic, "--open-for", "0", *options, "--json")
    said = cotidal("txn", "abort-hanging", *asked, **where)
    assert said.status == 0, said
    return json.loads(said.out)["hanging"]


def test_transactions_are_listed_and_described(cotidal: Any, shop: Transacting) -> None:
    shop.open()
    listed = json.loads(cotidal("txn", "list", "--state", "ongoing", "--json").out)
    (entry,) = [each for each in listed if each["transactional_id"] == shop.id]
    assert (entry["state"], entry["coordinator"]) == ("Ongoing", 1)
    told = json.loads(cotidal("txn", "describe", shop.id, "--json").out)
    assert (told["state"], told["partitions"]) == ("Ongoing", [f"{shop.topic}-0"])
    assert told["producer_id"] == entry["producer_id"]
    assert "Ongoing" in cotidal("txn", "describe", shop.id).out
    shop.producer.commit_transaction(20)
    rows = cotidal("txn", "list").out.splitlines()
    (row,) = [row for row in rows if row.startswith(shop.id)]
    assert row.split()[1] in ("PrepareCommit", "CompleteCommit")


def test_an_unknown_id_is_told_as_unknown(cotidal: Any, shop: Transacting) -> None:
    said = cotidal("txn", "describe", "nobody")
    assert said.status == 1
    assert "transactional id 'nobody'" in said.err


def test_what_a_coordinator_knows_of_does_not_hang(cotidal: Any, shop: Transacting) -> None:
    shop.open()
    assert hanging(cotidal, shop.topic) == []
    shop.producer.commit_transaction(20)


def test_what_no_coordinator_knows_of_is_ended(cotidal: Any, tmp_path: Path) -> None:
    with real_node(tmp_path, UNVERIFIED) as old:
        where = {"bootstrap": old.bootstrap}
        assert cotidal("topic", "create", "t", "-p", "1", **where).status == 0
        hang(old.bootstrap, "t")
        (found,) = hanging(cotidal, "t", "--dry-run", **where)
        assert (found["producer_id"], found["first_offset"]) == (77, 0)
        late = cotidal("txn", "abort-hanging", "--topic", "t", "--open-for", "9999999999", **where)
        assert late.out == "no transaction hangs\n"
        said = cotidal("txn", "abort-hanging", "--open-for", "0", **where)
        assert said.out.splitlines()[-1] == "1 transactions aborted"
        assert hanging(cotidal, "t", **where) == []
