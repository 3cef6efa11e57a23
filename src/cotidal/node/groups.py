"""Groups in a node: the rules of their coordinators, and what these must hear of. Pure."""

from __future__ import annotations

from typing import Final

from cotidal.api.coordination import OFFSETS_TOPIC
from cotidal.core.groups.asks import ForgetTopics
from cotidal.core.groups.coordinator import GroupCoordinator
from cotidal.core.groups.state import GroupRules
from cotidal.node import coordinators
from cotidal.node.coordinators import Shard
from cotidal.node.state import NodeState
from cotidal.values import ZERO_UUID, Uuid

MINUTE_MS: Final = 60_000


def machine(state: NodeState) -> GroupCoordinator:
    number = state.config.number
    rules = GroupRules(
        session_min_ms=number("group.min.session.timeout.ms"),
        session_max_ms=number("group.max.session.timeout.ms"),
        initial_delay_ms=number("group.initial.rebalance.delay.ms"),
        members_max=number("group.max.size"),
        metadata_length_max=number("offset.metadata.max.bytes"),
        retention_ms=number("offsets.retention.minutes") * MINUTE_MS,
        expiry_interval_ms=number("offsets.retention.check.interval.ms"),
    )
    return GroupCoordinator(rules, state.entropy)


def forget_deleted(state: NodeState, shard: Shard) -> None:
    """Topics that were deleted while nobody coordinated: a new one of their name has no offsets.

    Whoever took a commit knew its topic, and knew of no later leader. So the metadata that made us
    the leader comes after that topic: if it is not there now, it was deleted.
    """
    assert isinstance(shard.machine, GroupCoordinator)
    known = state.controller.committed.topic_names
    committed = dict.fromkeys(
        value.topic_id
        for held in shard.machine.groups.image.offsets.values()
        for value in held.values()
    )
    gone = tuple(each for each in committed if each != ZERO_UUID and each not in known)
    if gone:
        coordinators.tell(state, shard, ForgetTopics(gone))


def on_topic_deleted(state: NodeState, topic_id: Uuid) -> None:
    coordinators.tell_all(state, OFFSETS_TOPIC, ForgetTopics((topic_id,)))
