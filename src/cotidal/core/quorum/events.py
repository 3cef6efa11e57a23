"""What can happen to a quorum node. Pure values; past participles.

The driver (the node, the simulator) promises:

- ``Started`` comes first and once, and what it tells of the log has been fsynced.
- Effects are obeyed in order; ``Persisted`` comes once for each Persist, in order, when all its
  writes are durable.
- An ``Answered`` belongs to an Ask of this life of the node (a connection ends with its process).
- ``Ticked`` comes soon after ``next_deadline()``; more often does no harm.
"""

from __future__ import annotations

from typing import NamedTuple, NewType, TypeAlias

from cotidal.core.quorum.dialogue import Question, Reply
from cotidal.core.quorum.log_view import SnapshotId
from cotidal.core.quorum.voters import ControlRecord
from cotidal.messages.records.quorum import QuorumStateData, VotersRecord
from cotidal.values import EpochEntry, LeaderEpoch, NodeId, Offset

RequestToken = NewType("RequestToken", int)
"""The driver's name for a question it was asked; comes back in Answer."""

AskId = NewType("AskId", int)
"""The machine's name for a question it asks; comes back in Answered."""

PersistToken = NewType("PersistToken", int)


class LogFacts(NamedTuple):
    start_offset: Offset = Offset(0)
    end_offset: Offset = Offset(0)
    epochs: tuple[EpochEntry, ...] = ()
    """The first offset of each epoch in the log."""
    control: tuple[tuple[Offset, ControlRecord], ...] = ()
    """VotersRecords and KRaftVersionRecords in the log, ascending in offset."""
    size_bytes: int = 0
    """Of the records that are in no snapshot."""


class SnapshotFacts(NamedTuple):
    id: SnapshotId
    size_bytes: int
    voters: VotersRecord | None = None
    """The last one in the snapshot."""
    kraft_version: int = 0


class Started(NamedTuple):
    stored: QuorumStateData | None
    """The quorum-state file; None on a new disk."""
    log: LogFacts = LogFacts()
    snapshots: tuple[SnapshotFacts, ...] = ()
    """Whole ones only, ascending. 0-0 is the checkpoint that formatting left."""


class Asked(NamedTuple):
    """A question arrived. Each gets one Answer, perhaps much later."""

    request: RequestToken
    message: Question


class Answered(NamedTuple):
    peer: NodeId
    ask: AskId
    message: Reply


class ProposalMade(NamedTuple):
    """Records to append, together or not at all. Answered by ProposalPlaced or ProposalRefused."""

    handle: object
    """The driver's; comes back in both answers and in AppendOwn."""
    record_count: int
    size_bytes: int
    epoch: LeaderEpoch
    """The one of BecameLeader: a proposal made for an epoch that is over is refused."""


class Persisted(NamedTuple):
    token: PersistToken
    installed: SnapshotFacts | None = None
    """If the Persist held InstallSnapshot: what is in it."""


class SnapshotWritten(NamedTuple):
    """A snapshot of committed records is whole and durable here (asked for by TakeSnapshot)."""

    snapshot: SnapshotFacts


class PeerConnected(NamedTuple):
    peer: NodeId


class PeerUnreachable(NamedTuple):
    """A connection ended, or could not be made; whatever was asked on it stays unanswered."""

    peer: NodeId
    refused: bool
    """Nobody listens there: the process is gone, not only the way to it."""


class Ticked(NamedTuple):
    """Time has passed."""


class ShutdownAsked(NamedTuple):
    """Hand over what can be handed over; answered by Stopped."""


Event: TypeAlias = (
    Started
    | Asked
    | Answered
    | ProposalMade
    | Persisted
    | SnapshotWritten
    | PeerConnected
    | PeerUnreachable
    | Ticked
    | ShutdownAsked
)
