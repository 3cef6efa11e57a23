"""What committed metadata does to the partitions of a node."""

from __future__ import annotations

import pytest

from asking import node_with, produce
from cotidal.core.cluster.image import TOPIC_RESOURCE, MetadataRecord
from cotidal.core.partition.progress import NEVER, Progress
from cotidal.core.partition.replica import Replica
from cotidal.messages.records.metadata import (
    ClearElrRecord,
    ConfigRecord,
    PartitionChangeRecord,
)
from cotidal.node.publishing import publish, publish_difference
from cotidal.node.state import NodeState
from cotidal.values import ZERO_UUID, BrokerEpoch, NodeId, TopicPartition

FOLLOWER = NodeId(2)
ORDERS = TopicPartition("orders", 0)


def leader_with_a_silent_member() -> tuple[NodeState, Replica]:
    """Node 1 leads; node 2 is in the ISR and has fetched nothing: one record waits for it."""
    node = node_with()
    state = node.node._state
    image = state.controller.committed
    image.brokers[FOLLOWER] = image.brokers[NodeId(1)]._replace(
        node_id=FOLLOWER, epoch=BrokerEpoch(9)
    )
    both = (NodeId(1), FOLLOWER)
    partitions = image.topics["orders"].partitions
    partitions[0] = partitions[0]._replace(
        replicas=both, isr=both, directories=(ZERO_UUID, ZERO_UUID)
    )
    replica = state.hosted[ORDERS].replica
    leadership = replica.leadership
    assert leadership is not None
    leadership.isr = both
    leadership.followers[FOLLOWER] = Progress(caught_up=NEVER)
    node.ask(*produce(b"a", acks=1))
    assert (replica.high_watermark, replica.end_offset) == (0, 1)
    return state, replica


def raised_minimum(state: NodeState) -> tuple[MetadataRecord, ...]:
    """The minimum becomes 2, then node 2 leaves the ISR: by that minimum it is eligible."""
    topic_id = state.controller.committed.topics["orders"].topic_id
    same = PartitionChangeRecord(partition_id=0, topic_id=topic_id)
    return (
        same,
        ConfigRecord(TOPIC_RESOURCE, "orders", "min.insync.replicas", "2"),
        same._replace(isr=(1,), eligible_leader_replicas=(2,)),
    )


def test_settings_hold_before_any_change_that_was_decided_upon_them() -> None:
    state, replica = leader_with_a_silent_member()
    records = raised_minimum(state)
    for record in records:
        state.controller.committed.replay(record)
    publish(state, records)
    assert replica.leadership is not None
    assert (replica.leadership.isr, replica.leadership.min_isr) == ((1,), 2)
    assert replica.high_watermark == 0


def test_settings_of_another_image_hold_before_its_partitions() -> None:
    state, replica = leader_with_a_silent_member()
    before = state.controller.committed.copy()
    for record in raised_minimum(state):
        state.controller.committed.replay(record)
    publish_difference(state, before)
    assert replica.leadership is not None
    assert (replica.leadership.isr, replica.leadership.min_isr) == ((1,), 2)
    assert replica.high_watermark == 0


@pytest.mark.parametrize("cleared", ["orders", ""])
def test_a_leader_hears_that_nobody_is_eligible_any_more(cleared: str) -> None:
    """Its partition is in a new epoch: what it proposes in the old one is refused for ever."""
    state, replica = leader_with_a_silent_member()
    clear = ClearElrRecord(topic_name=cleared)
    for records in (raised_minimum(state), (clear,)):
        for record in records:
            state.controller.committed.replay(record)
        publish(state, records)
    told = state.controller.committed.partition(*ORDERS)
    assert told is not None
    assert replica.leadership is not None
    assert told.elr == ()
    assert replica.leadership.partition_epoch == told.partition_epoch
