"""Adding, removing and updating voters, one at a time, and making them a record. Pure. KIP-853.

  ONE_CHANGE_OF_VOTERS  a change begins only when the one before it is committed: then any majority
                        before it and any majority after it share a voter.

Refused, in this order:
    epoch or leadership                                             6, 74, 75
    another change under way, or the leader has committed nothing
    in its epoch, or the last VotersRecord is not committed         REQUEST_TIMED_OUT
    kraft.version 0: voters are static (but for raising it)         UNSUPPORTED_VERSION
    add     the id votes already, whatever its directory            DUPLICATE_VOTER
            it does not support the kraft.version in force          INVALID_REQUEST
            it has not caught up with the log lately                REQUEST_TIMED_OUT
    remove  no voter of that id and directory                       VOTER_NOT_FOUND
            it is the only voter                                    INVALID_REQUEST
    update  no voter of that id and directory                       VOTER_NOT_FOUND
            it does not support the kraft.version in force          INVALID_REQUEST
    raise   kraft.version would go down, or a voter does not know
            the new one                                             INVALID_UPDATE_VERSION
            a voter has not fetched in this epoch, so that it is
            not known on which disk it votes                        REQUEST_TIMED_OUT

The new voters are in force when their record is appended, and taken back if it is truncated. The
answer comes when it is committed. A leader that removes itself leads, uncounted, until then, and
resigns; it is served as an observer afterwards, as any removed voter is.

kraft.version 1 and the first VotersRecord stand in one batch: nobody ever has one without the
other. The same nodes vote before and after, so that any two majorities share a voter here too; from
then on each of them is the disk that it fetched to, and a wiped one no longer votes.

Not done: a leader whose own listeners are others than its record has does not update itself.
"""

from __future__ import annotations

from typing import assert_never

from cotidal.core.quorum.dialogue import (
    AddVoter,
    MemberChange,
    MemberReply,
    RaiseVersion,
    RemoveVoter,
    UpdateVoter,
)
from cotidal.core.quorum.effects import Answer
from cotidal.core.quorum.events import RequestToken
from cotidal.core.quorum.proposals import append_control
from cotidal.core.quorum.states import Changing, Leader, Quorum
from cotidal.core.quorum.voters import ControlRecord, ReplicaKey, VoterSet, key_of
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.quorum import (
    KRaftVersionFeature,
    KRaftVersionRecord,
    VotersRecordVoter,
)
from cotidal.values import ZERO_UUID, Millis, NodeId, Offset


def on_member_change(
    q: Quorum, role: Leader, request: RequestToken, change: MemberChange, now: Millis
) -> None:
    """Epoch and leadership have been checked."""
    decided = _refused_now(q, role, change) or _decide(q, role, change, now)
    if isinstance(decided, Refusal):
        reply = MemberReply(decided.error, decided.text, q.hint)
        q.outbox.tell(Answer(request, reply))
        return
    if not decided:
        q.outbox.tell(Answer(request, MemberReply(ErrorCode.NONE, "", q.hint)))
        return
    first = append_control(q, decided, now)
    last = Offset(first + len(decided) - 1)
    deadline = Millis(now + max(0, change.timeout_ms))
    role.changing = Changing(request, change, last, q.outbox.asked, deadline)


def on_commit_moved(q: Quorum, role: Leader) -> bool:
    """The high watermark moved; True if this leader is no voter any more and has to go."""
    changing = role.changing
    if changing is not None and changing.offset < q.high_watermark:
        role.changing = None
        if not changing.is_answered:
            _answer(q, changing, ErrorCode.NONE, "")
    is_committed = q.voters.latest.offset < q.high_watermark
    return is_committed and role.commits_own_epoch and not q.is_voter


def on_change_durable(q: Quorum, role: Leader) -> None:
    """Some are content when the record is on the leader's disk (AddRaftVoter, AckWhenCommitted)."""
    changing = role.changing
    if changing is None or changing.is_answered or q.outbox.durable < changing.write_number:
        return
    if isinstance(changing.change, AddVoter) and not changing.change.ack_when_committed:
        _answer(q, changing, ErrorCode.NONE, "")
        role.changing = changing._replace(is_answered=True)


def on_time(q: Quorum, role: Leader, now: Millis) -> None:
    """An answer that is late is given; the change itself goes on and blocks others."""
    changing = role.changing
    if changing is not None and not changing.is_answered and now >= changing.deadline:
        text = "the change of voters was not committed in time; it may still be"
        _answer(q, changing, ErrorCode.REQUEST_TIMED_OUT, text)
        role.changing = changing._replace(is_answered=True)


def _refused_now(q: Quorum, role: Leader, change: MemberChange) -> Refusal | None:
    if role.changing is not None:
        return Refusal(ErrorCode.REQUEST_TIMED_OUT, "another change of the voters is under way")
    if not role.commits_own_epoch:
        sentence = "the leader has not committed a record of its own epoch yet"
        return Refusal(ErrorCode.REQUEST_TIMED_OUT, sentence)
    latest = q.voters.latest
    if latest.offset >= q.high_watermark:
        sentence = f"the voters at offset {latest.offset} are not committed yet"
        return Refusal(ErrorCode.REQUEST_TIMED_OUT, sentence)
    if not latest.can_change and not isinstance(change, RaiseVersion):
        sentence = f"kraft.version is {latest.kraft_version}: the voters are static"
        return Refusal(ErrorCode.UNSUPPORTED_VERSION, sentence)
    return None


def _decide(
    q: Quorum, role: Leader, change: MemberChange, now: Millis
) -> tuple[ControlRecord, ...] | Refusal:
    """The records to append; none where everything is as it is wanted."""
    match change:
        case AddVoter():
            decided = _decide_add(q, role, change, now)
        case RemoveVoter():
            decided = _decide_remove(q, change)
        case UpdateVoter():
            decided = _decide_update(q, change)
        case RaiseVersion():
            return _decide_raise(q, role, change)
        case _:
            assert_never(change)
    return decided if isinstance(decided, Refusal) else (decided.record(),)


def _decide_add(q: Quorum, role: Leader, change: AddVoter, now: Millis) -> VoterSet | Refusal:
    node = change.key.node_id
    if q.voter_set.find(node) is not None:
        return Refusal(ErrorCode.DUPLICATE_VOTER, f"node {node} is a voter already")
    if not _supports(q, change.kraft_versions):
        return _unsupported(q, node, change.kraft_versions)
    progress = role.progress.get(change.key)
    if progress is None or progress.caught_up_at is None:
        sentence = f"node {node} has not caught up with the metadata log in this epoch"
        return Refusal(ErrorCode.REQUEST_TIMED_OUT, sentence)
    since_ms = now - progress.caught_up_at
    if since_ms > q.config.caught_up_within_ms:
        sentence = f"node {node} has not caught up with the metadata log for {since_ms} ms"
        return Refusal(ErrorCode.REQUEST_TIMED_OUT, sentence)
    progress.contact_at = now
    return q.voter_set.with_voter(_voter(change.key, change))


def _decide_remove(q: Quorum, change: RemoveVoter) -> VoterSet | Refusal:
    if change.key not in [key_of(voter) for voter in q.voter_set.voters]:
        return _not_found(change.key)
    remaining = q.voter_set.without(change.key)
    if not remaining.voters:
        sentence = f"node {change.key.node_id} is the only voter"
        return Refusal(ErrorCode.INVALID_REQUEST, sentence)
    return remaining


def _decide_update(q: Quorum, change: UpdateVoter) -> VoterSet | Refusal:
    if change.key not in [key_of(voter) for voter in q.voter_set.voters]:
        return _not_found(change.key)
    if not _supports(q, change.kraft_versions):
        return _unsupported(q, change.key.node_id, change.kraft_versions)
    return q.voter_set.with_voter(_voter(change.key, change))


def _decide_raise(
    q: Quorum, role: Leader, change: RaiseVersion
) -> tuple[ControlRecord, ...] | Refusal:
    level, in_force = change.kraft_version, q.voters.latest.kraft_version
    if level == in_force:
        return ()
    if level < in_force:
        return _no_level(level, f"it is at {in_force}, and never goes down")
    supported = dict(change.supported) | {q.config.node_id: q.config.kraft_versions}
    named: list[VotersRecordVoter] = []
    for voter in q.voter_set.voters:
        node = NodeId(voter.voter_id)
        versions = supported.get(node)
        if versions is None:
            return _no_level(level, f"node {node} has not said what it supports")
        if not versions.min_supported_version <= level <= versions.max_supported_version:
            return _no_level(level, f"node {node} supports {versions[0]} to {versions[1]}")
        directory, endpoints = q.me.directory_id, q.config.endpoints
        if node != q.config.node_id:
            progress = role.progress.get(key_of(voter))
            directory = ZERO_UUID if progress is None else progress.directory_id
            endpoints = voter.endpoints
        if directory == ZERO_UUID:
            sentence = f"node {node} has not fetched from this leader yet: its disk is not known"
            return Refusal(ErrorCode.REQUEST_TIMED_OUT, sentence)
        named.append(VotersRecordVoter(node, directory, endpoints, versions))
    if change.validate_only:
        return ()
    return KRaftVersionRecord(version=0, kraft_version=level), VoterSet(tuple(named)).record()


def _no_level(level: int, sentence: str) -> Refusal:
    return Refusal(
        ErrorCode.INVALID_UPDATE_VERSION, f"kraft.version cannot be set to {level}: {sentence}"
    )


def _supports(q: Quorum, versions: KRaftVersionFeature) -> bool:
    in_force = q.voters.latest.kraft_version
    return versions.min_supported_version <= in_force <= versions.max_supported_version


def _unsupported(q: Quorum, node: NodeId, versions: KRaftVersionFeature) -> Refusal:
    least, most = versions
    sentence = f"node {node} supports kraft.version {least} to {most}"
    return Refusal(ErrorCode.INVALID_REQUEST, f"{sentence}, not {q.voters.latest.kraft_version}")


def _not_found(key: ReplicaKey) -> Refusal:
    sentence = f"node {key.node_id} with that directory is no voter"
    return Refusal(ErrorCode.VOTER_NOT_FOUND, sentence)


def _voter(key: ReplicaKey, change: AddVoter | UpdateVoter) -> VotersRecordVoter:
    return VotersRecordVoter(key.node_id, key.directory_id, change.endpoints, change.kraft_versions)


def _answer(q: Quorum, changing: Changing, error: ErrorCode, text: str) -> None:
    q.outbox.tell(Answer(changing.request, MemberReply(error, text, q.hint)))
