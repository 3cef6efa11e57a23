from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest
from confluent_kafka import Consumer

from cotidal.cli.groups import partition_table

_names = count()


@pytest.fixture
def group() -> str:
    return f"group-{next(_names)}"


@pytest.fixture
def read(cotidal: Any, topic: str, group: str) -> str:
    """A topic of three records, of which a group has read two."""
    assert cotidal("produce", topic, stdin="a\nb\nc\n").status == 0
    outcome = cotidal("consume", topic, "--group", group, "--max", "2")
    assert outcome == (0, "a\nb\n", "")
    return topic


def described(cotidal: Any, group: str) -> Any:
    return json.loads(cotidal("groups", "describe", group, "--json").out)


def test_a_group_goes_on_where_it_has_got_to(cotidal: Any, read: str, group: str) -> None:
    told = described(cotidal, group)
    (partition,) = told["partitions"]
    assert (partition["committed"], partition["end"], partition["lag"]) == (2, 3, 1)
    assert (told["state"], told["members"], told["lag"]) == ("Empty", [], 1)
    again = cotidal("consume", read, "--group", group, "--until-end")
    assert again == (0, "c\n", "")
    assert described(cotidal, group)["lag"] == 0
    assert cotidal("consume", read, "--group", group, "--until-end").out == ""


def test_groups_are_listed(cotidal: Any, read: str, group: str) -> None:
    listed = json.loads(cotidal("groups", "list", "--json").out)
    (entry,) = [each for each in listed if each["group"] == group]
    assert entry == {
        "group": group, "kind": "classic", "state": "Empty", "protocol_type": "consumer",
        "coordinator": 1,
    }  # fmt: skip
    heading, *rows = cotidal("groups", "list", "--state", "empty").out.splitlines()
    assert heading.split() == ["GROUP", "KIND", "STATE", "TYPE", "COORDINATOR"]
    assert any(row.startswith(group) for row in rows)
    assert cotidal("groups", "list", "--state", "Stable").out == ""


def test_a_description_says_how_far_behind_a_group_is(cotidal: Any, read: str, group: str) -> None:
    first, heading, row = cotidal("groups", "describe", group).out.splitlines()
    assert first == f"classic group '{group}': Empty, 0 members, 1 records behind"
    assert heading.split()[:5] == ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG"]
    assert row.split() == [read, "0", "2", "3", "1", "-", "-"]


def test_a_group_of_the_consumer_protocol_tells_its_epoch_and_who_is_to_have_what(
    cotidal: Any, node: str, topic: str, group: str
) -> None:
    cotidal("produce", topic, stdin="a\n")
    reader = Consumer({"bootstrap.servers": node, "group.id": group, "group.protocol": "consumer"})
    reader.subscribe([topic])
    while not reader.assignment():
        reader.poll(0.1)
    told = described(cotidal, group)
    (member,) = told["members"]
    assert (told["kind"], told["state"], told["epoch"], told["target_epoch"]) == (
        "consumer", "Stable", 1, 1,
    )  # fmt: skip
    assert member["partitions"] == member["target"] == [f"{topic}-0"]
    assert (told["protocol"], member["epoch"]) == ("uniform", 1)
    first, heading, _ = cotidal("groups", "describe", group).out.splitlines()
    assert first.startswith(f"consumer group '{group}': Stable, epoch 1, 1 member, assigned by un")
    assert "MOVES TO" not in heading
    reader.close()


def test_partitions_that_are_to_move_say_where_to() -> None:
    row = {"topic": "t", "partition": 0, "committed": 1, "end": 2, "lag": 1, "member": "a"}
    stays: dict[str, int | str | None] = {**row, "host": "h", "target": "a"}
    moves: dict[str, int | str | None] = {**row, "host": "h", "target": "b"}
    head, body = partition_table([stays])
    assert (head[-1], body) == ("HOST", [("t", 0, 1, 2, 1, "a", "h")])
    head, body = partition_table([stays, moves])
    assert head[-1] == "MOVES TO"
    assert [each[-1] for each in body] == [None, "b"]


def test_a_group_is_reset(cotidal: Any, read: str, group: str) -> None:
    looked = cotidal("groups", "reset", group, read, "--to", "earliest", "--dry-run")
    assert looked.out.splitlines()[1].split() == [read, "0", "0"]
    assert described(cotidal, group)["lag"] == 1
    assert cotidal("groups", "reset", group, read, "--to", "earliest").status == 0
    assert described(cotidal, group)["lag"] == 3
    assert cotidal("groups", "reset", group, read, "--to", "-1").status == 0
    assert cotidal("consume", read, "--group", group, "--until-end").out == "c\n"


def test_a_group_is_deleted(cotidal: Any, read: str, group: str) -> None:
    assert cotidal("groups", "delete", group).out == f"deleted group '{group}'\n"
    gone = cotidal("groups", "describe", group)
    assert gone.status == 1
    assert gone.err.count("\n") == 1
    assert group in gone.err


def test_a_group_with_members_is_neither_reset_nor_deleted(
    cotidal: Any, node: str, read: str, group: str
) -> None:
    from cotidal.client.cluster import Cluster
    from cotidal.client.membership import Membership

    with Cluster(node) as cluster:
        membership = Membership(cluster, group, read)
        assert [str(each) for each in membership.join()] == [f"{read}-0"]
        assert membership.keep()
        told = described(cotidal, group)
        assert (told["state"], told["protocol"]) == ("Stable", "range")
        (member,) = told["members"]
        assert member["partitions"] == [f"{read}-0"]
        refused = cotidal("groups", "reset", group, read, "--to", "latest")
        assert refused.status == 1
        assert "has members; stop them first" in refused.err
        assert cotidal("groups", "delete", group).status == 1
        membership.leave()
    assert cotidal("groups", "delete", group).status == 0


def test_two_members_share_a_topic(cotidal: Any, node: str, group: str) -> None:
    from threading import Thread

    from cotidal.client.cluster import Cluster
    from cotidal.client.membership import Membership

    topic = f"shared-{group}"
    assert cotidal("topic", "create", topic, "-p", "3").status == 0
    with Cluster(node) as first_cluster, Cluster(node) as second_cluster:
        first, second = (
            Membership(cluster, group, topic) for cluster in (first_cluster, second_cluster)
        )
        assert len(first.join()) == 3
        got: list[Any] = []
        joining = Thread(target=lambda: got.extend(second.join()))
        joining.start()
        while first.keep():
            joining.join(0.05)
        mine = first.join()
        joining.join(20)
        assert sorted(len(each) for each in (mine, got)) == [1, 2]
        assert {*mine, *got} == {(topic, 0), (topic, 1), (topic, 2)}
        first.leave()
        second.leave()


def test_a_group_assigns_partitions_itself(cotidal: Any, topic: str) -> None:
    outcome = cotidal("consume", topic, "--group", "g", "--partition", "0")
    assert outcome.status == 2
    assert "leave --partition out" in outcome.err
