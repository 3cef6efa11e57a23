"""One group of the consumer protocol, as the log has it. Pure. Replayed, never changed otherwise.

    Empty        nobody                                      epoch, target epoch: anything
    Assigning    the target of this epoch is not there yet   epoch > target epoch
    Reconciling  somebody has not come to the target         epoch == target epoch
    Stable       everybody has what is theirs                epoch == target epoch

The *epoch* rises when members, subscriptions or topics change; a *target* is made for it; each
member then comes to it at its own pace (reconciliation.py), and its epoch is that of the target
which it has come to.

  ONE_OWNER        a partition is assigned to one member at most, counting those that are to give it
                   up and have not said yet that they have
  EPOCHS_ORDERED   no member is ahead of the target, and the target is not ahead of the group
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from cotidal.core.groups.consumer.assignors import Partitions, TopicIdPartition
from cotidal.invariants import EPOCHS_ORDERED, ONE_OWNER
from cotidal.messages.records.group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartitions,
)

Held: TypeAlias = "dict[TopicIdPartition, int]"
"""Partitions, and since which epoch each is assigned (KIP-1251)."""

GONE_FOR_NOW: Final = -2
"""The epoch of a static member that has left and may come back."""
GONE: Final = -1
"""The epoch with which a member leaves."""
JOINING: Final = 0

ConsumerKey: TypeAlias = (
    ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
)


class GroupState(Enum):
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class MemberState(Enum):
    """By Kafka's numbers."""

    STABLE = 0
    UNREVOKED = 1
    """It is to give partitions up, and has not said that it has."""
    UNRELEASED = 2
    """It has come to the target, except for partitions that others still have."""


class Current(NamedTuple):
    """How far a member has come."""

    epoch: int = JOINING
    previous_epoch: int = JOINING
    state: MemberState = MemberState.STABLE
    assigned: Held = {}
    revoking: Held = {}
    """To be given up; nobody else gets them until then."""


FRESH: Final = Current()


class ConsumerGroup:
    __slots__ = (
        "current",
        "epoch",
        "id",
        "members",
        "metadata_hash",
        "owners",
        "regexes",
        "static",
        "target_epoch",
        "targets",
    )

    def __init__(self, id_: str) -> None:
        self.id = id_
        self.epoch = 0
        self.metadata_hash = 0
        """Of the topics that anybody subscribes to, when the epoch last rose."""
        self.members: dict[str, ConsumerGroupMemberMetadataValue] = {}
        self.static: dict[str, str] = {}
        """Member ids by instance id."""
        self.target_epoch = 0
        self.targets: dict[str, Partitions] = {}
        self.current: dict[str, Current] = {}
        self.owners: dict[TopicIdPartition, str] = {}
        """Who has each partition, or has not given it up yet."""
        self.regexes: dict[str, ConsumerGroupRegularExpressionValue] = {}
        """The topics that each expression of a member was found to match."""

    def copy(self) -> ConsumerGroup:
        """Another one that says the same: to see what records would make of it."""
        other = ConsumerGroup(self.id)
        other.epoch = self.epoch
        other.metadata_hash = self.metadata_hash
        other.members = dict(self.members)
        other.static = dict(self.static)
        other.target_epoch = self.target_epoch
        other.targets = dict(self.targets)
        other.current = dict(self.current)
        other.owners = dict(self.owners)
        other.regexes = dict(self.regexes)
        return other

    @property
    def state(self) -> GroupState:
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.target_epoch:
            return GroupState.ASSIGNING
        if all(self.is_reconciled(each) for each in self.members):
            return GroupState.STABLE
        return GroupState.RECONCILING

    def is_reconciled(self, member_id: str) -> bool:
        told = self.current_of(member_id)
        return told.state is MemberState.STABLE and told.epoch == self.target_epoch

    def current_of(self, member_id: str) -> Current:
        return self.current.get(member_id, FRESH)

    def waits_in_vain(self, member_id: str) -> bool:
        """Whether somebody else still has a partition that this member is to have."""
        return any(
            self.owners.get(each, member_id) != member_id
            for each in self.targets.get(member_id, ())
        )

    def topics_of(self, member: ConsumerGroupMemberMetadataValue) -> tuple[str, ...]:
        """Names that it subscribes to, each once; an expression counts as what it matched."""
        names = dict.fromkeys(member.subscribed_topic_names)
        if member.subscribed_topic_regex:
            found = self.regexes.get(member.subscribed_topic_regex)
            if found is not None:
                names.update(dict.fromkeys(found.topics))
        return tuple(names)

    def subscribed_topics(self) -> dict[str, None]:
        """Of all members."""
        return {name: None for member in self.members.values() for name in self.topics_of(member)}

    @property
    def classic_members(self) -> tuple[str, ...]:
        """Those that still speak the classic protocol."""
        return tuple(
            id_
            for id_, member in self.members.items()
            if member.classic_member_metadata is not None
        )

    def check(self) -> None:
        """The promises of this file."""
        assert self.target_epoch <= self.epoch or not self.members, EPOCHS_ORDERED
        owners: dict[TopicIdPartition, str] = {}
        for id_, told in self.current.items():
            assert told.epoch <= self.target_epoch or id_ not in self.members, EPOCHS_ORDERED
            for at in (*told.assigned, *told.revoking):
                assert owners.setdefault(at, id_) == id_, ONE_OWNER
        assert owners == self.owners, ONE_OWNER

    # Replay

    def replay(self, key: ConsumerKey, value: object | None) -> None:
        match key:
            case ConsumerGroupMetadataKey():
                if isinstance(value, ConsumerGroupMetadataValue):
                    self.epoch = value.epoch
                    self.metadata_hash = value.metadata_hash
            case ConsumerGroupMemberMetadataKey():
                self._replay_member(key.member_id, value)
            case ConsumerGroupTargetAssignmentMetadataKey():
                if isinstance(value, ConsumerGroupTargetAssignmentMetadataValue):
                    self.target_epoch = value.assignment_epoch
            case ConsumerGroupTargetAssignmentMemberKey():
                self.targets.pop(key.member_id, None)
                if isinstance(value, ConsumerGroupTargetAssignmentMemberValue):
                    self.targets[key.member_id] = tuple(
                        sorted(
                            (topic.topic_id, partition)
                            for topic in value.topic_partitions
                            for partition in topic.partitions
                        )
                    )
            case ConsumerGroupCurrentMemberAssignmentKey():
                self._replay_current(key.member_id, value)
            case ConsumerGroupRegularExpressionKey():
                self.regexes.pop(key.regular_expression, None)
                if isinstance(value, ConsumerGroupRegularExpressionValue):
                    self.regexes[key.regular_expression] = value
            case ConsumerGroupPartitionMetadataKey():
                pass  # of Kafka before 4.1; the hash has taken its place

    def _replay_member(self, member_id: str, value: object | None) -> None:
        known = self.members.get(member_id)
        instance_id = None if known is None else known.instance_id
        if instance_id is not None and self.static.get(instance_id) == member_id:
            del self.static[instance_id]
        if isinstance(value, ConsumerGroupMemberMetadataValue):
            self.members[member_id] = value
            if value.instance_id is not None:
                self.static[value.instance_id] = member_id
        else:
            self.members.pop(member_id, None)

    def _replay_current(self, member_id: str, value: object | None) -> None:
        known = self.current.pop(member_id, FRESH)
        for at in (*known.assigned, *known.revoking):
            if self.owners.get(at) == member_id:
                del self.owners[at]
        if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
            told = self.current[member_id] = Current(
                value.member_epoch,
                value.previous_member_epoch,
                MemberState(value.state) if value.state in _STATES else MemberState.STABLE,
                _held(value.assigned_partitions, value.member_epoch),
                _held(value.partitions_pending_revocation, value.member_epoch),
            )
            for at in (*told.assigned, *told.revoking):
                self.owners[at] = member_id


_STATES: Final = tuple(each.value for each in MemberState)


def _held(told: tuple[TopicPartitions, ...], epoch: int) -> Held:
    """Kafka before 4.3 does not write since when: then it counts from the member's own epoch."""
    found: Held = {}
    for topic in told:
        since = topic.assignment_epochs or (epoch,) * len(topic.partitions)
        for partition, at in zip(topic.partitions, since, strict=False):
            found[topic.topic_id, partition] = at
    return found
