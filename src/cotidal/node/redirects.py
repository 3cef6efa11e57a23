"""A client at the wrong broker: that it is, and who leads (KIP-951). Pure.

A partition that exists and has no replica here is NOT_LEADER_OR_FOLLOWER, like one that is led
elsewhere: whoever hears that looks for the leader, where UNKNOWN_TOPIC_OR_PARTITION would make it
doubt the topic. Answers to Produce and Fetch say besides who leads, as far as is committed here,
and where it is reached, so that nobody has to ask for metadata first.
"""

from __future__ import annotations

from cotidal.api.leaders import MISDIRECTED, Leader
from cotidal.errors import ErrorCode, Refusal
from cotidal.node import doubts
from cotidal.node.connections import Slot
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


def leader_instead(
    state: NodeState, slot: Slot, partition: TopicPartition, error: ErrorCode, *, since: int
) -> Leader | None:
    """Whom the client should have asked. None if it was not wrong here, if its version has no room
    for that (``since``: the first that has), or if it can not reach the leader just now."""
    if error not in MISDIRECTED or slot.request.api_version < since:
        return None
    image = state.controller.committed
    told = image.partition(*partition)
    if told is None or doubts.is_doubted(state, told.leader):
        return None
    broker = image.brokers.get(told.leader)
    if broker is None or broker.fenced:
        return None
    endpoint = broker.endpoint(slot.connection.listener)
    if endpoint is None:
        return None
    return Leader(told.leader, told.leader_epoch, endpoint.host, endpoint.port, broker.rack)
