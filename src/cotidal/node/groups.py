"""Groups in a node: the rules of their coordinators, what these see and must hear of. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cotidal.api.coordination import OFFSETS_TOPIC
from cotidal.core.cluster.image import BROKER_RESOURCE, GROUP_RESOURCE
from cotidal.core.groups.asks import ForgetTopics
from cotidal.core.groups.coordinator import GroupCoordinator
from cotidal.core.groups.state import ConsumerRules, GroupRules
from cotidal.core.groups.surroundings import KnownTopic
from cotidal.limits import CONSUMER_GROUP_MEMBERS_MAX
from cotidal.node import coordinators
from cotidal.node.coordinators import Shard
from cotidal.node.state import NodeState
from cotidal.settings import effective_group
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
        consumers=_consumer_rules(state),
    )
    return GroupCoordinator(rules, state.entropy, CommittedMetadata(state))


def _consumer_rules(state: NodeState) -> ConsumerRules:
    assignors = state.setting("group.consumer.assignors")
    protocols = state.setting("group.coordinator.rebalance.protocols")
    assert isinstance(assignors, tuple)
    assert isinstance(protocols, tuple)
    policy = state.setting("group.consumer.migration.policy")
    return ConsumerRules(
        enabled="consumer" in protocols,
        members_max=min(state.number("group.consumer.max.size"), CONSUMER_GROUP_MEMBERS_MAX),
        assignors=assignors,
        upgrades=policy in ("bidirectional", "upgrade"),
        downgrades=policy in ("bidirectional", "downgrade"),
    )


class CommittedMetadata:
    """Implements ``core.groups.surroundings.Surroundings``."""

    __slots__ = ("_state",)

    def __init__(self, state: NodeState) -> None:
        self._state = state

    @property
    def version(self) -> int:
        return self._state.controller.committed.version

    def topic(self, name: str) -> KnownTopic | None:
        found = self._state.controller.committed.topics.get(name)
        if found is None:
            return None
        return KnownTopic(found.name, found.topic_id, len(found.partitions))

    def topic_name(self, topic_id: Uuid) -> str | None:
        return self._state.controller.committed.topic_names.get(topic_id)

    def topic_names(self) -> Iterable[str]:
        return self._state.controller.committed.topics

    def session_timeout_ms(self, group_id: str) -> int:
        return self._bounded(
            group_id,
            "consumer.session.timeout.ms",
            least="group.consumer.min.session.timeout.ms",
            most="group.consumer.max.session.timeout.ms",
        )

    def heartbeat_interval_ms(self, group_id: str) -> int:
        return self._bounded(
            group_id,
            "consumer.heartbeat.interval.ms",
            least="group.consumer.min.heartbeat.interval.ms",
            most="group.consumer.max.heartbeat.interval.ms",
        )

    def _bounded(self, group_id: str, name: str, *, least: str, most: str) -> int:
        """The group's own value where it has one, within the broker's bounds."""
        state = self._state
        image = state.controller.committed
        value = effective_group(
            name,
            group=image.config(GROUP_RESOURCE, group_id),
            broker=image.config(BROKER_RESOURCE, str(state.config.node_id)),
            cluster=image.cluster_config,
            static=state.config.settings,
        ).value
        assert isinstance(value, int)
        return max(state.number(least), min(value, state.number(most)))


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
