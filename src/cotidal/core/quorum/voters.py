"""Who votes, and since which record. Pure. KIP-853.

A voter is its node id *and* the directory that holds its log: a wiped disk is a new replica, which
has promised nothing. With kraft.version 0 the voters are static and their directories unknown; an
unknown directory (zero) stands for any.

A VotersRecord takes effect when it is appended and is taken back when it is truncated, so the
history remembers the offset of each. Offset -1 is what the node was formatted or configured with.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from cotidal.messages.records.quorum import (
    Endpoint,
    KRaftVersionRecord,
    LeaderChangeMessage,
    VotersRecord,
    VotersRecordVoter,
)
from cotidal.values import NO_OFFSET, ZERO_UUID, NodeId, Offset, Uuid

ControlRecord: TypeAlias = LeaderChangeMessage | KRaftVersionRecord | VotersRecord

_new: Final = tuple.__new__


class ReplicaKey(NamedTuple):
    node_id: NodeId
    directory_id: Uuid


def key_of(voter: VotersRecordVoter) -> ReplicaKey:
    return _new(ReplicaKey, (NodeId(voter.voter_id), voter.voter_directory_id))


class VoterSet(NamedTuple):
    """Voters in ascending order of id."""

    voters: tuple[VotersRecordVoter, ...] = ()

    @property
    def ids(self) -> tuple[NodeId, ...]:
        return tuple([NodeId(voter.voter_id) for voter in self.voters])

    def find(self, node_id: NodeId) -> VotersRecordVoter | None:
        for voter in self.voters:
            if voter.voter_id == node_id:
                return voter
        return None

    def has(self, key: ReplicaKey) -> bool:
        voter = self.find(key.node_id)
        return voter is not None and voter.voter_directory_id in (ZERO_UUID, key.directory_id)

    def key_for(self, key: ReplicaKey) -> ReplicaKey:
        """The key of the voter that this replica is (its directory may be unknown), or its own."""
        voter = self.find(key.node_id)
        return key_of(voter) if voter is not None and self.has(key) else key

    def endpoints_of(self, node_id: NodeId) -> tuple[Endpoint, ...]:
        voter = self.find(node_id)
        return () if voter is None else voter.endpoints

    def with_voter(self, added: VotersRecordVoter) -> VoterSet:
        """Added, or put in the place of the voter with its id."""
        others = [voter for voter in self.voters if voter.voter_id != added.voter_id]
        return VoterSet(tuple(sorted((*others, added), key=lambda voter: voter.voter_id)))

    def without(self, key: ReplicaKey) -> VoterSet:
        return VoterSet(tuple(voter for voter in self.voters if key_of(voter) != key))

    def record(self) -> VotersRecord:
        return VotersRecord(version=0, voters=self.voters)


class VotersAt(NamedTuple):
    """Who votes from ``offset`` on, and what the quorum may do there."""

    offset: Offset
    voters: VoterSet
    kraft_version: int

    @property
    def can_change(self) -> bool:
        return self.kraft_version >= 1


class VoterHistory:
    """Ascending in offset; the last one is in force, the first one is never taken back."""

    __slots__ = ("entries",)

    def __init__(self, voters: VoterSet, *, kraft_version: int, offset: Offset = NO_OFFSET) -> None:
        self.entries = [VotersAt(offset, voters, kraft_version)]

    @property
    def latest(self) -> VotersAt:
        return self.entries[-1]

    def before(self, offset: Offset) -> VotersAt:
        """What is in force just below ``offset``."""
        found = self.entries[0]
        for entry in self.entries:
            if entry.offset < offset:
                found = entry
        return found

    @property
    def is_from_log(self) -> bool:
        """False while the voters are only what this node was formatted with: nobody else knows."""
        return self.latest.offset != NO_OFFSET

    def append(self, offset: Offset, record: ControlRecord) -> bool:
        """A control record stands at ``offset``; True if it changed who votes or how."""
        now = self.latest
        if isinstance(record, VotersRecord):
            after = VotersAt(offset, VoterSet(record.voters), now.kraft_version)
        elif isinstance(record, KRaftVersionRecord):
            after = VotersAt(offset, now.voters, record.kraft_version)
        else:
            return False
        self.entries.append(after)
        return True

    def cut_from(self, offset: Offset) -> bool:
        """The log now ends at ``offset``; True if that took voters back."""
        before = len(self.entries)
        while len(self.entries) > 1 and self.entries[-1].offset >= offset:
            self.entries.pop()
        return len(self.entries) < before

    def cut_below(self, offset: Offset) -> None:
        """The log now starts at ``offset``: what was in force there is the first entry."""
        while len(self.entries) > 1 and self.entries[1].offset < offset:
            del self.entries[0]

    def changes_from(self, offset: Offset) -> int:
        """How many records from ``offset`` on changed who votes."""
        pairs = zip(self.entries, self.entries[1:], strict=False)
        return sum(1 for before, at in pairs if at.offset >= offset and before.voters != at.voters)
