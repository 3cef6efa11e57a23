"""What is asked of a group coordinator, and what it answers. Pure values.

Versions of the protocol do not reach this far: ``api/`` knows them. A refusal is an answer too.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from cotidal.core.coordinator import InTransaction
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.group import OffsetCommitValue
from cotidal.values import ZERO_UUID, TopicPartition, Uuid

# Membership


class Protocol(NamedTuple):
    """A way to assign partitions, and what a member has to say about it."""

    name: str
    metadata: bytes


class Join(NamedTuple):
    group_id: str
    member_id: str
    """Empty: the coordinator gives one."""
    instance_id: str | None
    """Of a static member (KIP-345)."""
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[Protocol, ...]
    """In the order in which the member likes them."""
    takes_member_id: bool = True
    """The member joins again with the id that it is given (KIP-394)."""
    may_skip_assignment: bool = True
    """A leader can be told that nothing has to be assigned (KIP-814)."""


class JoinedMember(NamedTuple):
    member_id: str
    instance_id: str | None
    metadata: bytes


class Joined(NamedTuple):
    member_id: str
    generation: int
    protocol_type: str | None
    protocol: str | None
    leader: str
    members: tuple[JoinedMember, ...]
    """For the leader alone."""
    skip_assignment: bool = False


class JoinRefused(NamedTuple):
    error: ErrorCode
    member_id: str
    """With MEMBER_ID_REQUIRED: the one to join with."""


class Sync(NamedTuple):
    group_id: str
    generation: int
    member_id: str
    instance_id: str | None
    protocol_type: str | None
    protocol: str | None
    assignments: tuple[tuple[str, bytes], ...]
    """Of the leader: what each member gets."""


class Synced(NamedTuple):
    protocol_type: str | None
    protocol: str | None
    assignment: bytes


class Beat(NamedTuple):
    group_id: str
    generation: int
    member_id: str
    instance_id: str | None


class Beaten(NamedTuple):
    """The member is known, and nothing has changed."""


class Leaver(NamedTuple):
    member_id: str
    """Empty: whoever has the instance id (an operator removes a static member)."""
    instance_id: str | None


class Leave(NamedTuple):
    group_id: str
    members: tuple[Leaver, ...]


class Left(NamedTuple):
    errors: tuple[ErrorCode, ...]
    """For each of the members."""


# Members of the consumer protocol (KIP-848)


class ConsumerBeat(NamedTuple):
    """Everything a member of a consumer group ever says. None: as before."""

    group_id: str
    member_id: str
    epoch: int
    """0: it joins; -1: it leaves; -2: a static member leaves for now."""
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    """-1: as before."""
    topics: tuple[str, ...] | None
    regex: str | None
    assignor: str | None
    owned: tuple[tuple[Uuid, int], ...] | None

    @property
    def is_full(self) -> bool:
        """It says everything: it may not know what it was last told."""
        subscribes = self.topics is not None or self.regex is not None
        return self.rebalance_timeout_ms >= 0 and subscribes and self.owned is not None


class ConsumerBeaten(NamedTuple):
    member_id: str
    epoch: int
    heartbeat_interval_ms: int
    assignment: tuple[tuple[Uuid, int], ...] | None
    """None: as before."""


class DescribeConsumers(NamedTuple):
    group_id: str


class DescribedConsumer(NamedTuple):
    member_id: str
    instance_id: str | None
    rack_id: str | None
    epoch: int
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    regex: str | None
    assignment: tuple[tuple[Uuid, int], ...]
    target: tuple[tuple[Uuid, int], ...]
    is_classic: bool


class ConsumersDescribed(NamedTuple):
    state: str
    epoch: int
    target_epoch: int
    assignor: str
    members: tuple[DescribedConsumer, ...]


# Offsets


class Commit(NamedTuple):
    partition: TopicPartition
    offset: int
    leader_epoch: int
    metadata: str
    topic_id: Uuid = ZERO_UUID


class CommitOffsets(NamedTuple):
    group_id: str
    generation: int
    """-1: of nobody who is a member."""
    member_id: str
    instance_id: str | None
    commits: tuple[Commit, ...]
    retention_ms: int | None = None
    """An expiry of its own; clients of long ago ask for it."""
    knows_epochs: bool = True
    """Of a version that members of the consumer protocol may commit with."""
    without_group: ErrorCode = ErrorCode.GROUP_ID_NOT_FOUND
    """What a member of a group is told that does not exist."""
    transaction: InTransaction | None = None
    """The commits are part of it (T20)."""


class OffsetsCommitted(NamedTuple):
    errors: tuple[ErrorCode, ...]
    """For each of the commits."""


class FetchOffsets(NamedTuple):
    group_id: str
    partitions: tuple[TopicPartition, ...] | None
    """None: all that the group has."""
    require_stable: bool = False
    """Tell no offset that a transaction may be about to replace (T21)."""
    member_id: str | None = None
    epoch: int = -1
    """Of a member of the consumer protocol, who is told nothing in another one."""


class OffsetsFetched(NamedTuple):
    offsets: tuple[tuple[TopicPartition, OffsetCommitValue | Refusal | None], ...]
    """Refused: not told now, to be asked for again."""


class DeleteOffsets(NamedTuple):
    group_id: str
    partitions: tuple[TopicPartition, ...]


class OffsetsDeleted(NamedTuple):
    errors: tuple[ErrorCode, ...]


class ForgetTopics(NamedTuple):
    """These topics are deleted: nobody has an offset in them any more."""

    ids: tuple[Uuid, ...]


# Groups


class DescribeGroup(NamedTuple):
    group_id: str


class DescribedMember(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class GroupDescribed(NamedTuple):
    state: str
    protocol_type: str
    protocol: str
    members: tuple[DescribedMember, ...]


class ListGroups(NamedTuple):
    """All of one coordinator."""


class GroupListed(NamedTuple):
    group_id: str
    protocol_type: str
    state: str
    kind: str = "classic"


class GroupsListed(NamedTuple):
    groups: tuple[GroupListed, ...]


class DeleteGroup(NamedTuple):
    group_id: str


class GroupDeleted(NamedTuple):
    """It is no more, nor its offsets."""


Ask: TypeAlias = (
    Join
    | Sync
    | Beat
    | Leave
    | ConsumerBeat
    | DescribeConsumers
    | CommitOffsets
    | FetchOffsets
    | DeleteOffsets
    | ForgetTopics
    | DescribeGroup
    | ListGroups
    | DeleteGroup
)
