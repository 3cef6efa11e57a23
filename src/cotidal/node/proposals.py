"""ISR proposals on their way to the controller (AlterPartition). Pure.

One request of a broker is under way at a time; it carries the proposals of all partitions that had
one by then. A partition has one proposal at a time (core.partition.isr), so what gathers here while
a request is under way belongs to other partitions, or replaces what failed.

An answer may overtake the metadata that it rests upon: another min.insync.replicas, say, by which a
member that leaves the ISR stays eligible. A leader that took the new ISR under the old rules would
commit without that member. So what is granted ahead of our metadata is not taken from the answer:
the proposal stands until the metadata brings it, in its order.
Owns of the state: isr_proposals, isr_under_way, isr_retry_at, next_shrink.
"""

from __future__ import annotations

from typing import Final

from cotidal.api import to_controller as api
from cotidal.core.partition.effects import ProposeIsr
from cotidal.core.partition.leader import IsrAnswered, on_isr_answered, shrink_isr
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.alter_partition import AlterPartitionResponse
from cotidal.messages.rpc.apis import ApiKey
from cotidal.node import calls
from cotidal.node.partition_effects import move
from cotidal.node.state import NodeState
from cotidal.values import LeaderEpoch, Millis, NodeId, PartitionEpoch, TopicPartition

RETRY_MS: Final = 50
TIMEOUT_MS: Final = 3_000


class IsrCall:
    """A request under way."""

    __slots__ = ("proposals",)

    def __init__(self, proposals: dict[TopicPartition, ProposeIsr]) -> None:
        self.proposals = proposals


def pump(state: NodeState) -> None:
    """At the end of a step: send what has gathered."""
    leader = state.controller.leader
    if not state.isr_proposals or state.isr_under_way or leader is None:
        return
    if state.isr_retry_at is not None and state.now < state.isr_retry_at:
        return
    proposals, state.isr_proposals = state.isr_proposals, {}
    proposals = {p: asked for p, asked in proposals.items() if p in state.hosted}
    if not proposals:
        return
    state.isr_under_way = True
    calls.call(
        state,
        leader.node_id,
        leader.endpoint,
        lane=calls.CONTROL_LANE,
        api=ApiKey.ALTER_PARTITION,
        version=api.ALTER_PARTITION_VERSION,
        message=api.alter_partition(
            [(state.hosted[p].replica.topic_id, p.partition, a) for p, a in proposals.items()],
            node_id=state.config.node_id,
            broker_epoch=state.controller.broker_epoch,
        ),
        timeout_ms=TIMEOUT_MS,
        owner=IsrCall(proposals),
    )


def on_answered(state: NodeState, asked: IsrCall, response: AlterPartitionResponse) -> None:
    state.isr_under_way = False
    state.isr_retry_at = None
    if response.error_code != 0:
        _again(state, asked)
        return
    names = state.controller.committed.topic_names
    answers: dict[TopicPartition, IsrAnswered] = {}
    for topic in response.topics:
        for told in topic.partitions:
            partition = TopicPartition(names.get(topic.topic_id, ""), told.partition_index)
            put = asked.proposals.get(partition)
            if put is not None:
                answers[partition] = IsrAnswered(
                    put,
                    ErrorCode(told.error_code),
                    LeaderEpoch(told.leader_epoch),
                    PartitionEpoch(told.partition_epoch),
                    tuple(map(NodeId, told.isr)),
                )
    for partition, put in asked.proposals.items():
        _deliver(
            state,
            partition,
            answers.get(partition, IsrAnswered(put, ErrorCode.UNKNOWN_SERVER_ERROR)),
        )


def on_failed(state: NodeState, asked: IsrCall) -> None:
    """It may have been applied: the proposals stand, and are asked again."""
    state.isr_under_way = False
    _again(state, asked)


def on_ticked(state: NodeState) -> None:
    """Every half of the lag time: who has fallen behind?"""
    if state.isr_retry_at is not None and state.now >= state.isr_retry_at:
        state.isr_retry_at = None
    if state.next_shrink is None or state.now < state.next_shrink:
        return
    state.next_shrink = Millis(state.now + shrink_interval(state))
    for hosted in list(state.hosted.values()):
        move(state, hosted, shrink_isr, state.now)


def shrink_interval(state: NodeState) -> int:
    return max(1, lag_max_ms(state) // 2)


def lag_max_ms(state: NodeState) -> int:
    return state.config.number("replica.lag.time.max.ms")


def _deliver(state: NodeState, partition: TopicPartition, answer: IsrAnswered) -> None:
    hosted = state.hosted.get(partition)
    if hosted is not None:
        if answer.error is ErrorCode.NONE and _is_ahead(state, partition, answer):
            return
        move(state, hosted, on_isr_answered, answer, state.now)
        if answer.error is not ErrorCode.NONE:
            state.isr_retry_at = Millis(state.now + RETRY_MS)


def _is_ahead(state: NodeState, partition: TopicPartition, answer: IsrAnswered) -> bool:
    known = state.controller.committed.partition(*partition)
    return known is not None and known.partition_epoch < answer.partition_epoch


def _again(state: NodeState, asked: IsrCall) -> None:
    """Ask again in a moment for those proposals that still stand."""
    state.isr_retry_at = Millis(state.now + RETRY_MS)
    for partition, put in asked.proposals.items():
        hosted = state.hosted.get(partition)
        if hosted is None or hosted.replica.leadership is None:
            continue
        leadership = hosted.replica.leadership
        if leadership.epoch == put.leader_epoch and leadership.proposed is not None:
            state.isr_proposals.setdefault(partition, put)
