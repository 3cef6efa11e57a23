"""Snapshots of the metadata log, as a node takes and loads them. Pure. KIP-630.

    taken    the committed image becomes records, at the end of a committed batch; the quorum's own
             records (kraft.version, voters) are those in force there
    loaded   the records become an image that takes the place of the committed one

When it is time for one, which are kept, and who is given one: core.quorum.snapshots.
"""

from __future__ import annotations

from typing import Any, cast

from cotidal.core.cluster.image import Image, MetadataRecord
from cotidal.core.quorum import events as qev
from cotidal.core.quorum.log_view import SnapshotId
from cotidal.messages.records.quorum import (
    KRaftVersionRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from cotidal.node.effects import WriteSnapshot
from cotidal.node.events import MetadataSnapshot
from cotidal.node.state import NodeState
from cotidal.values import NO_TIMESTAMP, WallMillis


def take(state: NodeState) -> None:
    """Sum up what has been applied: the end of a batch, whatever the high watermark says."""
    duty = state.quorum
    q = duty.machine.state
    id_ = SnapshotId(duty.applied, q.log.epoch_before(duty.applied))
    in_force = q.voters.before(duty.applied)
    voters = in_force.voters.record() if in_force.can_change else None
    duty.writing = qev.SnapshotFacts(id_, 0, voters, in_force.kraft_version)
    control: tuple[object, ...] = ()
    if voters is not None:
        control = (KRaftVersionRecord(kraft_version=in_force.kraft_version), voters)
    records = tuple(state.controller.committed.records())
    state.out.append(WriteSnapshot(id_, control, records, duty.applied_wall, state.wall))


def facts_of(snapshot: MetadataSnapshot) -> qev.SnapshotFacts:
    """What the quorum wants to know of it."""
    voters: VotersRecord | None = None
    kraft_version = 0
    for record in _control(snapshot):
        if isinstance(record, VotersRecord):
            voters = record
        elif isinstance(record, KRaftVersionRecord):
            kraft_version = record.kraft_version
    return qev.SnapshotFacts(snapshot.id, snapshot.size_bytes, voters, kraft_version)


def load(state: NodeState, snapshot: MetadataSnapshot) -> None:
    """Nothing but this snapshot has been applied from now on."""
    duty = state.quorum
    image = Image()
    for batch in snapshot.batches:
        if not batch.control:
            state.tally.controller_events += len(batch.records)
            for record in batch.records:
                image.replay(cast("MetadataRecord", record))
    image.version += state.controller.committed.version  # others than those of any earlier image
    state.controller.committed = image
    duty.applied = snapshot.id.end_offset
    duty.applied_wall = NO_TIMESTAMP
    for record in _control(snapshot):
        if isinstance(record, SnapshotHeaderRecord):
            duty.applied_wall = WallMillis(record.last_contained_log_timestamp)


def _control(snapshot: MetadataSnapshot) -> list[Any]:
    return [record for batch in snapshot.batches if batch.control for record in batch.records]
