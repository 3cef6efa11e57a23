"""A machine, and the process on it that is a node.

The machine keeps its disk, its clock and its place on the network; processes come and go, each a
new incarnation. A process takes events in turns, as broker/driver.py does: each event is stepped,
its effects are obeyed in order, and what is answered at once goes back into the same turn. A paused
process takes nothing; what happens to it meanwhile waits, in order, and its timers ring late.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from cotidal.api.registry import served
from cotidal.core.machine import Entropy
from cotidal.log.checkpoint import CLEAN_SHUTDOWN, decode_clean_shutdown, encode_clean_shutdown
from cotidal.log.failure import LogError
from cotidal.log.memory import MemoryFiles
from cotidal.log.metadata_store import METADATA_PARTITION, write_first_voters
from cotidal.messages.records.quorum import VotersRecordVoter
from cotidal.node import effects as fx
from cotidal.node.coordinators import CoordinatorLog
from cotidal.node.events import Event, ShutdownRequested, Started, Ticked
from cotidal.node.node import Node
from cotidal.node.recording import RecordedNode
from cotidal.node.recording import World as NodeWorld
from cotidal.node.state import NodeConfig
from cotidal.sim.agenda import Agenda
from cotidal.sim.clock import Clock
from cotidal.sim.disk import DATA, Disk, DiskFault
from cotidal.sim.lane import NEVER, Speed
from cotidal.sim.metadata_log import decoded_once, read_once, snapshot_told
from cotidal.sim.network import Connection, HostId, Network
from cotidal.sim.peers import Peers
from cotidal.sim.server import Gate, Server
from cotidal.sim.violation import Violation
from cotidal.values import BrokerEpoch, NodeId, TopicPartition, Uuid, WallMillis
from cotidal.wire.coordinator_batch import (
    encode_coordinator_batch,
    encode_marker,
    read_coordinator_log,
)
from cotidal.wire.inspection import inspected
from cotidal.wire.records import values_batch

CLIENT_GATE: Final = served(by_controller=False)
CONTROLLER_GATE: Final = served(by_controller=True)
RING_US: Final = 50
"""A turn of the loop takes its time: a deadline that has passed is not looked at in no time."""
POWER_LOST: Final = "power lost"
"""Why a process ends whose machine may have lost what was not synced."""
_METADATA: Final = str(METADATA_PARTITION)
CLEAN_MARK: Final = f"{DATA}/{CLEAN_SHUTDOWN}"
_NODE_WORLD: Final = NodeWorld(
    read_once,
    inspected,
    CoordinatorLog(encode_coordinator_batch, read_coordinator_log, encode_marker),
    values_batch,
)


class Watcher:
    """Sees everything that happens in processes. The base sees nothing."""

    def on_stepped(self, process: Process, event: Event, effects: tuple[fx.Effect, ...]) -> None:
        """After a step, before its effects are obeyed."""

    def on_started(self, process: Process) -> None: ...

    def on_ended(self, process: Process, reason: str) -> None: ...


class Machine:
    """What outlives a process: disk, clock, address."""

    def __init__(self, config: NodeConfig, clock: Clock) -> None:
        self.config = config
        self.host = HostId(config.node_id)
        self.clock = clock
        self.files = _formatted()
        self.speed = Speed()
        self.incarnations = 0
        self.process: Process | None = None

    @property
    def node_id(self) -> NodeId:
        return self.config.node_id

    def break_disk(self, fault: DiskFault, directory: str = DATA) -> None:
        """From now on the files of this directory fail; ``log_directory`` names that of a log."""
        fault.strike(self.files, directory)

    def mend_disk(self) -> None:
        """The disk works again. A log that met the fault is offline until the process restarts."""
        self.files.mend()

    def lie(self, *, lies: bool) -> None:
        """The disk says that it has synced the files of partitions, and has not. The metadata log
        is on another one: a quorum that cannot rely on its votes promises nothing at all."""
        self.files.lies = _is_of_a_partition if lies else None

    def log_directory(self, partition: TopicPartition) -> str:
        return f"{DATA}/{partition}"

    def format_voters(self, voters: tuple[VotersRecordVoter, ...]) -> None:
        """Formatting says who votes at first."""
        now = self.clock.wall(0)
        write_first_voters(self.files, DATA, voters, self.config.directory_id, now)

    def wipe(self, directory_id: Uuid) -> None:
        """A new, empty disk."""
        assert self.process is None
        self.files = _formatted()
        self.config = self.config._replace(directory_id=directory_id)


def _is_of_a_partition(path: str) -> bool:
    """The directory of a partition other than the metadata's, or a file in it."""
    directory = path.removeprefix(f"{DATA}/").partition("/")[0]
    return directory.rpartition("-")[2].isdigit() and directory != _METADATA


def _formatted() -> MemoryFiles:
    """An empty data directory, there to stay."""
    files = MemoryFiles()
    files.mkdir(DATA)
    files.sync_directory("/")
    return files


class _Door:
    """A listener: hands what the network brings to the process's loop."""

    __slots__ = ("_gate", "_name", "_process")

    def __init__(self, process: Process, name: str, served: Gate) -> None:
        self._process = process
        self._name = name
        self._gate = served

    def on_accepted(self, connection: Connection) -> None:
        process = self._process
        process.run(process.server.accept, connection, self._name, self._gate)

    def on_bytes(self, connection: Connection, data: bytes) -> None:
        process = self._process
        process.run(process.server.receive, connection, data)

    def on_lost(self, connection: Connection) -> None:
        process = self._process
        process.run(process.server.lose, connection)


class Process:
    """One incarnation of a node."""

    def __init__(
        self,
        machine: Machine,
        agenda: Agenda,
        network: Network,
        *,
        node_entropy: Entropy,
        disk_entropy: Entropy,
        watcher: Watcher,
        on_end: Callable[[Process, str], None],
        recorded: bool = False,
    ) -> None:
        """LogError if the disk does not let it start."""
        machine.incarnations += 1
        self.machine = machine
        self.node_id: NodeId = machine.config.node_id
        self.incarnation = machine.incarnations
        self.started_us = agenda.now
        self.alive = True
        self.paused = False
        self.serving = not machine.config.is_broker  # no clients to wait for
        self._agenda = agenda
        self._network = network
        self._watcher = watcher
        self._on_end = on_end
        self._events: deque[Event] = deque()
        self._held: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._in_turn = False
        self._armed_for: int | None = None
        self._armed_deadline: int = NEVER
        """The deadline that it is armed for: what is not earlier changes nothing."""
        clean, broker_epoch = self._take_clean_mark()
        self.disk = Disk(
            agenda,
            disk_entropy,
            machine.files,
            machine.speed,
            directory_id=machine.config.directory_id,
            clean=clean,
            post=self.post,
            run=self.run,
            wall=self.wall,
            on_broken=self._on_broken,
        )
        self.server = Server(network, post=self.post, run=self.run, wall=self.wall)
        self.peers = Peers(
            network, agenda, disk_entropy, host=machine.host, post=self.post, run=self.run
        )
        self.recorded: list[str] | None = None
        """Its life, line by line, where lives are recorded."""
        if recorded:
            self.recorded = []
            seed = node_entropy.next_u64()
            life = RecordedNode(machine.config, seed, _NODE_WORLD, self.recorded.append)
            self.node, self._step = life.node, life.step
        else:
            self.node = Node(machine.config, node_entropy, *_NODE_WORLD)
            self._step = self.node.step
        self._obey: dict[type, Callable[[Any], None]] = {
            fx.Respond: self.server.respond,
            fx.CloseConnection: self.server.close_connection,
            fx.PauseReading: self.server.pause_reading,
            fx.ResumeReading: self.server.resume_reading,
            fx.MeterTime: _nothing,  # a step takes no time here
            fx.Call: self.peers.call,
            fx.KeepConnected: self.peers.keep_connected,
            **self.disk.obeys(),
            fx.Note: _nothing,
            fx.Fault: _on_fault,
            fx.Serve: self._on_serve,
            fx.Stop: self._on_stop,
        }
        for endpoint in machine.config.controller_endpoints:
            network.listen(machine.host, endpoint.port, _Door(self, endpoint.name, CONTROLLER_GATE))
        incarnation_id = Uuid(node_entropy.bytes16())
        store = self.disk.metadata
        snapshots = store.load_snapshots().snapshots
        self._started = Started(
            store.quorum_state(),
            tuple(fx.MetadataBatch(*batch) for batch in store.batches(decoded_once)),
            incarnation_id,
            self.wall(),
            broker_epoch,
            store.log.start_offset,
            tuple(snapshot_told(snapshot) for snapshot in snapshots),
        )

    def begin(self) -> None:
        self._watcher.on_started(self)
        self.post(self._started)

    def wall(self) -> WallMillis:
        return self.machine.clock.wall(self._agenda.now)

    # Turns

    def run(self, do: Callable[..., None], *args: Any) -> None:
        """Something for this process's loop: done now, or once it goes on."""
        if not self.alive:
            return
        if self.paused:
            self._held.append((do, args))
        else:
            do(*args)

    def post(self, event: Event) -> None:
        if self.alive:
            self._events.append(event)
            if not self._in_turn:
                self._turn()

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False
        self._network.disturb(self.machine.host)
        while self._held and not self.paused and self.alive:
            do, args = self._held.popleft()
            do(*args)

    def request_stop(self) -> None:
        self.run(self.post, ShutdownRequested())

    def _turn(self) -> None:
        self._in_turn = True
        events = self._events
        step = self._step
        obey = self._obey
        on_stepped = self._watcher.on_stepped
        now = self.machine.clock.monotonic(self._agenda.now)
        while events:
            event = events.popleft()
            effects = step(event, now)
            on_stepped(self, event, effects)
            for effect in effects:
                obey[effect.__class__](effect)
            if not self.alive:
                break
        self._in_turn = False
        self.server.flush()
        self.peers.flush()
        if self.alive:
            self._arm()

    def _arm(self) -> None:
        deadline = self.node.next_deadline()
        if deadline is None or deadline >= self._armed_deadline:
            return
        moment = self.machine.clock.moment_of(deadline)
        if self._armed_for is None or moment < self._armed_for:
            self._armed_for = moment
            self._armed_deadline = deadline
            soonest = self._agenda.now + RING_US
            self._agenda.at(max(moment, soonest), self.run, partial(self._ring, moment))

    def _ring(self, moment: int) -> None:
        if self._armed_for != moment:
            return  # an earlier one took its place
        self._armed_for = None
        self._armed_deadline = NEVER
        deadline = self.node.next_deadline()
        if deadline is None:
            return
        if deadline <= self.machine.clock.monotonic(self._agenda.now):
            self.post(Ticked(self.wall()))
        else:
            self._arm()

    # What the node says about itself

    def _on_serve(self, effect: fx.Serve) -> None:
        if not self.serving:
            self.serving = True
            for endpoint in self.machine.config.endpoints:
                door = _Door(self, endpoint.name, CLIENT_GATE)
                self._network.listen(self.machine.host, endpoint.port, door)

    def _on_stop(self, effect: fx.Stop) -> None:
        self.server.flush()
        if self.disk.close() and effect.opened_all:
            mark = encode_clean_shutdown(BrokerEpoch(effect.broker_epoch))
            self.machine.files.write(CLEAN_MARK, mark)
        self.end("stopped")

    def _on_broken(self, sentence: str) -> None:
        self.end(sentence)

    # The end

    def end(self, reason: str) -> None:
        """Nothing of this process happens any more; who ends it says what becomes of the rest."""
        if self.alive:
            self.alive = False
            self.disk.die()
            self._events.clear()
            self._held.clear()
            self._watcher.on_ended(self, reason)
            self._on_end(self, reason)

    def _take_clean_mark(self) -> tuple[bool, int]:
        files = self.machine.files
        files.mkdir(DATA)
        if not files.exists(CLEAN_MARK):
            return False, -1
        epoch = decode_clean_shutdown(files.read(CLEAN_MARK))
        files.unlink(CLEAN_MARK)
        files.sync_directory(DATA)
        return True, epoch


def _on_fault(effect: fx.Fault) -> None:
    """A node would go on without this replica; a run ends."""
    raise Violation(effect.promise, f"{effect.partition}: {effect.where}")


def _nothing(effect: object) -> None:
    return None


StartFailed = (LogError, OSError)
"""What keeps a process from starting."""
