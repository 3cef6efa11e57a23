"""What can happen to a node. Pure values; past participles.

The broker makes them from sockets, files and the clock, the simulator from its own.

What the disk tells of a log carries the topic's id: it may come late, when the topic has been
deleted and created anew under its name.
"""

from __future__ import annotations

from typing import NamedTuple, NewType, TypeAlias

from cotidal.core.quorum.log_view import SnapshotId
from cotidal.errors import ErrorCode
from cotidal.messages.batch import BatchHeader, Marker, Stretch
from cotidal.messages.producers import AbortedTransaction
from cotidal.node.effects import CallToken, Found, MetadataBatch, PersistToken, ReadToken
from cotidal.values import EpochEntry, NodeId, Offset, TopicPartition, Uuid, WallMillis

ConnectionId = NewType("ConnectionId", int)


class Request(NamedTuple):
    """One decoded request. ``message`` is the request's value class from ``messages.rpc``."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    message: object


class ConnectionOpened(NamedTuple):
    connection: ConnectionId
    listener: str
    peer: str


class Received(NamedTuple):
    """All complete requests of one socket read, in order."""

    connection: ConnectionId
    requests: tuple[Request, ...]
    wall: WallMillis


class TimeSpent(NamedTuple):
    """By this node's loop, on the last requests of a connection; told while MeterTime is on."""

    connection: ConnectionId
    micros: int


class ConnectionLost(NamedTuple):
    connection: ConnectionId


class MetadataSnapshot(NamedTuple):
    """A whole snapshot of the metadata log on this node's disk."""

    id: SnapshotId
    size_bytes: int
    batches: tuple[MetadataBatch, ...] = ()
    """What is in it, if it was read."""


class Started(NamedTuple):
    """What the node's disk says about the metadata log; the first event of a node's life."""

    quorum_state: object | None
    """QuorumStateData, or None on a new disk."""
    log: tuple[MetadataBatch, ...]
    """The batches of the metadata log, in order."""
    incarnation: Uuid
    wall: WallMillis
    previous_broker_epoch: int = -1
    """From the clean-shutdown marker: -1 after a crash."""
    log_start: Offset = Offset(0)
    snapshots: tuple[MetadataSnapshot, ...] = ()
    """Whole ones, ascending; the newest with its batches."""


class Persisted(NamedTuple):
    token: PersistToken
    installed: MetadataSnapshot | None = None
    """If there was an InstallSnapshot."""


class SnapshotWritten(NamedTuple):
    id: SnapshotId
    size_bytes: int


class LogOpened(NamedTuple):
    """A partition's log is open; the core rebuilds its state from these facts."""

    partition: TopicPartition
    topic_id: Uuid
    start_offset: Offset
    end_offset: Offset
    high_watermark: Offset
    """From the checkpoint; the core clamps it into the log."""
    epochs: tuple[EpochEntry, ...]
    producers: object | None
    """A ProducerSnapshot, or None."""
    headers_after: tuple[BatchHeader, ...]
    directory: Uuid
    """Of the log directory that holds it."""
    markers: tuple[Marker, ...] = ()
    """What the control batches among ``headers_after`` say."""


class LogFailed(NamedTuple):
    """The disk failed this log: it is offline until the node restarts, or until it is mended."""

    partition: TopicPartition
    topic_id: Uuid
    reason: str
    damaged_at: Offset | None = None
    """Damage was found, and nothing else is wrong: all below this offset is good."""


class DirectoryFailed(NamedTuple):
    """A whole log directory is gone for this process; another one is left."""

    directory: Uuid
    reason: str


class Appended(NamedTuple):
    """Everything below ``end_offset`` is in the page cache and survives kill -9."""

    partition: TopicPartition
    topic_id: Uuid
    end_offset: Offset
    append_time: WallMillis
    """The time stamped into the batches of a LogAppendTime topic, otherwise -1."""
    rolled: bool
    """A new segment was begun: time for a snapshot of the producer state."""


class ReadDone(NamedTuple):
    """One result for each Want, in order: bytes of whole batches, or a sentence: what failed. If
    that takes the log offline, LogFailed has come before. A Stretch only for a Read ``to_send``."""

    token: ReadToken
    results: tuple[bytes | memoryview | Stretch | str, ...]
    aborted: tuple[tuple[AbortedTransaction, ...], ...] = ()
    """For each result, if they were asked for."""


class TimeFound(NamedTuple):
    """None: there is no such record, or the log has failed; LogFailed has come before then."""

    token: ReadToken
    found: Found | None


class StartMoved(NamedTuple):
    """Retention or DeleteRecords moved the log's start."""

    partition: TopicPartition
    topic_id: Uuid
    start_offset: Offset


class MovingLog(NamedTuple):
    """A log on its way into a directory."""

    partition: TopicPartition
    size_bytes: int
    lag: int
    """Offsets that are not there yet."""


class MeasuredDirectory(NamedTuple):
    """One log directory and the sizes of the logs in it."""

    path: str
    error: str | None
    """Why it is offline; None while it is not."""
    sizes: tuple[tuple[TopicPartition, int], ...]
    total_bytes: int
    usable_bytes: int
    moving: tuple[MovingLog, ...] = ()


class LogsMeasured(NamedTuple):
    token: ReadToken
    directories: tuple[MeasuredDirectory, ...]


class LogsMoved(NamedTuple):
    """Each has begun to move (or is there), or cannot."""

    token: ReadToken
    errors: tuple[ErrorCode, ...]


class LogHoused(NamedTuple):
    """A log has moved, with all that is in it."""

    partition: TopicPartition
    topic_id: Uuid
    directory: Uuid


class Replied(NamedTuple):
    """Another node's answer to a Call: the response's value class."""

    token: CallToken
    message: object


class CallFailed(NamedTuple):
    """No answer: nobody listens there (refused), the connection was lost, or time ran out."""

    token: CallToken
    refused: bool
    reason: str


class PeerConnected(NamedTuple):
    """A connection that KeepConnected asked for stands."""

    peer: NodeId


class PeerLost(NamedTuple):
    """It ended, or could not be made. ``refused``: nobody listens there, the process is gone."""

    peer: NodeId
    refused: bool


class Ticked(NamedTuple):
    """A deadline has passed."""

    wall: WallMillis


class ShutdownRequested(NamedTuple):
    """SIGTERM: answer what is parked, hand over what can be handed over, stop."""


Event: TypeAlias = (
    ConnectionOpened
    | Received
    | TimeSpent
    | ConnectionLost
    | Started
    | Persisted
    | SnapshotWritten
    | LogOpened
    | LogFailed
    | DirectoryFailed
    | Appended
    | ReadDone
    | TimeFound
    | StartMoved
    | LogsMeasured
    | LogsMoved
    | LogHoused
    | Replied
    | CallFailed
    | PeerConnected
    | PeerLost
    | Ticked
    | ShutdownRequested
)
