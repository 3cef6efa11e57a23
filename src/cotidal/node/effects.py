"""What a node wants done. Pure values; imperatives, obeyed in order by broker or simulator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, NewType, TypeAlias

from cotidal.core.quorum.log_view import SnapshotId
from cotidal.messages.batch import Batches, Placed
from cotidal.messages.producers import AbortedTransaction
from cotidal.values import (
    EpochEntry,
    LeaderEpoch,
    NodeId,
    Offset,
    TopicPartition,
    Uuid,
    WallMillis,
)

ReadToken = NewType("ReadToken", int)
PersistToken = NewType("PersistToken", int)
CallToken = NewType("CallToken", int)


class Respond(NamedTuple):
    """Send a reply. Replies of a connection come in the order of its requests."""

    connection: int
    api_key: int
    api_version: int
    correlation_id: int
    message: object


class CloseConnection(NamedTuple):
    connection: int
    reason: str


class PauseReading(NamedTuple):
    """Too many requests of this connection wait for an answer."""

    connection: int


class ResumeReading(NamedTuple):
    connection: int


class MeterTime(NamedTuple):
    """From now on, or no longer: tell how long the requests of each connection take (TimeSpent)."""

    on: bool


class Append(NamedTuple):
    """Write to the page cache; answered by Appended or LogFailed."""

    partition: TopicPartition
    entries: tuple[Placed, ...]
    stamp_time: bool
    """Stamp LogAppendTime into the batches."""


class Want(NamedTuple):
    """One partition of a Read: from the batch that holds ``offset`` on, all below ``below``."""

    partition: TopicPartition
    offset: Offset
    max_bytes: int
    below: Offset


class Read(NamedTuple):
    """Answered by ReadDone. The first non-empty result holds at least one whole batch."""

    token: ReadToken
    wants: tuple[Want, ...]
    max_bytes: int
    """In all. What no longer fits is answered with nothing."""
    committed: bool = False
    """With the aborted transactions among what is read."""
    to_send: bool = False
    """Nobody here looks at what is read, so a result may be a Stretch."""


class FindTime(NamedTuple):
    """The first record at or after ``timestamp`` (None: the one with the largest); TimeFound."""

    token: ReadToken
    partition: TopicPartition
    timestamp: WallMillis | None
    below: Offset


class Found(NamedTuple):
    offset: Offset
    timestamp: WallMillis
    leader_epoch: LeaderEpoch


class Endpoint(NamedTuple):
    """A listener as others are told of it."""

    name: str
    host: str
    port: int


class Call(NamedTuple):
    """Ask another node; answered by Replied or CallFailed. Calls of one lane keep their order."""

    token: CallToken
    peer: NodeId
    endpoint: Endpoint
    lane: str
    """A connection of its own for each kind of talk, so that a long poll holds nobody up."""
    api_key: int
    api_version: int
    message: object
    timeout_ms: int


class KeepConnected(NamedTuple):
    """Keep a connection to each of these nodes, and tell PeerConnected and PeerLost unasked."""

    peers: tuple[tuple[NodeId, Endpoint], ...]


class MetadataBatch(NamedTuple):
    """One batch of the metadata log: metadata records, or control records of the quorum."""

    base_offset: Offset
    leader_epoch: LeaderEpoch
    records: tuple[object, ...]
    control: bool
    wall: WallMillis


class QuorumState(NamedTuple):
    state: object
    """QuorumStateData."""


class FetchedMetadata(NamedTuple):
    """Batches of the metadata log as its leader wrote them, from ``base_offset`` on."""

    base_offset: Offset
    batches: Batches


class CutMetadata(NamedTuple):
    """The metadata log ends at ``offset`` from now on."""

    offset: Offset


class InstallSnapshot(NamedTuple):
    """The chunks kept for ``id`` are whole: make them a snapshot that takes the log's place.

    Told by Persisted's ``installed``. Again after a crash: then the snapshot is there already.
    """

    id: SnapshotId


class CleanMetadata(NamedTuple):
    """The metadata log is not read below ``offset`` any more."""

    offset: Offset


Write: TypeAlias = (
    MetadataBatch | FetchedMetadata | CutMetadata | QuorumState | InstallSnapshot | CleanMetadata
)


class Persist(NamedTuple):
    """Write and fsync, in order; answered by Persisted once all of it is durable."""

    token: PersistToken
    writes: tuple[Write, ...]


class WriteSnapshot(NamedTuple):
    """Write a snapshot of the metadata log, and fsync it; answered by SnapshotWritten."""

    id: SnapshotId
    control: tuple[object, ...]
    """Records of the quorum that go beside the header."""
    records: tuple[object, ...]
    log_wall: WallMillis
    """The time of the last record that is summed up."""
    wall: WallMillis


class ReadSnapshot(NamedTuple):
    """Answered by ReadDone with the bytes from ``position`` on."""

    token: ReadToken
    id: SnapshotId
    position: int
    max_bytes: int


class KeepChunk(NamedTuple):
    """Write a piece of a snapshot that another node has, before any later Persist; not synced."""

    id: SnapshotId
    position: int
    data: bytes | memoryview


class DropSnapshot(NamedTuple):
    id: SnapshotId


class OpenLog(NamedTuple):
    """Open or create; answered by LogOpened or LogFailed."""

    partition: TopicPartition
    topic_id: Uuid
    settings: Mapping[str, str]
    """The topic's effective settings, by Kafka's names."""
    directory: Uuid
    """Where the controller knows it to be: a log directory's id, or a reserved one (KIP-858)."""


class ConfigureLog(NamedTuple):
    partition: TopicPartition
    settings: Mapping[str, str]


class DeleteLog(NamedTuple):
    partition: TopicPartition
    topic_id: Uuid


class TruncateTo(NamedTuple):
    """Answered by LogOpened with what is left."""

    partition: TopicPartition
    offset: Offset


class StartOver(NamedTuple):
    """Drop everything and begin at ``offset``. Answered by LogOpened."""

    partition: TopicPartition
    offset: Offset


class AdvanceStart(NamedTuple):
    """DeleteRecords. Answered by StartMoved."""

    partition: TopicPartition
    offset: Offset


class Retain(NamedTuple):
    """Apply retention by time and size, never to ``below`` or beyond. StartMoved if it did."""

    partition: TopicPartition
    below: Offset


class Compactable(NamedTuple):
    """A log that may be compacted below ``below``; the last batch of each producer stays."""

    partition: TopicPartition
    below: Offset
    producers: frozenset[int]


class Compact(NamedTuple):
    """Compact those of these logs that are worth it, the dirtiest first. Not answered: offsets
    stay what they are, and so does all that the node knows of a log."""

    logs: tuple[Compactable, ...]
    key_bytes: int
    """Memory for keys."""
    bytes_per_second: float


class SaveEpochs(NamedTuple):
    partition: TopicPartition
    epochs: tuple[EpochEntry, ...]


class SaveProducers(NamedTuple):
    partition: TopicPartition
    snapshot: object
    """A ProducerSnapshot."""


class SaveAborted(NamedTuple):
    """Enter in the index of aborted transactions; known ones are passed over."""

    partition: TopicPartition
    transactions: tuple[AbortedTransaction, ...]


class SaveHighWatermarks(NamedTuple):
    watermarks: tuple[tuple[TopicPartition, Offset], ...]


class MeasureLogs(NamedTuple):
    """Answered by LogsMeasured."""

    token: ReadToken


class MoveLogs(NamedTuple):
    """To other log directories of this node. Answered by LogsMoved, then, of each that has moved,
    by LogHoused."""

    token: ReadToken
    moves: tuple[tuple[str, TopicPartition], ...]
    """Path of the directory, and what is to be there."""


class PaceMoves(NamedTuple):
    """All moves together may copy so much from now on, those under way too."""

    bytes_per_second: int


class PutStraysAside(NamedTuple):
    """Every log that metadata gives this node has been asked for: what else there is of logs was
    left by topics that were deleted, or moved away, while this node was down."""


class Note(NamedTuple):
    """A sentence for the log."""

    level: str
    text: str


class Fault(NamedTuple):
    """An assertion about one partition failed, and its replica is offline. A bug: whoever tests or
    simulates takes it as the end."""

    partition: TopicPartition
    promise: str
    where: str
    """The lines that led to it, for whoever looks for the bug."""


class Serve(NamedTuple):
    """The node is ready: clients may connect."""


class Stop(NamedTuple):
    """Nothing is parked any more: flush, mark clean, exit."""

    broker_epoch: int
    opened_all: bool = True
    """Every log of this node has been open. If not, some may still be as a crash has left them:
    nothing is marked clean, or the next start would believe them."""


Effect: TypeAlias = (
    Respond
    | CloseConnection
    | PauseReading
    | MeterTime
    | ResumeReading
    | Append
    | Read
    | FindTime
    | Persist
    | WriteSnapshot
    | ReadSnapshot
    | KeepChunk
    | DropSnapshot
    | OpenLog
    | ConfigureLog
    | DeleteLog
    | TruncateTo
    | StartOver
    | Call
    | KeepConnected
    | AdvanceStart
    | Retain
    | Compact
    | SaveEpochs
    | SaveProducers
    | SaveAborted
    | SaveHighWatermarks
    | MeasureLogs
    | MoveLogs
    | PaceMoves
    | PutStraysAside
    | Note
    | Fault
    | Serve
    | Stop
)
