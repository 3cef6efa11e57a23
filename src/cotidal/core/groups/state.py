"""What a group coordinator remembers between two questions. Pure.

``acts`` collects what the question under way leads to, in order.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from cotidal.core.coordinator import Act, KeyedRecord, Moment, Waiter
from cotidal.core.groups.consumer.group import ConsumerGroup
from cotidal.core.groups.consumer.pattern import Pattern
from cotidal.core.groups.consumer.records import group_tombstones
from cotidal.core.groups.group import ClassicGroup
from cotidal.core.groups.image import GroupsImage, group_record
from cotidal.core.groups.surroundings import Surroundings
from cotidal.core.groups.timers import Timers
from cotidal.core.machine import Entropy
from cotidal.messages.records.group import GroupMetadataValue
from cotidal.values import Millis, WallMillis

JOINING: Final = "\0joining"
"""What a timer of a group is for, where it is not for a member: ids of members are printable."""
SYNCING: Final = "\0syncing"
DUE: Final = "\0due "
"""Before the id of a consumer group's member: it has its rebalance time-out to do what it was told:
give up what is no longer its own, join again, ask for its assignment."""


class ConsumerRules(NamedTuple):
    """Of groups of the consumer protocol."""

    enabled: bool = True  # group.coordinator.rebalance.protocols
    members_max: int = 2**31 - 1  # group.consumer.max.size
    assignors: tuple[str, ...] = ("uniform", "range")  # group.consumer.assignors
    upgrades: bool = True  # group.consumer.migration.policy
    downgrades: bool = True


class GroupRules(NamedTuple):
    """Settings, by Kafka's names in the comments."""

    session_min_ms: int  # group.min.session.timeout.ms
    session_max_ms: int  # group.max.session.timeout.ms
    initial_delay_ms: int  # group.initial.rebalance.delay.ms
    members_max: int  # group.max.size
    metadata_length_max: int  # offset.metadata.max.bytes
    retention_ms: int  # offsets.retention.minutes
    expiry_interval_ms: int  # offsets.retention.check.interval.ms
    consumers: ConsumerRules = ConsumerRules()


class Assigned(NamedTuple):
    """The leader's assignment of a generation is on its way into the log."""

    group_id: str
    generation: int
    assignments: dict[str, bytes]


class Replaced(NamedTuple):
    """A static member's new life is on its way into the log; nothing else has changed."""

    group_id: str
    member_id: str
    waiter: Waiter
    may_skip: bool


class Downgraded(NamedTuple):
    """The last member of the consumer protocol has gone: the group is a classic one again."""

    group_id: str


class NoMore(NamedTuple):
    """Nothing follows."""


Then: TypeAlias = Assigned | Replaced | Downgraded | NoMore
"""What is handed back with a commit, besides a Tell."""


class Seen(NamedTuple):
    version: int
    """Of the topics."""
    matched_at: Millis
    """When expressions were last matched with them."""


class Groups:
    __slots__ = (
        "acts",
        "at",
        "entropy",
        "image",
        "live",
        "next_expiry",
        "patterns",
        "rules",
        "seen",
        "surroundings",
        "timers",
    )

    def __init__(self, rules: GroupRules, entropy: Entropy, surroundings: Surroundings) -> None:
        self.rules = rules
        self.entropy = entropy
        self.surroundings = surroundings
        self.image = GroupsImage()
        self.live: dict[str, ClassicGroup] = {}
        """Every group that has or had members. A simple group is in the image alone."""
        self.timers: Timers[tuple[str, str]] = Timers()
        """(group, member, or what else is timed)."""
        self.seen: dict[str, Seen] = {}
        """By consumer group: which topics its epoch and its expressions were last held against."""
        self.patterns: dict[str, Pattern] = {}
        """Expressions of consumers, compiled."""
        self.next_expiry = Millis(1 << 62)
        self.at = Moment(Millis(0), WallMillis(0))
        self.acts: list[Act] = []

    def consumer_group(self, group_id: str) -> ConsumerGroup | None:
        """A group that is one of the consumer protocol, and not of the classic one."""
        return None if group_id in self.live else self.image.consumers.get(group_id)

    def classic_records(self, group_id: str, value: GroupMetadataValue) -> tuple[KeyedRecord, ...]:
        """A classic group, in the place of one of the consumer protocol that nobody was in."""
        known = self.image.consumers.get(group_id)
        gone = () if known is None else tuple(group_tombstones(known))
        return (*gone, group_record(group_id, value))

    def exists(self, group_id: str) -> bool:
        image = self.image
        return (
            group_id in self.live
            or group_id in image.offsets
            or group_id in image.pending
            or group_id in image.consumers
        )

    def forget_if_abandoned(self, group: ClassicGroup) -> None:
        """A group that nobody ever came to be a member of leaves no trace."""
        if group.is_abandoned and group.id not in self.image.groups:
            self.live.pop(group.id, None)
