"""What quorum nodes say to each other. Pure values.

    question       answer         Kafka's API                  asked by
    Vote           VoteReply      Vote (52)                    Prospective (pre_vote), Candidate
    BeginEpoch     EpochReply     BeginQuorumEpoch (53)        Leader
    EndEpoch       EpochReply     EndQuorumEpoch (54)          Resigned
    Fetch          FetchReply     Fetch (1)                    Follower, observers
    FetchChunk     ChunkReply     FetchSnapshot (59)           Follower, observers
    UpdateVoter    MemberReply    UpdateRaftVoter (82)         Follower
    AddVoter       MemberReply    AddRaftVoter (80)            an administrator, observers that join
    RemoveVoter    MemberReply    RemoveRaftVoter (81)         an administrator, observers that join
    RaiseVersion   MemberReply    UpdateFeatures (57)          an administrator

Records and snapshot bytes are never here: an answer on its way out names a range that the driver
reads, one on its way in names what arrived by a handle that the driver understands.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from cotidal.core.quorum.log_view import EpochEnd, SnapshotId
from cotidal.core.quorum.voters import ControlRecord, ReplicaKey
from cotidal.errors import ErrorCode
from cotidal.messages.records.quorum import Endpoint, KRaftVersionFeature
from cotidal.values import NO_EPOCH, NO_NODE, NO_OFFSET, LeaderEpoch, NodeId, Offset


class Hint(NamedTuple):
    """Who leads, as far as the speaker knows. Part of every answer."""

    leader_id: NodeId = NO_NODE
    epoch: LeaderEpoch = NO_EPOCH
    endpoints: tuple[Endpoint, ...] = ()


class Vote(NamedTuple):
    candidate: ReplicaKey
    voter: ReplicaKey
    """Who is meant: a zero directory means whatever that node has."""
    epoch: LeaderEpoch
    """Of a PreVote the current one, of a vote the one to lead in."""
    last_epoch: LeaderEpoch
    end_offset: Offset
    pre_vote: bool


class VoteReply(NamedTuple):
    error: ErrorCode
    hint: Hint
    granted: bool


class BeginEpoch(NamedTuple):
    leader_id: NodeId
    voter: ReplicaKey
    epoch: LeaderEpoch
    endpoints: tuple[Endpoint, ...]
    """The leader's."""


class EndEpoch(NamedTuple):
    leader_id: NodeId
    epoch: LeaderEpoch
    successors: tuple[ReplicaKey, ...]
    """The other voters, longest log first."""


class EpochReply(NamedTuple):
    """To BeginEpoch and to EndEpoch."""

    error: ErrorCode
    hint: Hint


class Fetch(NamedTuple):
    replica: ReplicaKey
    epoch: LeaderEpoch
    offset: Offset
    last_epoch: LeaderEpoch
    high_watermark: Offset
    """The asker's own (KIP-1166). Askers that do not tell theirs: the largest 64-bit integer."""
    max_wait_ms: int


class RecordRange(NamedTuple):
    """To be read for an answer: whole batches from ``offset`` on, all below ``below``.

    As many as fit. Should the log be cut before it is read, nothing of an epoch above the answer's
    ``hint.epoch`` may be sent; the asker drops it too.
    """

    offset: Offset
    below: Offset


class FetchedBatch(NamedTuple):
    base_offset: Offset
    next_offset: Offset
    epoch: LeaderEpoch
    size_bytes: int = 0
    control: tuple[tuple[Offset, ControlRecord], ...] = ()
    """The quorum's own records in it, decoded, with their offsets."""


class FetchedRecords(NamedTuple):
    """Arrived, crc checked. ``handle`` is the driver's; it comes back in AppendFetched."""

    batches: tuple[FetchedBatch, ...]
    handle: object = None


class FetchReply(NamedTuple):
    error: ErrorCode
    hint: Hint
    high_watermark: Offset = NO_OFFSET
    log_start: Offset = NO_OFFSET
    diverging: EpochEnd | None = None
    snapshot: SnapshotId | None = None
    records: RecordRange | FetchedRecords | None = None


class FetchChunk(NamedTuple):
    replica: ReplicaKey
    epoch: LeaderEpoch
    snapshot: SnapshotId
    position: int
    max_bytes: int


class ChunkRange(NamedTuple):
    """To be read from the snapshot's file for an answer."""

    position: int
    max_bytes: int


class FetchedChunk(NamedTuple):
    """Arrived. ``handle`` is the driver's; it comes back in KeepChunk."""

    size_bytes: int
    handle: object = None


class ChunkReply(NamedTuple):
    error: ErrorCode
    hint: Hint
    snapshot: SnapshotId
    size_bytes: int = 0
    """Of the whole snapshot."""
    position: int = 0
    chunk: ChunkRange | FetchedChunk | None = None


class AddVoter(NamedTuple):
    key: ReplicaKey
    endpoints: tuple[Endpoint, ...]
    kraft_versions: KRaftVersionFeature
    """What the new voter supports: whoever translates the request has asked it (ApiVersions)."""
    timeout_ms: int
    ack_when_committed: bool = True
    """Otherwise the answer comes when the record is on the leader's disk."""


class RemoveVoter(NamedTuple):
    key: ReplicaKey
    timeout_ms: int


class UpdateVoter(NamedTuple):
    epoch: LeaderEpoch
    key: ReplicaKey
    endpoints: tuple[Endpoint, ...]
    kraft_versions: KRaftVersionFeature
    timeout_ms: int


class RaiseVersion(NamedTuple):
    """kraft.version goes up: the voters, static so far, become a record."""

    kraft_version: int
    supported: tuple[tuple[NodeId, KRaftVersionFeature], ...]
    """What each voter supports, as far as whoever translates the request knows."""
    timeout_ms: int
    validate_only: bool = False


class MemberReply(NamedTuple):
    error: ErrorCode
    text: str
    """Empty without error."""
    hint: Hint


MemberChange: TypeAlias = AddVoter | RemoveVoter | UpdateVoter | RaiseVersion
Question: TypeAlias = Vote | BeginEpoch | EndEpoch | Fetch | FetchChunk | MemberChange
Reply: TypeAlias = VoteReply | EpochReply | FetchReply | ChunkReply | MemberReply
