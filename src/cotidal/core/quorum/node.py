"""A quorum node: events in, effects out. Pure. Dispatch only.

    majority, voters, log_view     arithmetic and values
    dialogue, events, effects      what is said, what happens, what is wanted
    outbox                         nothing is told before it is durable
    states, transitions            the states, and how to get from one to the next
    election                       who leads
    proposals, replication         the leader's log
    following, snapshots           everybody else's
    membership                     who votes
    recovery                       the first step of a life

Every step ends with what is due by the clock, whatever the event was; Ticked brings nothing else.
"""

from __future__ import annotations

from typing import NamedTuple, assert_never

from cotidal.core.machine import Entropy
from cotidal.core.quorum import election, following, membership, replication, snapshots
from cotidal.core.quorum.dialogue import (
    AddVoter,
    BeginEpoch,
    ChunkReply,
    EndEpoch,
    EpochReply,
    Fetch,
    FetchChunk,
    FetchReply,
    Hint,
    MemberChange,
    MemberReply,
    RaiseVersion,
    RemoveVoter,
    UpdateVoter,
    Vote,
    VoteReply,
)
from cotidal.core.quorum.effects import Answer, Effect
from cotidal.core.quorum.events import (
    Answered,
    Asked,
    Event,
    PeerConnected,
    PeerUnreachable,
    Persisted,
    ProposalMade,
    RequestToken,
    ShutdownAsked,
    SnapshotWritten,
    Started,
    Ticked,
)
from cotidal.core.quorum.proposals import on_proposal_made
from cotidal.core.quorum.recovery import on_started
from cotidal.core.quorum.states import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Quorum,
    QuorumConfig,
    Resigned,
    Unattached,
)
from cotidal.core.quorum.transitions import detach, resign
from cotidal.core.quorum.voters import ReplicaKey
from cotidal.errors import ErrorCode
from cotidal.invariants import (
    HIGH_WATERMARK_IN_LOG,
    LEADER_HOLDS_ITS_EPOCH,
    MAJORITY_HOLDS_COMMITTED,
    ONE_CHANGE_OF_VOTERS,
    VOTE_ONCE_PER_EPOCH,
)
from cotidal.values import Millis, Offset


class ReplicaView(NamedTuple):
    key: ReplicaKey
    end_offset: Offset
    fetched_at: Millis | None
    caught_up_at: Millis | None


class QuorumView(NamedTuple):
    """For DescribeQuorum. Replicas are known to the leader only."""

    hint: Hint
    high_watermark: Offset
    voters: tuple[ReplicaView, ...]
    observers: tuple[ReplicaView, ...]


class QuorumNode:
    """One replica of the metadata log: voter or observer."""

    __slots__ = ("state",)

    def __init__(self, config: QuorumConfig, entropy: Entropy) -> None:
        self.state = Quorum(config, entropy)

    def step(self, event: Event, now: Millis) -> tuple[Effect, ...]:
        q = self.state
        if q.has_failed:
            return ()
        _dispatch(q, event, now)
        _on_time(q, now)
        return q.outbox.drain(q.log.end_offset)

    def next_deadline(self) -> Millis | None:
        q = self.state
        return None if q.has_failed else min(_deadlines(q), default=None)

    def view(self, now: Millis) -> QuorumView:
        return _view(self.state, now)

    def check(self) -> None:
        _check(self.state)


def _dispatch(q: Quorum, event: Event, now: Millis) -> None:
    match event:
        case Started():
            on_started(q, event, now)
        case Asked(request, message):
            _on_asked(q, request, message, now)
        case Answered():
            _on_answered(q, event, now)
        case ProposalMade():
            on_proposal_made(q, event)
        case Persisted():
            _on_persisted(q, event, now)
        case SnapshotWritten():
            snapshots.on_snapshot_written(q, event, now)
        case PeerConnected():
            election.on_peer_connected(q, event, now)
        case PeerUnreachable():
            election.on_peer_unreachable(q, event, now)
        case Ticked():
            pass
        case ShutdownAsked():
            _on_shutdown_asked(q, now)
        case _:
            assert_never(event)


def _on_asked(
    q: Quorum,
    request: RequestToken,
    message: Vote | BeginEpoch | EndEpoch | Fetch | FetchChunk | MemberChange,
    now: Millis,
) -> None:
    match message:
        case Vote():
            election.on_vote(q, request, message, now)
        case BeginEpoch():
            election.on_begin_epoch(q, request, message, now)
        case EndEpoch():
            election.on_end_epoch(q, request, message, now)
        case Fetch():
            replication.on_fetch(q, request, message, now)
        case FetchChunk():
            _on_fetch_chunk(q, request, message, now)
        case AddVoter() | RemoveVoter() | UpdateVoter() | RaiseVersion():
            _on_member_change(q, request, message, now)
        case _:
            assert_never(message)


def _on_answered(q: Quorum, event: Answered, now: Millis) -> None:
    if q.asks.get(event.peer) != event.ask:
        return  # of another state or epoch, or a second time
    del q.asks[event.peer]
    q.connected[event.peer] = True  # whatever was lost before on another connection
    message = event.message
    match message:
        case VoteReply():
            election.on_vote_reply(q, event.peer, message, now)
        case EpochReply():
            election.on_epoch_reply(q, event.peer, message, now)
        case FetchReply():
            following.on_fetch_reply(q, event.peer, message, now)
        case ChunkReply():
            following.on_chunk_reply(q, event.peer, message, now)
        case MemberReply():
            following.on_update_reply(q, event.peer, message, now)
        case _:
            assert_never(message)


def _on_fetch_chunk(q: Quorum, request: RequestToken, message: FetchChunk, now: Millis) -> None:
    error = replication.refused_by_epoch(q, message.epoch)
    if error != ErrorCode.NONE or not isinstance(q.role, Leader):
        q.outbox.tell(Answer(request, ChunkReply(error, q.hint, message.snapshot)))
        return
    replication.contact(q, q.role, message.replica, now)
    snapshots.answer_chunk(q, request, message)


def _on_member_change(q: Quorum, request: RequestToken, message: MemberChange, now: Millis) -> None:
    epoch = message.epoch if isinstance(message, UpdateVoter) else q.epoch
    error = replication.refused_by_epoch(q, epoch)
    if error != ErrorCode.NONE or not isinstance(q.role, Leader):
        reply = MemberReply(error, "this node does not lead the quorum in that epoch", q.hint)
        q.outbox.tell(Answer(request, reply))
        return
    membership.on_member_change(q, q.role, request, message, now)


def _on_persisted(q: Quorum, event: Persisted, now: Millis) -> None:
    q.outbox.on_persisted(event.token)
    if event.installed is not None:
        snapshots.on_installed(q, event.installed, now)
    if isinstance(q.role, Leader):
        membership.on_change_durable(q, q.role)
    replication.on_durable(q, now)
    following.advance_high_watermark(q, now)


def _on_shutdown_asked(q: Quorum, now: Millis) -> None:
    if q.is_stopping:
        return
    q.is_stopping = True
    if isinstance(q.role, Leader):
        resign(q, now)
    else:
        detach(q, q.epoch, now)


def _on_time(q: Quorum, now: Millis) -> None:
    if q.has_failed:
        return
    election.on_time(q, now)
    replication.on_time(q, now)
    if isinstance(q.role, Leader):
        membership.on_time(q, q.role, now)
    following.on_time(q, now)


def _deadlines(q: Quorum) -> list[Millis]:
    role = q.role
    match role:
        case Unattached():
            is_idle = q.is_voter and q.is_stopping
            return [] if is_idle else [role.deadline]
        case Prospective() | Candidate() | Resigned():
            return [role.deadline, *role.ask_at.values()]
        case Follower():
            return [role.deadline] if q.installing is not None else [role.deadline, role.ask_at]
        case Leader():
            return _leader_deadlines(q, role)
        case _:
            assert_never(role)


def _leader_deadlines(q: Quorum, role: Leader) -> list[Millis]:
    due = [parked.deadline for parked in role.parked.values()]
    if q.other_voters:
        due.append(role.begin_at)
    resign_at = replication.quorum_deadline(q, role)
    if resign_at is not None:
        due.append(resign_at)
    if role.changing is not None and not role.changing.is_answered:
        due.append(role.changing.deadline)
    return due


def _view(q: Quorum, now: Millis) -> QuorumView:
    role = q.role
    if not isinstance(role, Leader):
        return QuorumView(q.hint, q.high_watermark, (), ())
    voters: list[ReplicaView] = []
    observers: list[ReplicaView] = []
    mine = ReplicaView(q.me, q.outbox.durable_end, now, now)
    (voters if q.is_voter else observers).append(mine)
    for key, known in role.progress.items():
        seen = ReplicaView(key, known.end_offset, known.fetched_at, known.caught_up_at)
        (voters if q.voter_set.has(key) else observers).append(seen)
    return QuorumView(q.hint, q.high_watermark, tuple(sorted(voters)), tuple(sorted(observers)))


def _check(q: Quorum) -> None:
    if q.has_failed:
        return
    q.log.check()
    q.outbox.check()
    snapshots.check_snapshots(q)
    assert q.log.start_offset <= q.high_watermark <= q.log.end_offset, HIGH_WATERMARK_IN_LOG
    saved = q.saved
    if saved is not None:
        assert (saved.leader_epoch, saved.leader_id) == (q.epoch, q.leader_id), VOTE_ONCE_PER_EPOCH
    assert q.log.last_epoch <= q.epoch
    role = q.role
    if isinstance(role, Prospective | Candidate):
        assert q.is_voter
    if isinstance(role, Candidate):
        assert q.voted == q.me, VOTE_ONCE_PER_EPOCH
    if isinstance(role, Leader):
        assert q.leader_id == q.config.node_id
        assert q.log.last_epoch == q.epoch, LEADER_HOLDS_ITS_EPOCH
        assert q.high_watermark <= q.outbox.durable_end, MAJORITY_HOLDS_COMMITTED
        if role.commits_own_epoch:
            changes = q.voters.changes_from(q.high_watermark)
            assert changes <= 1, ONE_CHANGE_OF_VOTERS
