"""One node driven by hand: a disk in a list, a clock that a test moves, effects held back at will.

Time never passes by itself. ``LoneNode.hold`` names effects that are not obeyed until
``release`` is called, so that a test can look at what is parked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from cotidal.core.machine import Entropy
from cotidal.core.quorum.log_view import SnapshotId
from cotidal.errors import ErrorCode
from cotidal.messages.batch import Batches
from cotidal.node import effects as fx
from cotidal.node import events as ev
from cotidal.node.coordinators import CoordinatorLog
from cotidal.node.effects import Endpoint
from cotidal.node.node import Node
from cotidal.node.state import NodeConfig
from cotidal.values import Millis, NodeId, Offset, TopicPartition, Uuid, WallMillis
from cotidal.wire.batch import read_batches, stamp_prefix
from cotidal.wire.coordinator_batch import (
    encode_coordinator_batch,
    encode_marker,
    read_coordinator_log,
)
from cotidal.wire.inspection import inspected
from cotidal.wire.metadata_batch import read_metadata_batches
from cotidal.wire.metadata_snapshot import decode_metadata_snapshot, encode_metadata_snapshot
from cotidal.wire.records import Record, build_batch, values_batch

WALL = 1_700_000_000_000


class ListedLog:
    """Batches of one partition: (base offset, next offset, bytes)."""

    def __init__(self, topic_id: Uuid) -> None:
        self.topic_id = topic_id
        self.start = 0
        self.end = 0
        self.batches: list[tuple[int, int, bytes]] = []

    def append(self, entries: tuple[Any, ...]) -> None:
        for placed in entries:
            data = bytes(placed.batches.data)
            for header in placed.batches.headers:
                prefix = stamp_prefix(
                    base_offset=self.end,
                    size=header.size_bytes,
                    leader_epoch=placed.leader_epoch,
                )
                after = self.end + header.last_offset_delta + 1
                whole = prefix + data[16 : header.size_bytes]
                self.batches.append((self.end, after, whole))
                data = data[header.size_bytes :]
                self.end = after

    def read(self, offset: int, max_bytes: int, below: int) -> bytes:
        out = b""
        for base, after, data in self.batches:
            if after > offset and after <= below and (not out or len(out) + len(data) <= max_bytes):
                assert base >= 0
                out += data
        return out


class LoneNode:
    def __init__(
        self,
        settings: dict[str, str] | None = None,
        seed: int = 1,
        voters: tuple[tuple[NodeId, Endpoint], ...] = (),
        log_dirs: tuple[Uuid, ...] = (),
        *,
        is_broker: bool = True,
    ) -> None:
        self.settings = settings
        self.directory = log_dirs[0] if log_dirs else Uuid(b"d" * 16)
        """Where the next log is opened."""
        config = NodeConfig(
            node_id=NodeId(1),
            cluster_id="lone",
            directory_id=Uuid(b"d" * 16),
            endpoints=(Endpoint("PLAINTEXT", "localhost", 9092),),
            controller_endpoints=(Endpoint("CONTROLLER", "localhost", 9093),),
            rack=None,
            settings=settings or {},
            log_dirs=log_dirs,
            voters=voters,
            is_broker=is_broker,
        )
        self.node = Node(
            config,
            Entropy(seed),
            read_metadata_batches,
            inspected,
            CoordinatorLog(encode_coordinator_batch, read_coordinator_log, encode_marker),
            values_batch,
        )
        self.now = 1_000
        self.hold: set[type] = set()
        self.held: deque[Any] = deque()
        self.logs: dict[TopicPartition, ListedLog] = {}
        self.metadata: list[fx.Write] = []
        self.snapshots: dict[SnapshotId, bytes] = {}
        self.replies: list[fx.Respond] = []
        self.other: list[Any] = []
        """Effects that need no answer, in order."""
        self.appends = 0
        self.reads = 0
        self._correlation = 0

    def begin(self) -> LoneNode:
        """A new disk; nothing is promised about what the node becomes."""
        self.tell(ev.Started(None, (), Uuid(b"i" * 16), WallMillis(WALL)))
        return self

    def start_from_snapshots(self) -> LoneNode:
        """On a disk that holds nothing else."""
        whole = tuple(self._snapshot(id_) for id_ in sorted(self.snapshots))
        self.tell(ev.Started(None, (), Uuid(b"i" * 16), WallMillis(WALL), snapshots=whole))
        assert any(isinstance(effect, fx.Serve) for effect in self.other)
        self.connect(1)
        return self

    def start(self) -> LoneNode:
        self.begin()
        assert any(isinstance(effect, fx.Serve) for effect in self.other)
        self.connect(1)
        return self

    def restart(self, *hold: type) -> LoneNode:
        """A new process on the same disk, after kill -9. ``hold``: effects to be held back."""
        after = LoneNode(self.settings, seed=2)
        after.hold.update(hold)
        after.logs = self.logs
        after.metadata = list(self.metadata)
        after.snapshots = dict(self.snapshots)
        cleaned = [w.offset for w in self.metadata if isinstance(w, fx.CleanMetadata)]
        start = max(cleaned, default=Offset(0))
        batches = tuple(
            w for w in self.metadata if isinstance(w, fx.MetadataBatch) and w.base_offset >= start
        )
        states = [w.state for w in self.metadata if isinstance(w, fx.QuorumState)]
        whole = tuple(self._snapshot(id_) for id_ in sorted(self.snapshots))
        after.tell(
            ev.Started(
                states[-1],
                batches,
                Uuid(b"j" * 16),
                WallMillis(WALL),
                log_start=start,
                snapshots=whole,
            )
        )
        after.connect(1)
        return after

    def connect(self, connection: int) -> None:
        self.tell(ev.ConnectionOpened(ev.ConnectionId(connection), "PLAINTEXT", "127.0.0.1"))

    def tell(self, event: ev.Event) -> None:
        pending: deque[ev.Event] = deque([event])
        while pending:
            for effect in self.node.step(pending.popleft(), Millis(self.now)):
                if type(effect) in self.hold:
                    self.held.append(effect)
                else:
                    pending.extend(self._obey(effect))

    def release_first(self) -> None:
        """Obey the first that was held back; those that follow from it are held back too."""
        for event in self._obey(self.held.popleft()):
            self.tell(event)

    def release(self) -> None:
        """Obey what was held back, in order."""
        self.hold.clear()
        held, self.held = self.held, deque()
        for effect in held:
            for event in self._obey(effect):
                self.tell(event)

    def pass_time(self, ms: int) -> None:
        """Let time pass, ringing at every deadline on the way."""
        until = self.now + ms
        while True:
            deadline = self.node.next_deadline()
            if deadline is None or deadline > until:
                break
            self.now = max(self.now, deadline)
            self.tell(ev.Ticked(WallMillis(WALL + self.now)))
        self.now = until

    def send(self, *messages: tuple[int, int, Any], connection: int = 1) -> None:
        """(API key, version, message), all in one socket read."""
        requests = []
        for key, version, message in messages:
            self._correlation += 1
            requests.append(ev.Request(key, version, self._correlation, "test", message))
        wall = WallMillis(WALL + self.now)
        self.tell(ev.Received(ev.ConnectionId(connection), tuple(requests), wall))

    def ask(self, key: int, version: int, message: Any, connection: int = 1) -> Any:
        """Send one request that is answered at once; its reply."""
        before = len(self.replies)
        self.send((key, version, message), connection=connection)
        assert len(self.replies) == before + 1, "not answered"
        return self.replies[-1].message

    def _obey(self, effect: Any) -> list[ev.Event]:
        obey = _OBEY.get(type(effect))
        if obey is None:
            self.other.append(effect)
            return []
        return obey(self, effect)

    def _respond(self, effect: fx.Respond) -> list[ev.Event]:
        self.replies.append(effect)
        return []

    def _append(self, effect: fx.Append) -> list[ev.Event]:
        self.appends += 1
        log = self.logs[effect.partition]
        assert effect.entries[0].base_offset == log.end
        log.append(effect.entries)
        time = WallMillis(WALL + self.now if effect.stamp_time else -1)
        return [ev.Appended(effect.partition, log.topic_id, Offset(log.end), time, False)]

    def _read(self, effect: fx.Read) -> list[ev.Event]:
        self.reads += 1
        results = tuple(
            self.logs[want.partition].read(want.offset, want.max_bytes, want.below)
            for want in effect.wants
        )
        return [ev.ReadDone(effect.token, results)]

    def _persist(self, effect: fx.Persist) -> list[ev.Event]:
        self.metadata += effect.writes
        installed = None
        for write in effect.writes:
            if isinstance(write, fx.InstallSnapshot):
                installed = self._snapshot(write.id)
        return [ev.Persisted(effect.token, installed)]

    def _snapshot(self, id_: SnapshotId) -> ev.MetadataSnapshot:
        data = self.snapshots[id_]
        batches = tuple(fx.MetadataBatch(*batch) for batch in decode_metadata_snapshot(data))
        return ev.MetadataSnapshot(id_, len(data), batches)

    def _write_snapshot(self, effect: fx.WriteSnapshot) -> list[ev.Event]:
        pieces = encode_metadata_snapshot(
            effect.records,
            control=effect.control,
            epoch=effect.id.epoch,
            log_wall=effect.log_wall,
            wall=effect.wall,
        )
        self.snapshots[effect.id] = b"".join(pieces)
        return [ev.SnapshotWritten(effect.id, len(self.snapshots[effect.id]))]

    def _read_snapshot(self, effect: fx.ReadSnapshot) -> list[ev.Event]:
        data = self.snapshots.get(effect.id)
        if data is None:
            return [ev.ReadDone(effect.token, ("it is gone",))]
        return [ev.ReadDone(effect.token, (data[effect.position :][: effect.max_bytes],))]

    def _keep_chunk(self, effect: fx.KeepChunk) -> list[ev.Event]:
        before = self.snapshots.get(effect.id, b"")[: effect.position]
        assert len(before) == effect.position
        self.snapshots[effect.id] = before + bytes(effect.data)
        return []

    def _drop_snapshot(self, effect: fx.DropSnapshot) -> list[ev.Event]:
        del self.snapshots[effect.id]
        return []

    def _open(self, effect: fx.OpenLog) -> list[ev.Event]:
        log = self.logs.setdefault(effect.partition, ListedLog(effect.topic_id))
        headers = tuple(read_batches(data).headers[0] for _, _, data in log.batches)
        return [
            ev.LogOpened(
                effect.partition,
                effect.topic_id,
                Offset(log.start),
                Offset(log.end),
                Offset(0),
                (),
                None,
                headers,
                self.directory,
            )
        ]

    def _delete(self, effect: fx.DeleteLog) -> list[ev.Event]:
        del self.logs[effect.partition]
        return []

    def _advance(self, effect: fx.AdvanceStart) -> list[ev.Event]:
        log = self.logs[effect.partition]
        log.start = effect.offset
        return [ev.StartMoved(effect.partition, log.topic_id, effect.offset)]

    def _find(self, effect: fx.FindTime) -> list[ev.Event]:
        return [ev.TimeFound(effect.token, None)]

    def _measure(self, effect: fx.MeasureLogs) -> list[ev.Event]:
        sizes = tuple(
            (partition, sum(len(data) for _, _, data in log.batches))
            for partition, log in self.logs.items()
        )
        measured = ev.MeasuredDirectory("data", None, sizes, 1 << 30, 1 << 29)
        return [ev.LogsMeasured(effect.token, (measured,))]

    def _move(self, effect: fx.MoveLogs) -> list[ev.Event]:
        """It has one directory."""
        errors = tuple(
            ErrorCode.NONE if partition in self.logs else ErrorCode.REPLICA_NOT_AVAILABLE
            for _, partition in effect.moves
        )
        return [ev.LogsMoved(effect.token, errors)]


_OBEY: dict[type, Callable[[LoneNode, Any], list[ev.Event]]] = {
    fx.Respond: LoneNode._respond,
    fx.Append: LoneNode._append,
    fx.Read: LoneNode._read,
    fx.Persist: LoneNode._persist,
    fx.WriteSnapshot: LoneNode._write_snapshot,
    fx.ReadSnapshot: LoneNode._read_snapshot,
    fx.KeepChunk: LoneNode._keep_chunk,
    fx.DropSnapshot: LoneNode._drop_snapshot,
    fx.OpenLog: LoneNode._open,
    fx.DeleteLog: LoneNode._delete,
    fx.AdvanceStart: LoneNode._advance,
    fx.FindTime: LoneNode._find,
    fx.MeasureLogs: LoneNode._measure,
    fx.MoveLogs: LoneNode._move,
}


def batches(*values: bytes, **fields: int) -> Batches:
    """One batch of records with these values."""
    records = [Record(None, value, timestamp=WALL) for value in values]
    return read_batches(build_batch(records, **fields))
