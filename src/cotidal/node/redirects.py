"""A client at the wrong broker: that it is, and who leads (KIP-951). Pure.

A partition that exists and has no replica here is NOT_LEADER_OR_FOLLOWER, like one that is led
elsewhere: whoever hears that looks for the leader, where UNKNOWN_TOPIC_OR_PARTITION would make it
doubt the topic. Answers to Produce and Fetch say besides who leads, as far as is committed here,
and where it is reached, so that nobody has to ask for metadata first.
"""

from __future__ import annotations

from cotidal.api.leaders import Leader
from cotidal.errors import ErrorCode, Refusal
from cotidal.node import doubts
from cotidal.node.state import NodeState
from cotidal.values import TopicPartition


def not_here(state: NodeState, partition: TopicPartition, *, by_id: bool = False) -> Refusal:
    """What is said of a partition of which this node has no replica. ``by_id``: an empty name is
    that of a topic id which is not known."""
    if state.controller.committed.partition(*partition) is not None:
        text = f"this broker has no replica of {partition}"
        return Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, text)
    if by_id and not partition.topic:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_ID)
    return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def leader_of(state: NodeState, partition: TopicPartition, listener: str) -> Leader | None:
    """None if there is none, or none that can be reached through the listener just now."""
    image = state.controller.committed
    told = image.partition(*partition)
    if told is None or doubts.is_doubted(state, told.leader):
        return None
    broker = image.brokers.get(told.leader)
    endpoint = None if broker is None or broker.fenced else broker.endpoint(listener)
    if broker is None or endpoint is None:
        return None
    return Leader(told.leader, told.leader_epoch, endpoint.host, endpoint.port, broker.rack)
