"""How a quorum node moves from state to state. Pure. The table is in states.py.

  VOTE_ONCE_PER_EPOCH  epoch, vote and leader are written in the step that changes them, so that
                       everything told afterwards waits for them (outbox.py).

Nothing here decides *whether* to move; that is election.py, replication.py and following.py.
"""

from __future__ import annotations

from cotidal.core.quorum.dialogue import (
    BeginEpoch,
    EndEpoch,
    FetchReply,
    Hint,
    MemberReply,
    Question,
    Vote,
)
from cotidal.core.quorum.effects import (
    Answer,
    Ask,
    BecameLeader,
    LeaderKnown,
    LeaderUnknown,
    LostLeadership,
    Stopped,
)
from cotidal.core.quorum.events import AskId
from cotidal.core.quorum.majority import is_won, majority_of
from cotidal.core.quorum.proposals import append_control, await_voters
from cotidal.core.quorum.states import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Quorum,
    Resigned,
    Unattached,
)
from cotidal.core.quorum.voters import ControlRecord, ReplicaKey, key_of
from cotidal.errors import ErrorCode
from cotidal.messages.records.quorum import (
    Endpoint,
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
)
from cotidal.values import NO_NODE, LeaderEpoch, Millis, NodeId


def observe(q: Quorum, hint: Hint, now: Millis) -> bool:
    """Somebody told of an epoch and perhaps its leader; True if that moved this node."""
    is_other = hint.leader_id not in (NO_NODE, q.config.node_id)
    if hint.epoch > q.epoch:
        if is_other:
            follow(q, hint, now)
        else:
            detach(q, hint.epoch, now)
        return True
    if hint.epoch < q.epoch or not is_other:
        return False
    if q.leader_id == hint.leader_id and not q.leader_endpoints:
        q.leader_endpoints = hint.endpoints  # of a leader that we found in our own file
    if q.leader_id == NO_NODE or (q.leader_id == hint.leader_id and isinstance(q.role, Unattached)):
        follow(q, hint, now)
        return True
    return False


def detach(q: Quorum, epoch: LeaderEpoch, now: Millis, *, wait_ms: int | None = None) -> None:
    """Become Unattached, perhaps in a higher epoch. ``wait_ms`` replaces the election time-out."""
    _leave(q)
    if epoch > q.epoch:
        _enter(q, epoch)
    deadline = q.election_deadline(now) if wait_ms is None else Millis(now + wait_ms)
    if not q.is_voter:
        deadline = Millis(now + q.config.retry_backoff_ms)
    q.role = Unattached(deadline, is_quick=q.voted in (None, q.me))
    q.save()
    _tell_leader_unknown(q)
    if wait_ms is None:
        hurry(q, now)
    _stop_if_stopping(q)


def follow(q: Quorum, hint: Hint, now: Millis) -> None:
    """Become Follower of the leader of this epoch or of a higher one."""
    assert hint.leader_id not in (NO_NODE, q.config.node_id)
    _leave(q)
    if hint.epoch > q.epoch:
        _enter(q, hint.epoch)
    q.leader_id = hint.leader_id
    q.leader_endpoints = q.voter_set.endpoints_of(hint.leader_id) or hint.endpoints
    q.known_ends.clear()  # logs grow from now on without our hearing of it
    q.role = Follower(Millis(now + q.config.fetch_timeout_ms), ask_at=now)
    q.losses = 0
    q.save()
    _tell_leader(q)
    _stop_if_stopping(q)


def prospect(q: Quorum, now: Millis) -> None:
    """Ask whether a majority would vote for this node. Nothing is written."""
    assert q.is_voter
    _leave(q)
    role = q.role = Prospective(q.election_deadline(now))
    role.votes[q.config.node_id] = True
    role.ask_at = dict.fromkeys(q.other_voters, now)
    if is_won(granted=1, voters=len(q.voter_set.voters)):
        stand(q, now)
    else:
        ask_for_votes(q, role, now)


def stand(q: Quorum, now: Millis) -> None:
    """Become Candidate of the next epoch."""
    _leave(q)
    _enter(q, LeaderEpoch(q.epoch + 1))
    q.voted = q.me
    q.save()
    campaign(q, now)


def campaign(q: Quorum, now: Millis) -> None:
    """Ask for votes in the epoch in which this node has voted for itself."""
    assert q.voted == q.me
    role = q.role = Candidate(q.election_deadline(now))
    role.votes[q.config.node_id] = True
    role.ask_at = dict.fromkeys(q.other_voters, now)
    if is_won(granted=1, voters=len(q.voter_set.voters)):
        lead(q, now)
    else:
        ask_for_votes(q, role, now)


def lead(q: Quorum, now: Millis) -> None:
    """Become Leader: the first record of the epoch is its LeaderChangeMessage."""
    candidate = q.role
    assert isinstance(candidate, Candidate)
    granting = tuple(node for node, granted in sorted(candidate.votes.items()) if granted)
    _leave(q)
    q.leader_id = q.config.node_id
    q.leader_endpoints = q.config.endpoints
    q.losses = 0
    q.save()
    role = q.role = Leader(epoch_start=q.log.end_offset, since=now)
    await_voters(q, role, now)
    append_control(q, _first_records(q, granting), now)
    q.outbox.tell(BecameLeader(q.epoch, role.epoch_start))
    _tell_leader(q)
    begin_epoch(q, role, now)


def resign(q: Quorum, now: Millis) -> None:
    """Stop leading, in the same epoch, and tell the voters in the order of their logs."""
    leader = q.role
    assert isinstance(leader, Leader)
    others = [voter for voter in q.voter_set.voters if voter.voter_id != q.config.node_id]
    others.sort(key=lambda v: (-leader.progress[key_of(v)].end_offset, v.voter_id))
    successors = tuple(key_of(voter) for voter in others)
    _leave(q)
    role = q.role = Resigned(q.election_deadline(now), successors=successors, is_quick=False)
    role.ask_at = dict.fromkeys(q.other_voters, now)
    _tell_leader_unknown(q)
    end_epoch(q, role, now)


def ask_for_votes(q: Quorum, role: Prospective | Candidate, now: Millis) -> None:
    """Ask, or ask again, every voter whose time has come."""
    for node, at in role.ask_at.items():
        if at > now:
            continue
        role.ask_at[node] = Millis(now + q.config.request_timeout_ms)
        question = Vote(
            candidate=q.me,
            voter=_voter_key(q, node),
            epoch=q.epoch,
            last_epoch=q.log.last_epoch,
            end_offset=q.log.end_offset,
            pre_vote=isinstance(role, Prospective),
        )
        ask(q, node, question)


def begin_epoch(q: Quorum, role: Leader, now: Millis) -> None:
    """Tell every voter who leads."""
    role.begin_at = Millis(now + q.config.fetch_timeout_ms // 2)
    for node in q.other_voters:
        begin_epoch_of(q, node)


def remind_of_epoch(q: Quorum, role: Leader, now: Millis) -> None:
    """Every half fetch time-out, tell whoever has not fetched for as long; others know it."""
    patience_ms = q.config.fetch_timeout_ms // 2
    role.begin_at = Millis(now + patience_ms)
    for voter in q.voter_set.voters:
        key = key_of(voter)
        if key.node_id != q.config.node_id and now - role.progress[key].contact_at >= patience_ms:
            begin_epoch_of(q, key.node_id)


def begin_epoch_of(q: Quorum, node: NodeId) -> None:
    ask(q, node, BeginEpoch(q.config.node_id, _voter_key(q, node), q.epoch, q.config.endpoints))


def end_epoch(q: Quorum, role: Resigned, now: Millis) -> None:
    for node, at in role.ask_at.items():
        if at <= now:
            role.ask_at[node] = Millis(now + q.config.request_timeout_ms)
            ask(q, node, EndEpoch(q.config.node_id, q.epoch, role.successors))
    if not role.ask_at:
        _stop_if_stopping(q)


def ask(q: Quorum, node: NodeId, message: Question) -> None:
    """Ask one node; an earlier question to it is forgotten."""
    q.last_ask += 1
    q.asks[node] = AskId(q.last_ask)
    q.outbox.tell(Ask(node, _endpoints_of(q, node), q.asks[node], message))


def hurry(q: Quorum, now: Millis, *, strides: int = 0) -> None:
    """A voter that knows no leader and reaches a majority need not wait its time-out."""
    role = q.role
    if not isinstance(role, Unattached | Resigned) or not role.is_quick or not q.is_voter:
        return
    reached = 1 + sum(1 for node in q.other_voters if q.connected.get(node, False))
    if reached >= majority_of(len(q.voter_set.voters)):
        role.deadline = min(role.deadline, turn(q, now, strides=strides))


def turn(q: Quorum, now: Millis, *, strides: int = 0) -> Millis:
    """When this voter may try, so that those who would all win do not split the votes.

    The one with the longest log first, then by id, among those that are connected. A log of which
    nothing is known counts as long as ours.
    """
    mine = q.log.reach
    for node in q.other_voters:
        if q.connected.get(node, False):
            theirs = q.known_ends.get(node, mine)
            strides += theirs > mine or (theirs == mine and node < q.config.node_id)
    stride = q.config.rank_stride_ms
    return Millis(now + strides * stride + q.entropy.below(stride // 2 + 1))


def backoff(q: Quorum) -> int:
    """After a lost election: by lot, from a range that doubles with each loss."""
    q.losses = min(q.losses + 1, 10)
    longest = q.config.election_backoff_ms_max
    return 1 + min(longest, 100 * q.entropy.below(1 << q.losses))


def not_leader(q: Quorum) -> FetchReply:
    return FetchReply(ErrorCode.NOT_LEADER_OR_FOLLOWER, q.hint)


def _enter(q: Quorum, epoch: LeaderEpoch) -> None:
    assert epoch > q.epoch
    q.epoch = epoch
    q.voted = None
    q.leader_id = NO_NODE
    q.leader_endpoints = ()


def _leave(q: Quorum) -> None:
    """What every departure has in common: open questions are void; a leader's waiters go away."""
    q.asks.clear()
    role = q.role
    if not isinstance(role, Leader):
        return
    q.role = Unattached(Millis(0), is_quick=False)  # so that the hint no longer names us
    q.outbox.tell(LostLeadership(q.epoch))
    for parked in role.parked.values():
        q.outbox.tell(Answer(parked.request, not_leader(q)))
    changing = role.changing
    if changing is not None and not changing.is_answered:
        text = "leadership was lost before the change was committed; it may still be"
        reply = MemberReply(ErrorCode.NOT_LEADER_OR_FOLLOWER, text, q.hint)
        q.outbox.tell(Answer(changing.request, reply))


def _tell_leader(q: Quorum) -> None:
    if q.told != q.hint:
        q.told = q.hint
        q.outbox.tell(LeaderKnown(q.leader_id, q.epoch, q.leader_endpoints))


def _tell_leader_unknown(q: Quorum) -> None:
    unknown = Hint(NO_NODE, q.epoch, ())
    if q.told != unknown:
        q.told = unknown
        q.outbox.tell(LeaderUnknown(q.epoch))


def _first_records(q: Quorum, granting: tuple[NodeId, ...]) -> tuple[ControlRecord, ...]:
    """LeaderChangeMessage; and, before the log has them, the voters we were formatted with.

    The 0-0 checkpoint is never replicated: without this no other node would learn of them.
    """
    latest = q.voters.latest
    members = tuple(LeaderChangeMessageVoter(voter.voter_id) for voter in latest.voters.voters)
    change = LeaderChangeMessage(
        version=0,  # as Kafka still writes it: without directories, which the VotersRecord has
        leader_id=q.config.node_id,
        voters=members,
        granting_voters=tuple(member for member in members if member.voter_id in granting),
    )
    if not latest.can_change or q.voters.is_from_log:
        return (change,)
    kraft_version = KRaftVersionRecord(version=0, kraft_version=latest.kraft_version)
    return (change, kraft_version, latest.voters.record())


def _stop_if_stopping(q: Quorum) -> None:
    if q.is_stopping and not q.is_stopped:
        q.is_stopped = True
        q.outbox.tell(Stopped())


def _voter_key(q: Quorum, node: NodeId) -> ReplicaKey:
    voter = q.voter_set.find(node)
    assert voter is not None
    return key_of(voter)


def _endpoints_of(q: Quorum, node: NodeId) -> tuple[Endpoint, ...]:
    if node == q.leader_id and q.leader_endpoints:
        return q.leader_endpoints
    for peer, endpoints in q.config.bootstrap:
        if peer == node and q.voter_set.find(node) is None:
            return endpoints
    return q.voter_set.endpoints_of(node)
