"""What a metadata record means, and the JSON that it becomes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cotidal.core.cluster.image import Image
from cotidal.messages.records.metadata import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from cotidal.node import happenings as told
from cotidal.node.happenings import KINDS
from cotidal.node.news import happenings_of
from cotidal.values import Offset, Uuid
from happening_samples import event_of, record_of
from json_schema import EVENTS, violations

ORDERS = Uuid(b"o" * 16)
AT = Offset(40)


def image(**fields: Any) -> Image:
    """One partition of three replicas, led by the first, all in sync unless told otherwise."""
    found = Image()
    found.replay(TopicRecord(name="orders", topic_id=ORDERS))
    told_of = {"replicas": (1, 2, 3), "isr": (1, 2, 3), "leader": 1, "leader_epoch": 5} | fields
    found.replay(PartitionRecord(partition_id=0, topic_id=ORDERS, partition_epoch=7, **told_of))
    return found


def news(before: Image, **fields: Any) -> list[Any]:
    record = PartitionChangeRecord(partition_id=0, topic_id=ORDERS, **fields)
    return list(happenings_of(before, record, AT))


def test_replicas_that_leave_the_isr_are_named() -> None:
    assert news(image(), isr=(1, 3)) == [
        told.IsrShrunk("orders", 0, 1, 5, 8, (1, 3), (2,), AT),
    ]


def test_replicas_that_join_the_isr_are_named() -> None:
    assert news(image(isr=(1,)), isr=(1, 2, 3)) == [
        told.IsrExpanded("orders", 0, 1, 5, 8, (1, 2, 3), (2, 3), AT),
    ]


def test_another_leader_from_the_isr_is_a_clean_election() -> None:
    assert news(image(), leader=2, isr=(2, 3)) == [
        told.LeaderChanged("orders", 0, 1, 2, 6, (2, 3), AT),
        told.IsrShrunk("orders", 0, 2, 6, 8, (2, 3), (1,), AT),
    ]


def test_an_eligible_leader_outside_the_isr_is_a_clean_election() -> None:
    before = image(isr=(), leader=-1, eligible_leader_replicas=(2,))
    kinds = [type(each) for each in news(before, leader=2, isr=(2,), eligible_leader_replicas=())]
    assert kinds == [told.LeaderChanged, told.IsrExpanded]


def test_a_leader_that_nobody_vouches_for_is_an_unclean_election() -> None:
    before = image(isr=(1,), leader=-1)
    elected = told.UncleanElection("orders", 0, 3, 6, (1,), False, AT)
    assert elected in news(before, leader=3, isr=(3,))


def test_the_last_known_leader_is_told_from_just_any_replica() -> None:
    before = image(isr=(), leader=-1, last_known_elr=(2,))
    elected = told.UncleanElection("orders", 0, 2, 6, (), True, AT)
    assert elected in news(before, leader=2, isr=(2,))


def test_a_partition_that_loses_its_leader_has_no_election() -> None:
    assert news(image(isr=(1,)), leader=-1, isr=(1,)) == [
        told.LeaderChanged("orders", 0, 1, -1, 6, (1,), AT),
    ]


def test_the_same_leader_in_a_later_epoch() -> None:
    assert news(image(), leader=1) == [told.LeaderEpochRaised("orders", 0, 1, 6, AT)]


def test_a_reassignment_from_start_to_end() -> None:
    assert news(image(), replicas=(4, 2, 3, 1), adding_replicas=(4,), removing_replicas=(1,)) == [
        told.ReassignmentStarted("orders", 0, (4, 2, 3, 1), (4,), (1,), AT),
    ]
    under_way = image(replicas=(4, 2, 3, 1), adding_replicas=(4,), removing_replicas=(1,))
    ended = news(under_way, replicas=(4, 2, 3), adding_replicas=(), removing_replicas=())
    assert ended == [told.ReassignmentEnded("orders", 0, (4, 2, 3), AT)]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (
            RegisterBrokerRecord(broker_id=4, broker_epoch=9, rack="r"),
            told.BrokerRegistered(4, 9, "r", AT),
        ),
        (UnregisterBrokerRecord(broker_id=4, broker_epoch=9), told.BrokerUnregistered(4, AT)),
        (FenceBrokerRecord(4, 9), told.BrokerFenced(4, 9, AT)),
        (UnfenceBrokerRecord(4, 9), told.BrokerUnfenced(4, 9, AT)),
        (BrokerRegistrationChangeRecord(4, 9, fenced=1), told.BrokerFenced(4, 9, AT)),
        (BrokerRegistrationChangeRecord(4, 9, fenced=-1), told.BrokerUnfenced(4, 9, AT)),
        (
            BrokerRegistrationChangeRecord(4, 9, in_controlled_shutdown=1),
            told.ControlledShutdown(4, 9, AT),
        ),
    ],
)
def test_what_becomes_of_a_broker(record: Any, expected: Any) -> None:
    assert list(happenings_of(Image(), record, AT)) == [expected]


def test_a_change_of_nothing_that_matters_is_no_news() -> None:
    assert news(image(), directories=(ORDERS, ORDERS, ORDERS)) == []


@pytest.mark.parametrize("kind", KINDS, ids=KINDS.get)
def test_a_record_of_each_kind_is_valid_by_the_schema(kind: type) -> None:
    written = record_of(kind)
    assert b" " not in written, "compact"
    record = json.loads(written)
    assert record["kind"] == KINDS[kind]
    assert violations(record, EVENTS) == []


def test_the_schema_refuses_what_is_not_so() -> None:
    record = event_of(told.BrokerFenced)
    for change in ({"node": "4"}, {"kind": "other"}, {"more": 1}, {"sequence": 0}, {"v": 2}):
        assert violations(record | change, EVENTS), change
    del record["node_epoch"]
    assert violations(record, EVENTS)
