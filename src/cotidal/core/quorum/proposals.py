"""Appending as leader. Pure.

  OFFSETS_CONTIGUOUS  a batch gets the end of the log as its base offset.

The records are in the log view at once, on disk after the next Persist, committed after a majority
has fetched beyond them. Voters and kraft.version change here, at the append (KIP-853).
"""

from __future__ import annotations

from cotidal.core.quorum.effects import (
    AppendControl,
    AppendOwn,
    KeepConnected,
    ProposalPlaced,
    ProposalRefused,
    VotersChanged,
)
from cotidal.core.quorum.events import ProposalMade
from cotidal.core.quorum.states import Leader, Progress, Quorum
from cotidal.core.quorum.voters import ControlRecord, ReplicaKey, key_of
from cotidal.errors import ErrorCode
from cotidal.values import ZERO_UUID, Millis, Offset


def on_proposal_made(q: Quorum, event: ProposalMade) -> None:
    if not isinstance(q.role, Leader) or event.epoch != q.epoch:
        q.outbox.tell_now(ProposalRefused(event.handle, ErrorCode.NOT_LEADER_OR_FOLLOWER))
        return
    if event.record_count <= 0:
        q.outbox.tell_now(ProposalRefused(event.handle, ErrorCode.INVALID_REQUEST))
        return
    base_offset = q.log.end_offset
    q.write(AppendOwn(base_offset, q.epoch, event.handle))
    _grow(q, event.record_count, event.size_bytes)
    q.outbox.tell_now(ProposalPlaced(event.handle, base_offset, q.epoch))


def append_control(q: Quorum, records: tuple[ControlRecord, ...], now: Millis) -> Offset:
    """Append these as one batch; returns the offset of the first."""
    base_offset = q.log.end_offset
    q.write(AppendControl(base_offset, q.epoch, records))
    _grow(q, len(records), 0)
    changed = False
    for delta, record in enumerate(records):
        changed = q.voters.append(Offset(base_offset + delta), record) or changed
    if changed:
        on_voters_changed(q, now)
    return base_offset


def on_voters_changed(q: Quorum, now: Millis) -> None:
    """Other voters are in force than before, by append, truncation or snapshot."""
    latest = q.voters.latest
    q.outbox.tell(VotersChanged(latest.voters, latest.kraft_version))
    tell_connections(q)
    if isinstance(q.role, Leader):
        await_voters(q, q.role, now)


def tell_connections(q: Quorum) -> None:
    voters = q.voter_set
    peers = tuple((node, voters.endpoints_of(node)) for node in q.other_voters)
    q.outbox.tell_now(KeepConnected(peers))


def await_voters(q: Quorum, role: Leader, now: Millis) -> None:
    """Each voter gets its Progress; its time for the check of the quorum begins when it votes."""
    for voter in q.voter_set.voters:
        key = key_of(voter)
        if voter.voter_id != q.config.node_id and key not in role.progress:
            # The same replica, if its directory was not known and now is.
            nameless = role.progress.pop(ReplicaKey(key.node_id, ZERO_UUID), None)
            is_same = nameless is not None and nameless.directory_id == key.directory_id
            role.progress[key] = nameless if nameless is not None and is_same else Progress(now)


def _grow(q: Quorum, record_count: int, size_bytes: int) -> None:
    base_offset = q.log.end_offset
    q.log.append(
        base_offset=base_offset, next_offset=Offset(base_offset + record_count), epoch=q.epoch
    )
    q.bytes_since_snapshot += size_bytes
