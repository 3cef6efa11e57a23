"""What happens to replication, as values that become records of ``__cotidal_events``. Pure.

A happening is told once, by whoever knows it first-hand: what controllers have committed by the
active one, what befell a log by the broker that has it. docs/events.md describes the records,
docs/events.schema.json defines them; a field's name here is its name there. ``-1`` is nobody, or
not known, as in Kafka's own messages. A partition of the topic itself is never told of.

What it does not do: decide anything, or promise that a happening is told. See chronicle.py.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple, TypeAlias, get_args

from cotidal.values import (
    BrokerEpoch,
    LeaderEpoch,
    NodeId,
    Offset,
    PartitionEpoch,
    WallMillis,
)

SCHEMA_VERSION: Final = 1


# Committed by the controllers; told by the active one, with the offset of the record that says so.


class IsrShrunk(NamedTuple):
    """Replicas have left the ISR."""

    topic: str
    partition: int
    leader: NodeId
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    isr: tuple[NodeId, ...]
    removed: tuple[NodeId, ...]
    metadata_offset: Offset


class IsrExpanded(NamedTuple):
    """Replicas have joined the ISR."""

    topic: str
    partition: int
    leader: NodeId
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    isr: tuple[NodeId, ...]
    added: tuple[NodeId, ...]
    metadata_offset: Offset


class LeaderChanged(NamedTuple):
    """Another broker leads, or none."""

    topic: str
    partition: int
    previous: NodeId
    leader: NodeId
    leader_epoch: LeaderEpoch
    isr: tuple[NodeId, ...]
    metadata_offset: Offset


class LeaderEpochRaised(NamedTuple):
    """The same broker leads on, in a later epoch."""

    topic: str
    partition: int
    leader: NodeId
    leader_epoch: LeaderEpoch
    metadata_offset: Offset


class UncleanElection(NamedTuple):
    """The new leader may lack records that were acknowledged."""

    topic: str
    partition: int
    leader: NodeId
    leader_epoch: LeaderEpoch
    previous_isr: tuple[NodeId, ...]
    was_last_leader: bool
    """It led when the ISR became empty: it lacks no more than it lost in its own crash."""
    metadata_offset: Offset


class ReassignmentStarted(NamedTuple):
    """Replicas are to move."""

    topic: str
    partition: int
    replicas: tuple[NodeId, ...]
    adding: tuple[NodeId, ...]
    removing: tuple[NodeId, ...]
    metadata_offset: Offset


class ReassignmentEnded(NamedTuple):
    """They have moved, or will not: ``replicas`` are those that are left."""

    topic: str
    partition: int
    replicas: tuple[NodeId, ...]
    metadata_offset: Offset


class BrokerRegistered(NamedTuple):
    """A new incarnation of a broker; it is fenced until it has caught up."""

    node: NodeId
    node_epoch: BrokerEpoch
    rack: str
    metadata_offset: Offset


class BrokerUnregistered(NamedTuple):
    """A broker that will not come back."""

    node: NodeId
    metadata_offset: Offset


class BrokerFenced(NamedTuple):
    """It leads nothing and is in no ISR."""

    node: NodeId
    node_epoch: BrokerEpoch
    metadata_offset: Offset


class BrokerUnfenced(NamedTuple):
    """It takes part again."""

    node: NodeId
    node_epoch: BrokerEpoch
    metadata_offset: Offset


class ControlledShutdown(NamedTuple):
    """A broker is leaving in order: what it leads goes to others first."""

    node: NodeId
    node_epoch: BrokerEpoch
    metadata_offset: Offset


class ControllerChanged(NamedTuple):
    """The teller is the active controller from now on."""

    controller: NodeId
    controller_epoch: LeaderEpoch


# Known to one broker; told by it.


class LogTruncated(NamedTuple):
    """A follower drops ``records`` from ``offset`` on: its leader has others there, or none."""

    topic: str
    partition: int
    leader: NodeId
    leader_epoch: LeaderEpoch
    offset: Offset
    records: int
    high_watermark: Offset
    """Before the cut."""


class HighWatermarkRegressed(NamedTuple):
    """A replica was told a lower one by a new leader, or lost records below its own."""

    topic: str
    partition: int
    leader_epoch: LeaderEpoch
    previous: Offset
    high_watermark: Offset


class LogOffline(NamedTuple):
    """The disk failed this replica's log, or it is damaged."""

    topic: str
    partition: int
    reason: str


class DirectoryOffline(NamedTuple):
    """A whole log directory has failed; each replica in it is told of by itself too."""

    directory: str
    reason: str


# Once a second.


class FollowerHealth(NamedTuple):
    node: NodeId
    in_sync: bool
    lag_records: int
    """Of what there is: all of it for one that has not fetched yet."""
    lag_ms: int
    """Since it was last caught up; -1: never in this leader's time."""


class PartitionHealth(NamedTuple):
    topic: str
    partition: int
    leader_epoch: LeaderEpoch
    log_start_offset: Offset
    high_watermark: Offset
    end_offset: Offset
    under_replicated: bool
    under_min_isr: bool
    isr: tuple[NodeId, ...]
    followers: tuple[FollowerHealth, ...]


class Health(NamedTuple):
    """What a broker leads, and those of its partitions that have changed or are not well."""

    leads: int
    replicas: int
    under_replicated: int
    under_min_isr: int
    offline_replicas: int
    events_dropped: int
    """Since it started."""
    ack_ms: tuple[int, ...]
    """Partitions of Produces with acks=all that were committed since the last sample, by how long
    that took: how many in less than 1 ms, less than 2, 4, 8 and so on; none took longer."""
    partitions: tuple[PartitionHealth, ...]
    left_out: int
    """Partitions that belong here too and did not fit; their turn comes."""


Happening: TypeAlias = (
    IsrShrunk
    | IsrExpanded
    | LeaderChanged
    | LeaderEpochRaised
    | UncleanElection
    | ReassignmentStarted
    | ReassignmentEnded
    | BrokerRegistered
    | BrokerUnregistered
    | BrokerFenced
    | BrokerUnfenced
    | ControlledShutdown
    | ControllerChanged
    | LogTruncated
    | HighWatermarkRegressed
    | LogOffline
    | DirectoryOffline
    | Health
)


def _kind(name: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()


KINDS: Final[dict[type, str]] = {each: _kind(each.__name__) for each in get_args(Happening)}


class Told(NamedTuple):
    """A happening with who tells it, and when. (incarnation, sequence) is never the same for two,
    so a record that was written twice can be known by it."""

    teller: NodeId
    incarnation: str
    """Of the teller's process."""
    sequence: int
    """From 1 on; a gap is what was dropped."""
    time: WallMillis
    what: Happening


_encode: Final = json.JSONEncoder(separators=(",", ":")).encode


def record_value(told: Told) -> bytes:
    """Compact JSON, as it stands in the topic."""
    what = told.what
    fields: dict[str, Any] = {
        "v": SCHEMA_VERSION,
        "kind": KINDS[type(what)],
        "time": told.time,
        "teller": told.teller,
        "incarnation": told.incarnation,
        "sequence": told.sequence,
        **what._asdict(),
    }
    if isinstance(what, Health):
        fields["partitions"] = [
            {**each._asdict(), "followers": [follower._asdict() for follower in each.followers]}
            for each in what.partitions
        ]
    return _encode(fields).encode()
