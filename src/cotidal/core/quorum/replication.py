"""The leader's side of the metadata log. Pure. KIP-595, KIP-1166.

  MAJORITY_HOLDS_COMMITTED  the high watermark is the offset that a majority of the voters in force
                            has on disk (voters by their fetch offset, the leader by its own fsync),
                            adopted only above epoch_start: records of earlier epochs are committed
                            by a record of this one (Raft, figure 8).
  HIGH_WATERMARK_MONOTONIC  it never moves back.
  COMMITTED_NEVER_CUT       a leader does not cut its log.

A fetch is answered at once if it is refused, diverges, must be given a snapshot, finds records that
are durable here, or shows a high watermark behind ours (KIP-1166); otherwise it is parked until one
of these is so, or its time is over. Of one replica one fetch is parked: a newer one replaces it.

A leader that no majority has asked for 1.5 fetch time-outs resigns: it may be cut off, and its
clients should not wait for it. A single voter never does (KAFKA-16144).
"""

from __future__ import annotations

from cotidal.core.machine import ripens
from cotidal.core.quorum.dialogue import Fetch, FetchReply, RecordRange
from cotidal.core.quorum.effects import Answer, Committed
from cotidal.core.quorum.events import RequestToken
from cotidal.core.quorum.log_view import EpochEnd, SnapshotId
from cotidal.core.quorum.majority import committed_offset, last_heard_by_majority, majority_of
from cotidal.core.quorum.membership import on_commit_moved
from cotidal.core.quorum.snapshots import suggest_snapshot
from cotidal.core.quorum.states import Leader, Parked, Progress, Quorum
from cotidal.core.quorum.transitions import remind_of_epoch, resign
from cotidal.core.quorum.voters import ReplicaKey, key_of
from cotidal.errors import ErrorCode
from cotidal.invariants import HIGH_WATERMARK_MONOTONIC
from cotidal.values import LeaderEpoch, Millis, Offset


def refused_by_epoch(q: Quorum, epoch: LeaderEpoch) -> ErrorCode:
    """What every question to a leader is checked for first."""
    if epoch < q.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > q.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if not isinstance(q.role, Leader):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE


def on_fetch(q: Quorum, request: RequestToken, fetch: Fetch, now: Millis) -> None:
    error = refused_by_epoch(q, fetch.epoch)
    if error == ErrorCode.NONE and (fetch.offset < 0 or fetch.replica.node_id == q.config.node_id):
        error = ErrorCode.INVALID_REQUEST
    role = q.role
    if error != ErrorCode.NONE or not isinstance(role, Leader):
        q.outbox.tell(Answer(request, FetchReply(error, q.hint)))
        return
    progress = contact(q, role, fetch.replica, now)
    astray = _astray(q, fetch)
    if astray is not None:
        reply = FetchReply(ErrorCode.NONE, q.hint, q.high_watermark, q.log.start_offset)
        if isinstance(astray, SnapshotId):
            reply = reply._replace(snapshot=astray)
        else:
            reply = reply._replace(diverging=astray)
        q.outbox.tell_after_state(Answer(request, reply))
        return
    _record(q, progress, fetch, now)
    _replace_parked(q, role, request, fetch, now)
    advance_high_watermark(q, now)
    if isinstance(q.role, Leader):
        answer_parked(q, q.role, now)


def contact(q: Quorum, role: Leader, replica: ReplicaKey, now: Millis) -> Progress:
    """This replica follows us in this epoch: that alone keeps us leader."""
    key = q.voter_set.key_for(replica)
    progress = role.progress.get(key)
    if progress is None:
        progress = role.progress[key] = Progress(now)
    progress.contact_at = now
    progress.directory_id = replica.directory_id
    return progress


def on_durable(q: Quorum, now: Millis) -> None:
    """More of our own log is on disk."""
    advance_high_watermark(q, now)
    if isinstance(q.role, Leader):
        answer_parked(q, q.role, now)


def advance_high_watermark(q: Quorum, now: Millis) -> None:
    role = q.role
    if not isinstance(role, Leader):
        return
    held = committed_offset([end_of_voter(q, role, key_of(v)) for v in q.voter_set.voters])
    reached = min(held, q.outbox.durable_end)  # others have what we sent: only claims go further
    if reached <= max(role.epoch_start, q.high_watermark):
        return
    assert reached > q.high_watermark, HIGH_WATERMARK_MONOTONIC
    role.commits_own_epoch = True
    q.high_watermark = reached
    q.outbox.tell_now(Committed(reached))
    suggest_snapshot(q, now)
    answer_parked(q, role, now)
    if on_commit_moved(q, role):
        resign(q, now)


def end_of_voter(q: Quorum, role: Leader, key: ReplicaKey) -> Offset:
    if key.node_id == q.config.node_id and q.is_voter:
        return q.outbox.durable_end
    progress = role.progress.get(key)
    return Offset(-1) if progress is None else progress.end_offset


def answer_parked(q: Quorum, role: Leader, now: Millis) -> None:
    """Answer the fetches that have something to learn, or have waited long enough."""
    durable_end = q.outbox.durable_end
    for key, parked in list(role.parked.items()):
        has_records = parked.fetch.offset < durable_end
        is_behind = parked.fetch.high_watermark < q.high_watermark
        if has_records or is_behind or now >= parked.ripe_at:
            del role.parked[key]
            _answer(q, parked)


def on_time(q: Quorum, now: Millis) -> None:
    role = q.role
    if not isinstance(role, Leader):
        return
    answer_parked(q, role, now)
    resign_at = quorum_deadline(q, role)
    if resign_at is not None and now >= resign_at:
        resign(q, now)
        return
    if now >= role.begin_at:
        remind_of_epoch(q, role, now)
        _forget_observers(q, role, now)


def quorum_deadline(q: Quorum, role: Leader) -> Millis | None:
    """When this leader resigns unless a majority is heard from."""
    voters = q.voter_set.voters
    me = q.config.node_id
    contacts = [role.progress[key_of(v)].contact_at for v in voters if v.voter_id != me]
    needed = majority_of(len(voters)) - (1 if q.is_voter else 0)
    heard = last_heard_by_majority(contacts, others_needed=min(needed, len(contacts)))
    return None if heard is None else Millis(heard + q.config.fetch_timeout_ms * 3 // 2)


def _astray(q: Quorum, fetch: Fetch) -> SnapshotId | EpochEnd | None:
    """Where this replica has to go before it can append; None if it is on our line."""
    log, latest = q.log, q.latest_snapshot
    if latest is not None:
        is_cleaned = fetch.offset < log.start_offset or fetch.last_epoch < log.start_epoch
        is_other = fetch.offset == log.start_offset > 0 and fetch.last_epoch != log.start_epoch
        is_new = fetch.offset == 0 and latest.id.end_offset > 0
        if is_cleaned or is_other or is_new:
            return latest.id
    found = log.end_of(fetch.last_epoch)
    if found.epoch != fetch.last_epoch or found.end_offset < fetch.offset:
        return found
    return None


def _record(q: Quorum, progress: Progress, fetch: Fetch, now: Millis) -> None:
    """The replica holds everything below its fetch offset, as we do."""
    end = q.log.end_offset
    if fetch.offset >= end:
        progress.caught_up_at = now
    elif progress.fetched_at is not None and fetch.offset >= progress.end_seen:
        progress.caught_up_at = progress.fetched_at
    progress.end_offset = fetch.offset
    progress.end_seen = end
    progress.fetched_at = now


def _replace_parked(
    q: Quorum, role: Leader, request: RequestToken, fetch: Fetch, now: Millis
) -> None:
    key = q.voter_set.key_for(fetch.replica)
    before = role.parked.pop(key, None)
    if before is not None:
        _answer(q, before)
    wait_ms = max(0, fetch.max_wait_ms)
    role.parked[key] = Parked(request, fetch, Millis(now + wait_ms), ripens(now, wait_ms))


def _answer(q: Quorum, parked: Parked) -> None:
    offset, below = parked.fetch.offset, q.outbox.durable_end
    reply = FetchReply(
        ErrorCode.NONE,
        q.hint,
        q.high_watermark,
        q.log.start_offset,
        records=RecordRange(offset, below) if offset < below else None,
    )
    q.outbox.tell_after_state(Answer(parked.request, reply))


def _forget_observers(q: Quorum, role: Leader, now: Millis) -> None:
    voters = [key_of(voter) for voter in q.voter_set.voters]
    for key, progress in list(role.progress.items()):
        is_silent = now - progress.contact_at > q.config.observer_session_ms
        if is_silent and key not in voters and key not in role.parked:
            del role.progress[key]
