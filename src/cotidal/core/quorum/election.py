"""Who leads. Pure. KIP-595, KIP-853, KIP-996.

  VOTE_ONCE_PER_EPOCH  a vote is written before it is told; asked again by the same candidate, it is
                       given again, also after a restart.

A **vote** is granted by an Unattached or Prospective node that knows no leader of the epoch, has
not voted for somebody else in it, and whose log does not reach further than the candidate's.

A **PreVote** asks "would you?", in the current epoch; nothing is written and many may be granted. A
leader refuses, and so does a follower that has fetched from its leader: a voter that was cut off
cannot disturb those who were not. A follower whose leader resigned or refuses connections grants by
log: otherwise survivors would refuse each other until their fetch time-outs.

How long to wait before trying:
    connected to a majority, no leader known     rank x stride plus a lot: transitions.turn
    leader gone                                  the same
    leader resigned                              place in its list: 0, 1, 2, 4 ... strides
    lost                                         the same, and a lot that doubles: backoff
    otherwise                                    the election time-out, up to doubled by lot
"""

from __future__ import annotations

from typing import assert_never

from cotidal.core.quorum.dialogue import BeginEpoch, EndEpoch, EpochReply, Hint, Vote, VoteReply
from cotidal.core.quorum.effects import Answer
from cotidal.core.quorum.events import PeerConnected, PeerUnreachable, RequestToken
from cotidal.core.quorum.log_view import LogEnd
from cotidal.core.quorum.majority import is_lost, is_won
from cotidal.core.quorum.states import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Quorum,
    Resigned,
    Unattached,
)
from cotidal.core.quorum.transitions import (
    ask_for_votes,
    backoff,
    begin_epoch_of,
    detach,
    end_epoch,
    follow,
    hurry,
    lead,
    observe,
    prospect,
    stand,
    turn,
)
from cotidal.core.quorum.voters import ReplicaKey
from cotidal.errors import ErrorCode
from cotidal.values import NO_NODE, ZERO_UUID, Millis, NodeId

# asked


def on_vote(q: Quorum, request: RequestToken, message: Vote, now: Millis) -> None:
    error, granted = _decide_vote(q, message, now)
    q.outbox.tell(Answer(request, VoteReply(error, q.hint, granted)))


def on_begin_epoch(q: Quorum, request: RequestToken, message: BeginEpoch, now: Millis) -> None:
    error = _decide_begin_epoch(q, message, now)
    q.outbox.tell(Answer(request, EpochReply(error, q.hint)))


def on_end_epoch(q: Quorum, request: RequestToken, message: EndEpoch, now: Millis) -> None:
    error = _decide_end_epoch(q, message, now)
    q.outbox.tell(Answer(request, EpochReply(error, q.hint)))


def _decide_vote(q: Quorum, message: Vote, now: Millis) -> tuple[ErrorCode, bool]:
    if message.epoch < q.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH, False
    if message.candidate.node_id == q.config.node_id:
        return ErrorCode.INVALID_REQUEST, False
    reach = LogEnd(message.last_epoch, message.end_offset)
    q.known_ends[message.candidate.node_id] = reach
    if message.epoch > q.epoch:
        detach(q, message.epoch, now)
        hurry_less(q, now)
    if not _is_me(q, message.voter):
        return ErrorCode.INVALID_VOTER_KEY, False
    if not q.config.can_vote or q.is_stopping:
        return ErrorCode.NONE, False
    is_log_enough = reach >= q.log.reach
    if message.pre_vote:
        return ErrorCode.NONE, is_log_enough and _may_grant_pre_vote(q)
    if not is_log_enough or not _may_vote_for(q, message.candidate):
        return ErrorCode.NONE, False
    if q.voted is None or isinstance(q.role, Prospective):
        q.voted = message.candidate
        detach(q, q.epoch, now)
    return ErrorCode.NONE, True


def _may_grant_pre_vote(q: Quorum) -> bool:
    match q.role:
        case Leader():
            return False
        case Follower() as follower:
            return not follower.has_fetched or follower.is_leader_gone
        case Unattached() | Prospective() | Candidate() | Resigned():
            return True
        case _:
            assert_never(q.role)


def _may_vote_for(q: Quorum, candidate: ReplicaKey) -> bool:
    if not isinstance(q.role, Unattached | Prospective) or q.leader_id != NO_NODE:
        return False
    return q.voted is None or q.voted == candidate


def _decide_begin_epoch(q: Quorum, message: BeginEpoch, now: Millis) -> ErrorCode:
    if message.epoch < q.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if not _is_me(q, message.voter):
        return ErrorCode.INVALID_VOTER_KEY
    if message.leader_id in (NO_NODE, q.config.node_id):
        return ErrorCode.INVALID_REQUEST
    if message.epoch == q.epoch and q.leader_id not in (NO_NODE, message.leader_id):
        return ErrorCode.INVALID_REQUEST  # two leaders of one epoch: not while votes are kept
    role = q.role
    if message.epoch > q.epoch or not isinstance(role, Follower) or role.is_leader_gone:
        follow(q, Hint(message.leader_id, message.epoch, message.endpoints), now)
    return ErrorCode.NONE


def _decide_end_epoch(q: Quorum, message: EndEpoch, now: Millis) -> ErrorCode:
    if message.epoch < q.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if message.leader_id == q.config.node_id:
        return ErrorCode.INVALID_REQUEST
    if message.epoch > q.epoch:
        detach(q, message.epoch, now)
    if q.leader_id not in (NO_NODE, message.leader_id):
        return ErrorCode.INVALID_REQUEST
    role = q.role
    if isinstance(role, Follower):
        role.is_leader_gone = True
    if q.is_voter and isinstance(role, Follower | Unattached):
        role.deadline = min(role.deadline, _turn_of_successor(q, message, now))
    return ErrorCode.NONE


def _turn_of_successor(q: Quorum, message: EndEpoch, now: Millis) -> Millis:
    """The first at once, each of the others twice as late as the one before it (KAFKA-15489)."""
    places = [place for place, key in enumerate(message.successors) if _is_me(q, key)]
    place = places[0] if places else len(message.successors)
    if place == 0:
        return now
    wait = min(q.config.rank_stride_ms << min(place - 1, 20), q.config.election_backoff_ms_max)
    return Millis(now + wait + q.entropy.below(q.config.rank_stride_ms // 2 + 1))


def _is_me(q: Quorum, key: ReplicaKey) -> bool:
    is_my_id = key.node_id in (NO_NODE, q.config.node_id)
    return is_my_id and key.directory_id in (ZERO_UUID, q.config.directory_id)


# answered


def on_vote_reply(q: Quorum, peer: NodeId, message: VoteReply, now: Millis) -> None:
    if observe(q, message.hint, now):
        return
    role = q.role
    if not isinstance(role, Prospective | Candidate):
        return
    role.votes[peer] = message.granted and message.error == ErrorCode.NONE
    role.ask_at.pop(peer, None)
    _count(q, role, now)


def _count(q: Quorum, role: Prospective | Candidate, now: Millis) -> None:
    """Win, lose or wait for more. Once somebody has refused, the dead count with the unwilling:

    of two survivors that refused each other neither should wait its time out for a third.
    """
    voters = q.voter_set.ids
    granted = sum(1 for node in voters if role.votes.get(node) is True)
    refused = sum(1 for node in voters if role.votes.get(node) is False)
    if refused:
        refused += sum(
            1 for node in role.ask_at if node in voters and q.connected.get(node) is False
        )
    if is_won(granted=granted, voters=len(voters)):
        if isinstance(role, Prospective):
            stand(q, now)
        else:
            lead(q, now)
    elif is_lost(refused=refused, voters=len(voters)):
        _lose(q, role, now)


def on_epoch_reply(q: Quorum, peer: NodeId, message: EpochReply, now: Millis) -> None:
    """To BeginEpoch or EndEpoch: news of a higher epoch, or the end of telling this peer."""
    if observe(q, message.hint, now):
        return
    if isinstance(q.role, Resigned):
        q.role.ask_at.pop(peer, None)
        end_epoch(q, q.role, now)


def _lose(q: Quorum, role: Prospective | Candidate, now: Millis) -> None:
    match role:
        case Candidate():
            role.ask_at.clear()
            role.deadline = min(role.deadline, Millis(turn(q, now) + backoff(q)))
        case Prospective():
            _fall_back(q, now)
        case _:
            assert_never(role)


def _fall_back(q: Quorum, now: Millis) -> None:
    """Nobody wants this Prospective: back to its leader, or wait and try again.

    Its leader's port may be closed; then it will say so at once and is not waited for again.
    """
    leader = q.leader_id
    wait_ms = backoff(q)
    losses = q.losses
    # Connections are kept to voters: of a leader that we do not know to be one nothing is known.
    may_be_there = leader not in q.other_voters or q.connected.get(leader, True)
    if leader not in (NO_NODE, q.config.node_id) and may_be_there:
        follow(q, Hint(leader, q.epoch, q.leader_endpoints), now)
        q.losses = losses
    else:
        detach(q, q.epoch, now, wait_ms=turn(q, now) - now + wait_ms)


# time and connections


def on_time(q: Quorum, now: Millis) -> None:
    """Do what is due in the states of an election."""
    role = q.role
    match role:
        case Unattached():
            if now >= role.deadline and q.is_voter and not q.is_stopping:
                prospect(q, now)
        case Prospective():
            if now >= role.deadline:
                _fall_back(q, now)
            else:
                ask_for_votes(q, role, now)
        case Candidate():
            if now >= role.deadline:
                prospect(q, now)
            else:
                ask_for_votes(q, role, now)
        case Resigned():
            if now < role.deadline:
                end_epoch(q, role, now)
            elif q.is_voter and not q.is_stopping:
                prospect(q, now)
            else:
                detach(q, q.epoch, now)
        case Follower():
            if now >= role.deadline:
                _stop_following(q, now)
        case Leader():
            pass  # replication.on_time
        case _:
            assert_never(role)


def on_peer_connected(q: Quorum, event: PeerConnected, now: Millis) -> None:
    q.connected[event.peer] = True
    role = q.role
    match role:
        case Prospective() | Candidate() | Resigned():
            if event.peer in role.ask_at:
                role.ask_at[event.peer] = now
        case Follower():
            if event.peer == q.leader_id and event.peer not in q.asks:
                role.ask_at = now
        case Leader():
            if event.peer in q.other_voters:
                begin_epoch_of(q, event.peer)
        case Unattached():
            pass
        case _:
            assert_never(role)
    hurry(q, now)


def on_peer_unreachable(q: Quorum, event: PeerUnreachable, now: Millis) -> None:
    q.connected[event.peer] = False
    q.known_ends.pop(event.peer, None)
    q.asks.pop(event.peer, None)
    role = q.role
    again = Millis(now + q.config.retry_backoff_ms)
    match role:
        case Prospective() | Candidate():
            if event.peer in role.ask_at:
                role.ask_at[event.peer] = again
                _count(q, role, now)
        case Resigned():
            if event.peer in role.ask_at and event.refused and q.is_stopping:
                del role.ask_at[event.peer]  # its process is gone: there is nobody to be told
                end_epoch(q, role, now)
            elif event.peer in role.ask_at:
                role.ask_at[event.peer] = again
        case Follower():
            if event.peer == q.leader_id:
                role.ask_at = again
                if event.refused:
                    on_leader_gone(q, role, now)
        case Unattached():
            ask_on(q, role, now)
        case Leader():
            pass
        case _:
            assert_never(role)


def ask_on(q: Quorum, role: Unattached, now: Millis) -> None:
    """Whoever an observer asked knows of no leader, or is not there: soon the next one is asked."""
    if not q.is_voter:
        role.deadline = min(role.deadline, Millis(now + q.config.ask_around_ms))


def on_leader_gone(q: Quorum, role: Follower, now: Millis) -> None:
    """The leader resigned or its process is gone: as good as a fetch time-out."""
    if role.is_leader_gone:
        return
    role.is_leader_gone = True
    role.deadline = min(role.deadline, turn(q, now) if q.is_voter else now)


def hurry_less(q: Quorum, now: Millis) -> None:
    """Somebody else is campaigning: leave it a turn before ours."""
    if isinstance(q.role, Unattached):
        q.role.deadline = q.election_deadline(now)
        hurry(q, now, strides=2)


def _stop_following(q: Quorum, now: Millis) -> None:
    if q.is_voter and not q.is_stopping:
        prospect(q, now)
    else:
        detach(q, q.epoch, now)
