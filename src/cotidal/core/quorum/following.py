"""The follower's side: fetching, truncating, loading snapshots. Pure. KIP-595, KIP-630.

  COMMITTED_NEVER_CUT   a leader that wants records below our high watermark cut has broken the
                        protocol, or we have: Fatal.
  DURABLE_BEFORE_TOLD   what was fetched is on disk before the next fetch, whose offset says so.

One question to the leader is open at a time: a fetch, a chunk of a snapshot, an update of our own
endpoints, or the wish to vote. Its answer is taken only if nothing has moved meanwhile: another
epoch or state voids all open questions. Of the records those are appended that follow our end
without gap, in ascending epochs, none above ours (KAFKA-18723).

The high watermark is the leader's, as far as our own disk reaches.

An observer without leader asks one node after the other who leads; a voter hears of it from its
PreVotes or from BeginEpoch.
"""

from __future__ import annotations

from cotidal.core.quorum.dialogue import (
    AddVoter,
    ChunkReply,
    Fetch,
    FetchChunk,
    FetchedBatch,
    FetchedChunk,
    FetchedRecords,
    FetchReply,
    MemberReply,
    RemoveVoter,
    UpdateVoter,
)
from cotidal.core.quorum.effects import AppendFetched, Committed, Fatal, KeepChunk, TruncateTo
from cotidal.core.quorum.election import ask_on, on_leader_gone
from cotidal.core.quorum.log_view import EpochEnd, SnapshotId
from cotidal.core.quorum.proposals import on_voters_changed
from cotidal.core.quorum.snapshots import install, suggest_snapshot
from cotidal.core.quorum.states import Follower, Loading, Quorum, Unattached
from cotidal.core.quorum.transitions import ask, observe
from cotidal.core.quorum.voters import key_of
from cotidal.errors import ErrorCode
from cotidal.invariants import COMMITTED_NEVER_CUT, HIGH_WATERMARK_MONOTONIC
from cotidal.values import Millis, NodeId, Offset


def on_time(q: Quorum, now: Millis) -> None:
    """Ask what is due to be asked."""
    role = q.role
    if isinstance(role, Follower) and now >= role.ask_at and q.installing is None:
        role.ask_at = Millis(now + q.config.fetch_wait_ms + q.config.request_timeout_ms)
        _ask_leader(q, role, now)
    elif isinstance(role, Unattached) and not q.is_voter and now >= role.deadline:
        _ask_around(q, role, now)


def on_fetch_reply(q: Quorum, peer: NodeId, message: FetchReply, now: Millis) -> None:
    if observe(q, message.hint, now):
        return
    role = q.role
    if isinstance(role, Unattached):
        ask_on(q, role, now)
    if not isinstance(role, Follower) or peer != q.leader_id:
        return
    if message.error != ErrorCode.NONE or message.hint.epoch != q.epoch:
        _on_refused(q, role, message.error, now)
        return
    _heard_from_leader(q, role, now)
    if message.diverging is not None:
        _truncate(q, message.diverging, now)
    elif message.snapshot is not None:
        _begin_loading(q, role, message.snapshot)
    else:
        role.leader_high_watermark = message.high_watermark
        if isinstance(message.records, FetchedRecords):
            _append(q, message.records, now)
        advance_high_watermark(q, now)


def on_chunk_reply(q: Quorum, peer: NodeId, message: ChunkReply, now: Millis) -> None:
    if observe(q, message.hint, now):
        return
    role = q.role
    if not isinstance(role, Follower) or peer != q.leader_id or role.loading is None:
        return
    loading = role.loading
    if message.error != ErrorCode.NONE or message.snapshot != loading.id:
        role.loading = None  # the leader has a newer one: fetching again will tell
        _on_refused(q, role, message.error, now)
        return
    _heard_from_leader(q, role, now)
    chunk = message.chunk
    if not isinstance(chunk, FetchedChunk) or message.position != loading.position:
        return
    q.outbox.tell_now(KeepChunk(loading.id, loading.position, chunk.handle))
    loading.position += chunk.size_bytes
    if loading.position >= message.size_bytes:
        role.loading = None
        install(q, loading.id)


def on_update_reply(q: Quorum, peer: NodeId, message: MemberReply, now: Millis) -> None:
    if observe(q, message.hint, now):
        return
    if isinstance(q.role, Follower) and peer == q.leader_id:
        q.role.ask_at = now


def advance_high_watermark(q: Quorum, now: Millis) -> None:
    role = q.role
    if not isinstance(role, Follower) or q.installing is not None:
        return
    reached = min(role.leader_high_watermark, q.outbox.durable_end)
    if reached <= q.high_watermark:
        return
    assert reached > q.high_watermark, HIGH_WATERMARK_MONOTONIC
    q.high_watermark = reached
    q.outbox.tell_now(Committed(reached))
    suggest_snapshot(q, now)


def _ask_leader(q: Quorum, role: Follower, now: Millis) -> None:
    if role.loading is not None:
        loading = role.loading
        size = q.config.chunk_bytes
        ask(q, q.leader_id, FetchChunk(q.me, q.epoch, loading.id, loading.position, size))
    elif _should_join(q, role, now):
        role.update_at = Millis(now + q.config.fetch_timeout_ms)
        ask(q, q.leader_id, _joining(q))
    elif _should_update(q, role, now):
        role.update_at = Millis(now + q.config.fetch_timeout_ms)
        timeout_ms = q.config.request_timeout_ms
        config = q.config
        update = UpdateVoter(q.epoch, q.me, config.endpoints, config.kraft_versions, timeout_ms)
        ask(q, q.leader_id, update)
    else:
        ask(q, q.leader_id, _fetch(q, q.config.fetch_wait_ms))


def _should_join(q: Quorum, role: Follower, now: Millis) -> bool:
    """We may vote, want to, know all that is committed, and do not yet."""
    if not (q.config.joins and q.config.can_vote) or q.is_voter or not role.has_fetched:
        return False
    if not q.voters.latest.can_change or (role.update_at is not None and now < role.update_at):
        return False
    return q.high_watermark >= role.leader_high_watermark >= 0


def _joining(q: Quorum) -> AddVoter | RemoveVoter:
    """Our old disk, if it still votes, goes first."""
    timeout_ms = q.config.request_timeout_ms
    before = q.voter_set.find(q.config.node_id)
    if before is not None:
        return RemoveVoter(key_of(before), timeout_ms)
    config = q.config
    return AddVoter(
        q.me, config.endpoints, config.kraft_versions, timeout_ms, ack_when_committed=False
    )


def _should_update(q: Quorum, role: Follower, now: Millis) -> bool:
    """The voters' record has other endpoints or versions for us than we have."""
    voter = q.voter_set.find(q.config.node_id)
    if voter is None or not q.is_voter or not role.has_fetched:
        return False
    if not q.voters.latest.can_change or (role.update_at is not None and now < role.update_at):
        return False
    config = q.config
    return voter.endpoints != config.endpoints or (
        voter.kraft_version_feature != config.kraft_versions
    )


def _ask_around(q: Quorum, role: Unattached, now: Millis) -> None:
    """An observer asks whomever it knows of; every answer says who leads."""
    peers = [*q.other_voters]
    peers += [node for node, _ in q.config.bootstrap if node not in peers]
    role.deadline = Millis(now + q.config.request_timeout_ms)
    if peers:
        peer = peers[role.next_peer % len(peers)]
        role.next_peer += 1
        ask(q, peer, _fetch(q, 0))


def _fetch(q: Quorum, max_wait_ms: int) -> Fetch:
    log = q.log
    return Fetch(q.me, q.epoch, log.end_offset, log.last_epoch, q.high_watermark, max_wait_ms)


def _on_refused(q: Quorum, role: Follower, error: ErrorCode, now: Millis) -> None:
    role.ask_at = Millis(now + q.config.retry_backoff_ms)
    if error == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        on_leader_gone(q, role, now)  # the leader of this very epoch: it has resigned


def _heard_from_leader(q: Quorum, role: Follower, now: Millis) -> None:
    role.has_fetched = True
    role.is_leader_gone = False
    role.deadline = Millis(now + q.config.fetch_timeout_ms)
    role.ask_at = now
    q.losses = 0


def _append(q: Quorum, records: FetchedRecords, now: Millis) -> None:
    """Append what follows our log; a peer's claims are checked, never asserted."""
    base_offset = q.log.end_offset
    changed = False
    for batch in records.batches:
        if not _follows(q, batch):
            break
        q.log.append(
            base_offset=batch.base_offset, next_offset=batch.next_offset, epoch=batch.epoch
        )
        q.bytes_since_snapshot += batch.size_bytes
        for offset, record in batch.control:
            changed = q.voters.append(offset, record) or changed
    if q.log.end_offset > base_offset:
        q.write(AppendFetched(base_offset, q.log.end_offset, records.handle))
    if changed:
        on_voters_changed(q, now)


def _follows(q: Quorum, batch: FetchedBatch) -> bool:
    is_next = batch.base_offset == q.log.end_offset < batch.next_offset
    return is_next and q.log.last_epoch <= batch.epoch <= q.epoch


def _truncate(q: Quorum, leader: EpochEnd, now: Millis) -> None:
    offset = q.log.cut_for(leader)
    if offset < q.high_watermark or offset >= q.log.end_offset:
        fail(
            q,
            f"the leader of epoch {q.epoch} says that its epoch {leader.epoch} ended at "
            f"{leader.end_offset}: cutting our log of {q.log.end_offset} to {offset} would not "
            f"keep the high watermark {q.high_watermark} ({COMMITTED_NEVER_CUT})",
        )
        return
    q.write(TruncateTo(offset))
    q.log.cut_from(offset)
    q.outbox.cut_from(offset)
    if q.voters.cut_from(offset):
        on_voters_changed(q, now)


def _begin_loading(q: Quorum, role: Follower, snapshot: SnapshotId) -> None:
    if snapshot.end_offset < max(q.high_watermark, Offset(1)):
        fail(
            q,
            f"the leader of epoch {q.epoch} has us load a snapshot that ends at "
            f"{snapshot.end_offset}, below the high watermark {q.high_watermark} "
            f"({COMMITTED_NEVER_CUT})",
        )
        return
    role.loading = Loading(snapshot)


def fail(q: Quorum, sentence: str) -> None:
    q.has_failed = True
    q.outbox.gathering.clear()  # nothing more is written
    q.outbox.tell_now(Fatal(sentence))
