"""Snapshots of the metadata log. Pure. KIP-630.

  SNAPSHOT_AT_LOG_START  a log that starts above 0 starts where the older kept snapshot ends.
  SNAPSHOT_IS_COMMITTED  it holds only committed records.

The machine above writes snapshots when it is told that it is time; the newest two are kept, and the
log from the older one on: a follower that is a little behind still finds records, and one that is
in the middle of the older snapshot can finish. Followers that need more are given the newest.

A snapshot is fetched in chunks from the leader, then installed in one durable write that replaces
the log; its voters are known when that is done.
"""

from __future__ import annotations

from cotidal.core.quorum.dialogue import ChunkRange, ChunkReply, FetchChunk
from cotidal.core.quorum.effects import (
    Answer,
    CleanTo,
    ForgetSnapshot,
    InstallSnapshot,
    LoadSnapshot,
    TakeSnapshot,
)
from cotidal.core.quorum.events import RequestToken, SnapshotFacts, SnapshotWritten
from cotidal.core.quorum.log_view import SnapshotId
from cotidal.core.quorum.proposals import on_voters_changed
from cotidal.core.quorum.states import Candidate, Prospective, Quorum
from cotidal.core.quorum.transitions import detach
from cotidal.core.quorum.voters import VoterHistory, VoterSet
from cotidal.errors import ErrorCode
from cotidal.invariants import SNAPSHOT_AT_LOG_START, SNAPSHOT_IS_COMMITTED
from cotidal.values import Millis, Offset


def answer_chunk(q: Quorum, request: RequestToken, asked: FetchChunk) -> None:
    """The asker's epoch has been checked."""
    found = next((facts for facts in q.snapshots if facts.id == asked.snapshot), None)
    if found is None:
        reply = ChunkReply(ErrorCode.SNAPSHOT_NOT_FOUND, q.hint, asked.snapshot)
    elif not 0 <= asked.position < found.size_bytes:
        reply = ChunkReply(ErrorCode.POSITION_OUT_OF_RANGE, q.hint, asked.snapshot)
    else:
        reply = ChunkReply(
            ErrorCode.NONE,
            q.hint,
            asked.snapshot,
            found.size_bytes,
            asked.position,
            ChunkRange(asked.position, max(1, asked.max_bytes)),
        )
    q.outbox.tell_after_state(Answer(request, reply))


def suggest_snapshot(q: Quorum, now: Millis) -> None:
    """Say so, once, when it is time for a snapshot of what is committed."""
    interval_ms = q.config.snapshot_after_ms
    is_time = 0 < interval_ms <= now - q.snapshot_at
    is_size = q.bytes_since_snapshot >= q.config.snapshot_after_bytes
    if q.is_snapshot_asked or not (is_time or is_size):
        return
    latest = q.latest_snapshot
    if latest is not None and latest.id.end_offset >= q.high_watermark:
        return
    q.is_snapshot_asked = True
    epoch = q.log.epoch_before(q.high_watermark)
    q.outbox.tell_now(TakeSnapshot(SnapshotId(q.high_watermark, epoch)))


def on_snapshot_written(q: Quorum, event: SnapshotWritten, now: Millis) -> None:
    facts = event.snapshot
    q.is_snapshot_asked = False
    latest = q.latest_snapshot
    if latest is not None and facts.id.end_offset <= latest.id.end_offset:
        if all(facts.id != kept.id for kept in q.snapshots):  # the very same may have been fetched
            q.outbox.tell_now(ForgetSnapshot(facts.id))  # a fetched one overtook it
        return
    assert facts.id.end_offset <= q.high_watermark, SNAPSHOT_IS_COMMITTED
    q.bytes_since_snapshot = 0
    q.snapshot_at = now
    q.snapshots.append(facts)
    if len(q.snapshots) > 1:
        _clean(q, keep_from=q.snapshots[-2])


def install(q: Quorum, snapshot: SnapshotId) -> None:
    """Every chunk is here: replace the log by the snapshot."""
    q.write(InstallSnapshot(snapshot))
    q.log.replace(snapshot)
    q.outbox.cut_from(snapshot.end_offset)
    q.installing = snapshot
    q.high_watermark = max(q.high_watermark, snapshot.end_offset)
    for facts in q.snapshots:
        if facts.id != snapshot:
            q.outbox.tell(ForgetSnapshot(facts.id))
    q.snapshots = [SnapshotFacts(snapshot, 0)]


def on_installed(q: Quorum, facts: SnapshotFacts, now: Millis) -> None:
    """The snapshot is durable, and what it says of voters is known."""
    if q.installing != facts.id:
        return
    q.installing = None
    q.snapshots = [facts]
    q.bytes_since_snapshot = 0
    q.snapshot_at = now
    before = q.voters.latest
    after = [entry for entry in q.voters.entries if entry.offset >= facts.id.end_offset]
    q.voters = history_of((facts,), before.voters, kraft_version=before.kraft_version)
    q.voters.entries += after  # appended by this node, if it leads already
    q.outbox.tell_now(LoadSnapshot(facts.id))  # before anything that follows it is committed
    if q.voters.latest[1:] != before[1:]:
        on_voters_changed(q, now)
        if isinstance(q.role, Prospective | Candidate):
            detach(q, q.epoch, now)  # it has asked those who voted before


def history_of(
    snapshots: tuple[SnapshotFacts, ...], voters: VoterSet, *, kraft_version: int
) -> VoterHistory:
    """Who votes before the first record of the log: the newest snapshot that says so."""
    for facts in reversed(snapshots):
        if facts.voters is not None:
            is_formatted = facts.id.end_offset == 0
            return VoterHistory(
                VoterSet(facts.voters.voters),
                kraft_version=facts.kraft_version,
                offset=Offset(-1 if is_formatted else facts.id.end_offset - 1),
            )
    return VoterHistory(voters, kraft_version=kraft_version)


def check_snapshots(q: Quorum) -> None:
    assert len(q.snapshots) <= 2
    if q.log.start_offset > 0:
        ends = [facts.id.end_offset for facts in q.snapshots]
        assert q.log.start_offset in ends, SNAPSHOT_AT_LOG_START


def _clean(q: Quorum, *, keep_from: SnapshotFacts) -> None:
    for facts in q.snapshots[:-2]:
        q.outbox.tell(ForgetSnapshot(facts.id))
    del q.snapshots[:-2]
    start = keep_from.id.end_offset
    if start > q.log.start_offset:
        q.log.cut_below(start)
        q.voters.cut_below(start)
        q.write(CleanTo(start))
