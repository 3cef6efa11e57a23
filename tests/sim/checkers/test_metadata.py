"""Decisions of the controller are judged one by one."""

from __future__ import annotations

import pytest

from cotidal.core.cluster.image import TOPIC_RESOURCE
from cotidal.messages.records.metadata import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from cotidal.sim.checkers.ghost import Ghost
from cotidal.sim.checkers.metadata import MetadataChecker
from cotidal.sim.plan import LOSS
from cotidal.sim.violation import Violation
from cotidal.values import NodeId, Uuid

ORDERS = Uuid(b"o" * 16)


def checker(
    *, isr: tuple[int, ...], leader: int, exempt: frozenset[str] = frozenset(), **more: object
) -> MetadataChecker:
    """A topic with one partition on brokers 1, 2 and 3, of which the last is fenced."""
    found = MetadataChecker(Ghost(), exempt)
    for node_id in (1, 2, 3):
        found._take_other(RegisterBrokerRecord(broker_id=node_id, broker_epoch=node_id))
    for node_id in (1, 2):
        found._take_other(
            BrokerRegistrationChangeRecord(broker_id=node_id, broker_epoch=node_id, fenced=-1)
        )
    found._take_other(TopicRecord(name="orders", topic_id=ORDERS))
    found._take_other(
        PartitionRecord(
            partition_id=0,
            topic_id=ORDERS,
            replicas=(1, 2, 3),
            isr=isr,
            leader=leader,
            leader_epoch=0,
            partition_epoch=0,
            **more,  # type: ignore[arg-type]
        )
    )
    return found


def elect(found: MetadataChecker, leader: int) -> None:
    found._change(
        PartitionChangeRecord(partition_id=0, topic_id=ORDERS, leader=leader, isr=(leader,))
    )


def test_a_leader_from_outside_isr_and_elr_is_a_violation() -> None:
    found = checker(isr=(1,), leader=1)
    with pytest.raises(Violation) as caught:
        elect(found, 2)
    assert caught.value.name == "ELECTED_FROM_ELIGIBLE"


def test_a_leader_from_the_isr_or_the_elr_is_none() -> None:
    elect(checker(isr=(1, 2), leader=1), 2)
    elect(checker(isr=(), leader=-1, eligible_leader_replicas=(2,)), 2)


def test_the_last_leader_may_lead_again_only_while_nobody_else_is_eligible() -> None:
    elect(checker(isr=(), leader=-1, last_known_elr=(2,)), 2)
    elect(checker(isr=(), leader=-1, last_known_elr=(2,), eligible_leader_replicas=(3,)), 2)
    with pytest.raises(Violation):
        elect(checker(isr=(), leader=-1, last_known_elr=(2,), eligible_leader_replicas=(1,)), 2)


def test_an_unclean_leader_is_none_where_it_is_allowed() -> None:
    elect(checker(isr=(), leader=-1, exempt=LOSS), 2)
    found = checker(isr=(), leader=-1)
    found._take_other(
        ConfigRecord(TOPIC_RESOURCE, "orders", "unclean.leader.election.enable", "true")
    )
    elect(found, 2)


@pytest.mark.parametrize("fetched", [None, (1, 0), (2, -1)])
def test_a_member_joins_only_after_a_fetch_in_its_life_and_the_leaders(
    fetched: tuple[int, int] | None,
) -> None:
    found = checker(isr=(1,), leader=1)
    if fetched is not None:
        found._ghost.partition(ORDERS, 0).fetched[2] = fetched
    with pytest.raises(Violation) as caught:
        found._change(PartitionChangeRecord(partition_id=0, topic_id=ORDERS, isr=(1, 2)))
    assert caught.value.name == "JOINS_AFTER_FETCH"


def test_a_member_that_has_fetched_joins() -> None:
    found = checker(isr=(1,), leader=1)
    found._ghost.partition(ORDERS, 0).fetched[2] = (2, 0)
    found._change(PartitionChangeRecord(partition_id=0, topic_id=ORDERS, isr=(1, 2)))


class Told:
    def __init__(self) -> None:
        self.fenced: list[int] = []

    def on_partition_changed(self, partition: object, before: object, after: object) -> None: ...

    def on_registered(self, node_id: NodeId) -> None: ...

    def on_unregistered(self, node_id: NodeId) -> None: ...

    def on_fenced(self, node_id: NodeId) -> None:
        self.fenced.append(node_id)


def test_a_fence_is_told_of_a_broker_that_took_part() -> None:
    found = checker(isr=(1,), leader=1)
    told = Told()
    found.listeners.append(told)
    for node_id in (2, 3):
        found._take_other(
            BrokerRegistrationChangeRecord(broker_id=node_id, broker_epoch=node_id, fenced=1)
        )
    assert told.fenced == [2]
