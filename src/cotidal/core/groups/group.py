"""One classic group: members, generation, and where its rebalance stands. Pure. Soft state.

    Empty                nobody                         -> PreparingRebalance   somebody joins
    PreparingRebalance   members join again             -> CompletingRebalance  all have, or it is
                                                                                late
                                                        -> Empty                nobody has
    CompletingRebalance  members wait for the leader's  -> Stable               it is committed
                         assignment                     -> PreparingRebalance   membership changes
    Stable               members heartbeat              -> PreparingRebalance   membership changes

A generation is written when its leader has assigned it, and when the group becomes empty: what the
next coordinator finds is the last generation in which everybody knew what is theirs. A rebalance
that was under way is begun again there.

What follows from a transition is in rebalance.py.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from cotidal.core.coordinator import Waiter
from cotidal.core.groups.asks import DescribedMember, JoinedMember, Protocol
from cotidal.core.groups.subscription import subscribed_topics
from cotidal.errors import ErrorCode
from cotidal.messages.records.group import GroupMetadataValue, MemberMetadata
from cotidal.values import Millis, WallMillis

CONSUMER: Final = "consumer"
"""The protocol type of consumers; Connect and others have their own."""


class State(Enum):
    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


class Member:
    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "id",
        "instance_id",
        "is_new",
        "joining",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "syncing",
    )

    def __init__(
        self,
        id_: str,
        *,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        protocols: tuple[Protocol, ...],
        assignment: bytes = b"",
    ) -> None:
        self.id = id_
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.joining: Waiter | None = None
        """Its JoinGroup waits for the others."""
        self.syncing: Waiter | None = None
        """Its SyncGroup waits for the leader's assignment."""
        self.is_new = False
        """It has not been answered yet, and so cannot heartbeat."""

    def metadata(self, protocol: str | None) -> bytes:
        return next((each.metadata for each in self.protocols if each.name == protocol), b"")


class ClassicGroup:
    __slots__ = (
        "generation",
        "has_newcomers",
        "id",
        "is_first",
        "leader",
        "members",
        "patience_ends",
        "pending",
        "protocol",
        "protocol_type",
        "since",
        "state",
        "static",
        "topics",
        "unsynced",
    )

    def __init__(self, id_: str, wall: WallMillis) -> None:
        self.id = id_
        self.state = State.EMPTY
        self.since = wall
        """When it came into this state."""
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.static: dict[str, str] = {}
        """Member ids by instance id."""
        self.pending: dict[str, None] = {}
        """Ids that were given and with which nobody has joined yet."""
        self.unsynced: dict[str, None] = {}
        """Members that have not asked for their assignment in this generation."""
        self.topics: frozenset[str] | None = None
        """Topics that its consumers subscribe to; None where that is not known."""
        self.is_first = False
        """While preparing: the group was empty, and waits for more to join."""
        self.has_newcomers = False
        """Somebody has, since the wait was last prolonged."""
        self.patience_ends = Millis(0)
        """The first rebalance is not prolonged beyond."""

    @classmethod
    def load(cls, id_: str, told: GroupMetadataValue) -> ClassicGroup:
        """As the log has it. Each member is known by the one protocol that was chosen."""
        group = cls(id_, WallMillis(told.current_state_timestamp))
        group.generation = told.generation
        group.protocol_type = told.protocol_type or None
        group.protocol = told.protocol
        group.leader = told.leader
        for each in told.members:
            member = Member(
                each.member_id,
                instance_id=each.group_instance_id,
                client_id=each.client_id,
                client_host=each.client_host,
                session_timeout_ms=each.session_timeout,
                rebalance_timeout_ms=(
                    each.session_timeout if each.rebalance_timeout < 0 else each.rebalance_timeout
                ),
                protocols=(Protocol(told.protocol or "", each.subscription),),
                assignment=each.assignment,
            )
            group.members[member.id] = member
            if member.instance_id is not None:
                group.static[member.instance_id] = member.id
        group.state = State.STABLE if group.members else State.EMPTY
        if group.leader not in group.members:
            group.leader = next(iter(group.members), None)
        group.learn_topics()
        return group

    def record(self, assignments: dict[str, bytes]) -> GroupMetadataValue:
        """This generation, as it is written."""
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            current_state_timestamp=self.since,
            members=tuple(
                MemberMetadata(
                    member_id=member.id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.metadata(self.protocol),
                    assignment=assignments.get(member.id, b""),
                )
                for member in self.members.values()
            ),
        )

    def enter(self, state: State, wall: WallMillis) -> None:
        self.state = state
        self.since = wall

    # Members

    @property
    def is_abandoned(self) -> bool:
        """Nobody is in it, and nobody is expected."""
        return self.state is State.EMPTY and not self.pending

    @property
    def joined(self) -> int:
        return sum(1 for member in self.members.values() if member.joining is not None)

    @property
    def have_all_joined(self) -> bool:
        return not self.pending and self.joined == len(self.members)

    @property
    def rebalance_timeout_ms(self) -> int:
        """The slowest member's: everybody waits for it."""
        timeouts = (member.rebalance_timeout_ms for member in self.members.values())
        return max(timeouts, default=0)

    def add(self, member: Member, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        self.members[member.id] = member
        self.pending.pop(member.id, None)
        if member.instance_id is not None:
            self.static[member.instance_id] = member.id
        if self.leader is None:
            self.leader = member.id

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None and member.instance_id is not None:
            self.static.pop(member.instance_id, None)
        self.pending.pop(member_id, None)
        self.unsynced.pop(member_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def replace_static(self, old: Member, new: Member) -> None:
        """The instance has a new life, in the place of the old one."""
        assert new.instance_id is not None
        self.members = {
            (new.id if id_ == old.id else id_): (new if id_ == old.id else member)
            for id_, member in self.members.items()
        }
        self.static[new.instance_id] = new.id
        self.unsynced.pop(old.id, None)
        if self.leader == old.id:
            self.leader = new.id

    def refusal_of(self, member_id: str, instance_id: str | None) -> ErrorCode | None:
        """Why somebody is not the member that it says it is; None if it is."""
        if instance_id is not None:
            known = self.static.get(instance_id)
            if known is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if known != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return None if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    # Protocols

    def supports(self, protocol_type: str, protocols: tuple[Protocol, ...]) -> bool:
        """Whether somebody with these protocols can be in the group with the others."""
        if self.state is State.EMPTY:
            return bool(protocol_type and protocols)
        shared = self._shared_protocols()
        return protocol_type == self.protocol_type and any(
            each.name in shared for each in protocols
        )

    def choose_protocol(self) -> str:
        """Of those that all know, the one that most members like best."""
        shared = self._shared_protocols()
        votes: dict[str, int] = {}
        for member in self.members.values():
            liked = next(each.name for each in member.protocols if each.name in shared)
            votes[liked] = votes.get(liked, 0) + 1
        return max(votes, key=lambda name: votes[name])

    def learn_topics(self) -> None:
        """What the members subscribe to, if that can be read."""
        self.topics = None
        if self.protocol_type == CONSUMER and (self.protocol is not None or not self.members):
            said = (member.metadata(self.protocol) for member in self.members.values())
            self.topics = subscribed_topics(said)

    def _shared_protocols(self) -> dict[str, None]:
        shared: dict[str, None] | None = None
        for member in self.members.values():
            names = {each.name: None for each in member.protocols}
            shared = names if shared is None else {n: None for n in shared if n in names}
        return shared or {}

    # Telling

    def joined_members(self) -> tuple[JoinedMember, ...]:
        return tuple(
            JoinedMember(member.id, member.instance_id, member.metadata(self.protocol))
            for member in self.members.values()
        )

    def described_members(self) -> tuple[DescribedMember, ...]:
        stable = self.state is State.STABLE
        return tuple(
            DescribedMember(
                member.id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.metadata(self.protocol) if stable else b"",
                member.assignment if stable else b"",
            )
            for member in self.members.values()
        )
