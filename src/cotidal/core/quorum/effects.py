"""What a quorum node wants done. Pure values; imperatives, obeyed in order."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from cotidal.core.quorum.dialogue import Question, Reply
from cotidal.core.quorum.events import AskId, PersistToken, RequestToken
from cotidal.core.quorum.log_view import SnapshotId
from cotidal.core.quorum.voters import ControlRecord, VoterSet
from cotidal.errors import ErrorCode
from cotidal.messages.records.quorum import Endpoint, QuorumStateData
from cotidal.values import LeaderEpoch, NodeId, Offset

# writes: what a Persist holds


class WriteState(NamedTuple):
    """Replace the quorum-state file."""

    state: QuorumStateData


class AppendOwn(NamedTuple):
    """Append a proposal as one batch."""

    base_offset: Offset
    epoch: LeaderEpoch
    handle: object


class AppendControl(NamedTuple):
    """Append these records of the quorum as one control batch."""

    base_offset: Offset
    epoch: LeaderEpoch
    records: tuple[ControlRecord, ...]


class AppendFetched(NamedTuple):
    """Append, as they are, the batches of ``handle`` that lie in [base_offset, next_offset)."""

    base_offset: Offset
    next_offset: Offset
    handle: object


class TruncateTo(NamedTuple):
    offset: Offset


class InstallSnapshot(NamedTuple):
    """The chunks kept for ``id`` are whole: make them a snapshot, drop the log, start it there."""

    id: SnapshotId


class CleanTo(NamedTuple):
    """Records below ``offset`` are in a snapshot and no longer wanted; whole segments suffice.

    A log that starts lower than this after a restart is told as it is.
    """

    offset: Offset


Write: TypeAlias = (
    WriteState | AppendOwn | AppendControl | AppendFetched | TruncateTo | InstallSnapshot | CleanTo
)


class Persist(NamedTuple):
    """Write and fsync, in order; answered by Persisted. One at a time is under way."""

    token: PersistToken
    writes: tuple[Write, ...]


# to other nodes


class Ask(NamedTuple):
    """Answered by Answered, or by PeerUnreachable, or never."""

    peer: NodeId
    endpoints: tuple[Endpoint, ...]
    ask: AskId
    message: Question


class Answer(NamedTuple):
    request: RequestToken
    message: Reply


class KeepConnected(NamedTuple):
    """Keep a connection to each of these, and no other for the quorum's sake.

    Tell PeerConnected and PeerUnreachable of them without being asked.
    """

    peers: tuple[tuple[NodeId, tuple[Endpoint, ...]], ...]


# to the replicated machine above


class BecameLeader(NamedTuple):
    """Propose from now on. Records below ``epoch_start`` are other leaders'.

    Wait for Committed above ``epoch_start`` before answering from the committed image.
    """

    epoch: LeaderEpoch
    epoch_start: Offset


class LostLeadership(NamedTuple):
    """What is not committed yet may never be."""

    epoch: LeaderEpoch


class LeaderKnown(NamedTuple):
    leader_id: NodeId
    epoch: LeaderEpoch
    endpoints: tuple[Endpoint, ...]


class LeaderUnknown(NamedTuple):
    epoch: LeaderEpoch


class ProposalPlaced(NamedTuple):
    """In the log from ``base_offset`` on; not durable and not committed yet."""

    handle: object
    base_offset: Offset
    epoch: LeaderEpoch


class ProposalRefused(NamedTuple):
    handle: object
    error: ErrorCode


class Committed(NamedTuple):
    """The high watermark moved: everything below is committed and on this node's disk."""

    high_watermark: Offset


class VotersChanged(NamedTuple):
    """In force, though perhaps not committed yet."""

    voters: VoterSet
    kraft_version: int


class TakeSnapshot(NamedTuple):
    """It is time for one of everything below ``id.end_offset``; answered by SnapshotWritten."""

    id: SnapshotId


class KeepChunk(NamedTuple):
    """Write a piece of a snapshot that is being fetched. 0 begins anew. Need not be durable."""

    id: SnapshotId
    position: int
    handle: object


class LoadSnapshot(NamedTuple):
    """Installed and durable: replace the committed image by it."""

    id: SnapshotId


class ForgetSnapshot(NamedTuple):
    """Nobody will be told of it any more."""

    id: SnapshotId


class Stopped(NamedTuple):
    """Answers ShutdownAsked."""


class Fatal(NamedTuple):
    """The machine stops here: a promise is broken on which everything rests. Exit."""

    sentence: str


Effect: TypeAlias = (
    Persist
    | Ask
    | Answer
    | KeepConnected
    | BecameLeader
    | LostLeadership
    | LeaderKnown
    | LeaderUnknown
    | ProposalPlaced
    | ProposalRefused
    | Committed
    | VotersChanged
    | TakeSnapshot
    | KeepChunk
    | LoadSnapshot
    | ForgetSnapshot
    | Stopped
    | Fatal
)
