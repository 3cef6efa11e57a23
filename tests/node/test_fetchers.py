"""When a node asks its leaders for what its followers lack."""

from __future__ import annotations

from asking import node_with
from cotidal.core.partition.follower import follow
from cotidal.messages.rpc.fetch import FetchRequest
from cotidal.node import fetchers
from cotidal.node.effects import Call
from cotidal.node.hosting import Hosted
from cotidal.node.state import NodeState
from cotidal.values import BrokerEpoch, LeaderEpoch, NodeId, Offset, TopicPartition

LEADER = NodeId(2)
OTHER = NodeId(3)


def two_followers() -> tuple[NodeState, Hosted, Hosted]:
    """Node 1 follows node 2 in two partitions; the disk writes for the first of them."""
    state = node_with(partitions=2).node._state
    brokers = state.controller.committed.brokers
    for node_id in (LEADER, OTHER):
        brokers[node_id] = brokers[NodeId(1)]._replace(node_id=node_id, epoch=BrokerEpoch(9))
    first, second = (state.hosted[TopicPartition("orders", number)] for number in (0, 1))
    for hosted in (first, second):
        follow(hosted.replica, leader=LEADER, epoch=LeaderEpoch(9))
        fetchers.follow(state, hosted)
    first.replica.next_offset = Offset(3)
    return state, first, second


def asked(state: NodeState) -> dict[int, list[int]]:
    """Partitions that are asked for at the end of this step, by leader."""
    fetchers.pump(state)
    calls = [effect for effect in state.out if isinstance(effect, Call)]
    state.out.clear()
    return {
        call.peer: [each.partition for topic in call.message.topics for each in topic.partitions]
        for call in calls
        if isinstance(call.message, FetchRequest)
    }


def test_all_that_follow_a_leader_wait_for_the_disk_and_are_asked_for_together() -> None:
    state, first, _ = two_followers()
    assert asked(state) == {}
    first.replica.end_offset = first.replica.next_offset
    fetchers.follow(state, first)
    assert asked(state) == {LEADER: [0, 1]}


def test_who_waited_for_a_replica_that_is_taken_away_is_asked_for() -> None:
    state, first, _ = two_followers()
    assert asked(state) == {}
    fetchers.forget(state, first.replica.partition)
    assert asked(state) == {LEADER: [1]}


def test_who_waited_for_a_replica_that_follows_another_leader_now_is_asked_for() -> None:
    state, first, _ = two_followers()
    assert asked(state) == {}
    follow(first.replica, leader=OTHER, epoch=LeaderEpoch(10))
    fetchers.follow(state, first)
    assert asked(state) == {LEADER: [1]}
