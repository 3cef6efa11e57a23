from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotidal.client.assignment import Impossible, Place, as_json, from_json, plan
from cotidal.values import NodeId, TopicPartition

Now = dict[TopicPartition, tuple[NodeId, ...]]


def at(partition: int, topic: str = "orders") -> TopicPartition:
    return TopicPartition(topic, partition)


def now(*replicas: tuple[int, ...]) -> Now:
    return {at(number): tuple(map(NodeId, each)) for number, each in enumerate(replicas)}


def places(*racks: str) -> list[Place]:
    return [Place(NodeId(number), rack) for number, rack in enumerate(racks, start=1)]


def test_what_is_even_already_stays() -> None:
    even = now((1, 2, 3), (2, 3, 1), (3, 1, 2))
    assert plan(even, places("a", "b", "c")) == even


def test_a_broker_that_is_not_in_the_plan_gives_all_away() -> None:
    targets = plan(now((1, 2), (2, 3), (3, 1)), places("", ""))
    assert all(set(each) == {1, 2} for each in targets.values())


def test_a_new_broker_gets_its_share_and_nothing_else_moves() -> None:
    before = now((1, 2), (2, 3), (3, 1), (1, 2))
    targets = plan(before, places("", "", "", ""))
    load = [sum(node in each for each in targets.values()) for node in (1, 2, 3, 4)]
    assert load == [2, 2, 2, 2]
    moved = sum(len(set(targets[each]) - set(before[each])) for each in before)
    assert moved == 2


def test_more_replicas_go_to_other_racks_first() -> None:
    targets = plan(now((1,), (3,)), places("a", "a", "b", "b"), replication_factor=2)
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    assert all(len({racks[node] for node in each}) == 2 for each in targets.values())


def test_fewer_replicas_leave_the_rack_that_has_most() -> None:
    assert set(plan(now((1, 2, 3)), places("a", "a", "b"), replication_factor=2)[at(0)]) == {1, 3}


def test_leaders_are_spread() -> None:
    targets = plan(now(*[(1, 2, 3)] * 6), places("a", "b", "c"))
    firsts = [each[0] for each in targets.values()]
    assert sorted(firsts) == [1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    ("factor", "brokers", "sentence"),
    [(3, ("a", "b"), "3 replicas need as many brokers, but there are 2"), (1, (), "no broker")],
)
def test_a_plan_that_cannot_be_is_refused_in_one_sentence(
    factor: int, brokers: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(Impossible, match=sentence):
        plan(now((1,)), places(*brokers), replication_factor=factor)


@given(
    st.lists(st.sampled_from(["", "a", "b", "c"]), min_size=1, max_size=6),
    st.lists(st.lists(st.integers(1, 8), min_size=1, max_size=4, unique=True), max_size=12),
    st.integers(1, 4),
)
def test_every_plan_is_sound_and_even(
    racks: list[str], replicas: list[list[int]], factor: int
) -> None:
    brokers = places(*racks)
    before = now(*map(tuple, replicas))
    if factor > len(brokers):
        if before:
            with pytest.raises(Impossible):
                plan(before, brokers, replication_factor=factor)
        return
    targets = plan(before, brokers, replication_factor=factor)
    known = {place.node_id: place.rack for place in brokers}
    assert targets.keys() == before.keys()
    for each in targets.values():
        assert len(each) == len(set(each)) == factor
        assert known.keys() >= set(each)
    if len(set(racks)) == 1:  # racks may stand against it otherwise
        load = [sum(node in each for each in targets.values()) for node in known]
        assert max(load) - min(load) <= 1


def test_a_plan_is_read_as_it_is_written() -> None:
    targets = now((1, 2), (3, 1))
    assert from_json(json.dumps(as_json(targets))) == targets


def test_a_plan_of_kafkas_own_tool_is_read() -> None:
    text = (
        '{"version":1,"partitions":[{"topic":"t","partition":3,"replicas":[2,1],'
        '"log_dirs":["any","any"]}]}'
    )
    assert from_json(text) == {at(3, "t"): (2, 1)}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "not a plan"),
        ("[]", "not a plan"),
        ('{"version": 2, "partitions": []}', "version 2"),
        ('{"version": 1, "partitions": []}', "names no partition"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": []}]}', "no list of broker"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": ["1"]}]}', "no list of"),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1]},'
            ' {"topic": "t", "partition": 0, "replicas": [2]}]}',
            "named twice",
        ),
    ],
)
def test_what_is_no_plan_is_refused_in_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(Impossible, match=sentence):
        from_json(text)
