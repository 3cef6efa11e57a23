"""ISR proposals on their way to the controller."""

from __future__ import annotations

from asking import node_with, produce
from cotidal.core.cluster.image import Image
from cotidal.core.partition.progress import NEVER, Progress
from cotidal.messages.rpc.alter_partition import AlterPartitionResponse
from cotidal.messages.rpc.alter_partition import AlterPartitionResponsePartitionData as Told
from cotidal.messages.rpc.alter_partition import AlterPartitionResponseTopicData as TopicTold
from cotidal.node import effects as fx
from cotidal.node.events import CallFailed
from cotidal.node.proposals import IsrCall, on_answered, shrink_interval
from cotidal.node.publishing import active_brokers
from cotidal.values import ZERO_UUID, BrokerEpoch, NodeId, TopicPartition, Uuid
from lone_node import LoneNode

FOLLOWER = NodeId(2)
ORDERS = TopicPartition("orders", 0)
TOPIC_ID = Uuid(b"o" * 16)


def leader_of(partitions: int, **settings: str) -> LoneNode:
    """Node 1 leads partitions that hold a record; node 2 exists and is in no ISR."""
    node = node_with(partitions=partitions, **settings)
    for number in range(partitions):
        node.ask(*produce(b"a", partition=number))
    for image in images(node):
        broker = image.brokers[NodeId(1)]
        image.brokers[FOLLOWER] = broker._replace(node_id=FOLLOWER, epoch=BrokerEpoch(9))
    return node


def images(node: LoneNode) -> tuple[Image, Image]:
    duty = node.node._state.controller
    assert duty.controller is not None
    return duty.committed, duty.controller.image


def add_silent_member(node: LoneNode, number: int) -> None:
    """The controller and the leader know node 2 as a member of the ISR; it never fetches."""
    both = (NodeId(1), FOLLOWER)
    for image in images(node):
        partitions = image.topics["orders"].partitions
        partitions[number] = partitions[number]._replace(
            replicas=both, isr=both, directories=(ZERO_UUID, ZERO_UUID)
        )
    leadership = node.node._state.hosted[TopicPartition("orders", number)].replica.leadership
    assert leadership is not None
    leadership.isr = both
    leadership.followers[FOLLOWER] = Progress(caught_up=NEVER)


def proposed(node: LoneNode) -> list[TopicPartition]:
    hosted = node.node._state.hosted
    return [
        partition
        for partition in sorted(hosted)
        if (leadership := hosted[partition].replica.leadership) is not None
        and leadership.proposal is not None
    ]


def test_members_that_fell_behind_are_looked_for_every_half_of_the_lag_time() -> None:
    node = leader_of(1, replica_lag_time_max_ms="8000")
    assert shrink_interval(node.node._state) == 4_000
    next_shrink = node.node._state.next_shrink
    assert next_shrink is not None
    node.hold = {fx.Persist}
    add_silent_member(node, 0)
    node.pass_time(next_shrink - node.now - 1)
    assert proposed(node) == []
    node.pass_time(1)
    assert proposed(node) == [("orders", 0)]


def test_one_request_of_a_broker_is_under_way_and_the_next_carries_what_has_gathered() -> None:
    node = leader_of(3)
    state = node.node._state
    node.hold = {fx.Persist}
    add_silent_member(node, 0)
    node.pass_time(shrink_interval(state))
    assert state.isr_under_way
    assert not state.isr_proposals
    add_silent_member(node, 1)
    add_silent_member(node, 2)
    node.pass_time(shrink_interval(state))
    assert list(state.isr_proposals) == [("orders", 1), ("orders", 2)]
    node.release()
    assert not state.isr_proposals
    assert proposed(node) == []
    for number in range(3):
        partition = state.controller.committed.partition("orders", number)
        assert partition is not None
        assert partition.isr == (1,)


def test_a_proposal_without_an_answer_may_have_been_applied_and_stands() -> None:
    node = leader_of(1)
    state = node.node._state
    node.hold = {fx.Persist}
    add_silent_member(node, 0)
    node.pass_time(shrink_interval(state))
    asked = next(token for token, owner in state.calls.items() if isinstance(owner, IsrCall))
    node.tell(CallFailed(asked, refused=False, reason="time ran out"))
    assert proposed(node) == [("orders", 0)]
    assert list(state.isr_proposals) == [("orders", 0)], "it is asked again"


def test_who_is_fenced_or_shutting_down_may_be_in_no_isr() -> None:
    node = leader_of(1)
    state = node.node._state
    known = state.controller.committed.brokers[FOLLOWER]
    assert active_brokers(state)[FOLLOWER] == known.epoch
    for gone in (known._replace(fenced=True), known._replace(in_controlled_shutdown=True)):
        state.controller.committed.brokers[FOLLOWER] = gone
        assert FOLLOWER not in active_brokers(state)


def granted(partition_epoch: int) -> AlterPartitionResponse:
    """Node 1 alone is in the ISR from now on."""
    told = Told(partition_index=0, leader_id=1, isr=(1,), partition_epoch=partition_epoch)
    return AlterPartitionResponse(topics=(TopicTold(TOPIC_ID, (told,)),))


def test_what_is_granted_ahead_of_our_metadata_is_taken_when_that_comes() -> None:
    """Until then a rule may be unknown here by which whoever leaves may still be elected."""
    node = leader_of(1)
    state = node.node._state
    state.controller.committed.topic_names[TOPIC_ID] = "orders"
    node.hold = {fx.Persist}
    add_silent_member(node, 0)
    node.pass_time(shrink_interval(state))
    leadership = state.hosted[ORDERS].replica.leadership
    known = state.controller.committed.partition(*ORDERS)
    assert leadership is not None
    assert leadership.proposal is not None
    assert known is not None
    call = IsrCall({ORDERS: leadership.proposal})
    on_answered(state, call, granted(known.partition_epoch + 1))
    assert leadership.isr == (1, FOLLOWER)
    assert leadership.proposal is not None
    on_answered(state, call, granted(known.partition_epoch))
    assert leadership.isr == (1,)
    assert leadership.proposal is None
