"""What a group coordinator remembers between two questions. Pure.

``acts`` collects what the question under way leads to, in order.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from cotidal.core.coordinator import Act, Moment, Waiter
from cotidal.core.groups.group import ClassicGroup
from cotidal.core.groups.image import GroupsImage
from cotidal.core.groups.timers import Timers
from cotidal.core.machine import Entropy
from cotidal.values import Millis, WallMillis

JOINING: Final = "\0joining"
"""What a timer of a group is for, where it is not for a member: ids of members are printable."""
SYNCING: Final = "\0syncing"


class GroupRules(NamedTuple):
    """Settings, by Kafka's names in the comments."""

    session_min_ms: int  # group.min.session.timeout.ms
    session_max_ms: int  # group.max.session.timeout.ms
    initial_delay_ms: int  # group.initial.rebalance.delay.ms
    members_max: int  # group.max.size
    metadata_length_max: int  # offset.metadata.max.bytes
    retention_ms: int  # offsets.retention.minutes
    expiry_interval_ms: int  # offsets.retention.check.interval.ms


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


class NoMore(NamedTuple):
    """Nothing follows."""


Then: TypeAlias = Assigned | Replaced | NoMore
"""What is handed back with a commit, besides a Tell."""


class Groups:
    __slots__ = ("acts", "at", "entropy", "image", "live", "next_expiry", "rules", "timers")

    def __init__(self, rules: GroupRules, entropy: Entropy) -> None:
        self.rules = rules
        self.entropy = entropy
        self.image = GroupsImage()
        self.live: dict[str, ClassicGroup] = {}
        """Every group that has or had members. A simple group is in the image alone."""
        self.timers: Timers[tuple[str, str]] = Timers()
        """(group, member, or what else is timed)."""
        self.next_expiry = Millis(1 << 62)
        self.at = Moment(Millis(0), WallMillis(0))
        self.acts: list[Act] = []

    def exists(self, group_id: str) -> bool:
        image = self.image
        return group_id in self.live or group_id in image.offsets or group_id in image.pending

    def forget_if_abandoned(self, group: ClassicGroup) -> None:
        """A group that nobody ever came to be a member of leaves no trace."""
        if group.is_abandoned and group.id not in self.image.groups:
            self.live.pop(group.id, None)
