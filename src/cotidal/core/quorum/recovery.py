"""The first step of a quorum node's life: what the disk says. Pure. KIP-595.

    the file says                          becomes
    nothing, or an epoch below the log's   Unattached, in the log's epoch
    that this node led                     Resigned in that epoch, which it never leads again
    that it voted for itself               Candidate in that epoch, asking again
    that another one led                   Follower of that one
    anything else                          Unattached, its vote kept

An observer that led or stood stays out of elections: Unattached, its vote kept.

A snapshot that reaches beyond the log, or contradicts it, was being installed when the node died:
the install is done again. A log that starts below the snapshot it was cleaned to is taken as
cleaned.
"""

from __future__ import annotations

from cotidal.core.quorum.dialogue import Hint
from cotidal.core.quorum.effects import ForgetSnapshot, VotersChanged
from cotidal.core.quorum.events import LogFacts, SnapshotFacts, Started
from cotidal.core.quorum.log_view import LogView, SnapshotId
from cotidal.core.quorum.majority import is_won
from cotidal.core.quorum.proposals import tell_connections
from cotidal.core.quorum.snapshots import history_of, install
from cotidal.core.quorum.states import Leader, Quorum, Resigned
from cotidal.core.quorum.transitions import campaign, detach, follow, hurry, prospect
from cotidal.core.quorum.voters import ReplicaKey
from cotidal.invariants import SNAPSHOT_AT_LOG_START
from cotidal.messages.records.quorum import QuorumStateData
from cotidal.values import NO_NODE, LeaderEpoch, Millis, NodeId


def on_started(q: Quorum, event: Started, now: Millis) -> None:
    _take_log(q, event.log, event.snapshots, now)
    latest = q.voters.latest
    q.outbox.tell_now(VotersChanged(latest.voters, latest.kraft_version))
    tell_connections(q)
    stored = event.stored
    if stored is None or stored.leader_epoch < q.log.last_epoch:
        q.epoch = q.log.last_epoch
        detach(q, q.epoch, now)
    else:
        _take_state(q, stored, now)
    is_alone = q.is_voter and is_won(granted=1, voters=len(q.voter_set.voters))
    if is_alone and not isinstance(q.role, Leader) and q.installing is None:
        prospect(q, now)  # the only voter is a majority: no reason to wait


def _take_log(
    q: Quorum, facts: LogFacts, snapshots: tuple[SnapshotFacts, ...], now: Millis
) -> None:
    q.snapshot_at = now
    q.voters = history_of(snapshots, q.config.voters, kraft_version=0)
    q.log = LogView(start_offset=facts.start_offset, end_offset=facts.end_offset, line=facts.epochs)
    q.outbox.durable_end = facts.end_offset
    q.bytes_since_snapshot = facts.size_bytes
    _take_snapshots(q, snapshots)
    latest = q.latest_snapshot
    assert facts.start_offset == 0 or latest is not None, SNAPSHOT_AT_LOG_START
    if latest is not None and _is_half_installed(q.log, latest.id):
        install(q, latest.id)
        return
    if facts.start_offset > 0:
        first = q.snapshots[0].id
        q.log.cut_below(first.end_offset)
        q.log.start_epoch = first.epoch
        q.log.line = [entry for entry in q.log.line if entry.epoch > first.epoch]
    for offset, record in facts.control:
        if offset > q.voters.latest.offset:
            q.voters.append(offset, record)


def _take_snapshots(q: Quorum, snapshots: tuple[SnapshotFacts, ...]) -> None:
    for facts in snapshots:
        if facts.id.end_offset == 0:
            continue  # what formatting left; its voters have been taken
        q.high_watermark = facts.id.end_offset
        if facts.id.end_offset >= q.log.start_offset:
            q.snapshots.append(facts)
        else:
            q.outbox.tell_now(ForgetSnapshot(facts.id))
    for facts in q.snapshots[:-2]:
        q.outbox.tell_now(ForgetSnapshot(facts.id))
    del q.snapshots[:-2]


def _is_half_installed(log: LogView, snapshot: SnapshotId) -> bool:
    if log.end_offset < snapshot.end_offset:
        return True
    is_inside = log.start_offset < snapshot.end_offset
    return is_inside and log.epoch_before(snapshot.end_offset) != snapshot.epoch


def _take_state(q: Quorum, stored: QuorumStateData, now: Millis) -> None:
    q.saved = stored
    q.epoch = LeaderEpoch(stored.leader_epoch)
    q.leader_id = NodeId(stored.leader_id)
    if stored.voted_id != NO_NODE:
        q.voted = ReplicaKey(NodeId(stored.voted_id), stored.voted_directory_id)
    if q.leader_id == q.config.node_id:
        deadline = q.election_deadline(now)
        q.role = Resigned(deadline, successors=(), is_quick=True)
        hurry(q, now)
    elif q.voter_set.find(q.leader_id) is not None:
        follow(q, Hint(q.leader_id, q.epoch, ()), now)
    elif q.voted == q.me and q.is_voter:
        campaign(q, now)
    else:
        detach(q, q.epoch, now)
