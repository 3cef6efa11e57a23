"""DescribeReplicas: how the replicas on this node stand. Pure. Changes nothing."""

from __future__ import annotations

from cotidal.api import describe_replicas as api
from cotidal.messages.rpc.describe_replicas import (
    DescribeReplicasRequest,
    DescribeReplicasResponse,
    FencedBroker,
    HostedPartition,
    HostedTopic,
)
from cotidal.node import throttles
from cotidal.node.connections import Slot
from cotidal.node.hosting import Hosted
from cotidal.node.state import NodeState
from cotidal.values import NodeId


def begin(state: NodeState, slot: Slot, request: DescribeReplicasRequest) -> None:
    wanted = None if request.topics is None else frozenset(request.topics)
    topics: dict[str, list[HostedPartition]] = {}
    for partition, hosted in state.hosted.items():
        if wanted is None or partition.topic in wanted:
            topics.setdefault(partition.topic, []).append(_described(state, hosted))
    reply = DescribeReplicasResponse(
        broker_id=state.config.node_id,
        fenced_brokers=tuple(
            FencedBroker(node_id, state.now - since)
            for node_id, since in state.fenced_since.items()
        ),
        topics=tuple(HostedTopic(name, tuple(of)) for name, of in topics.items()),
    )
    slot.connection.answer(slot, reply, state.out)


def _described(state: NodeState, hosted: Hosted) -> HostedPartition:
    def pace(follower: NodeId) -> tuple[int, bool]:
        measured = hosted.paces.get(follower)
        speed = -1 if measured is None else measured.per_second(state.now)
        return speed, throttles.holds_back(state, hosted, follower)

    return api.described(hosted.replica, node_id=state.config.node_id, now=state.now, pace=pace)
