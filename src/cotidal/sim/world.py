"""The world of one run: machines, a network, clients, one seed.

Each place of the world draws from an entropy of its own (sowing.py), all made from the seed: a
change in one (say, another fault) does not shift a number of the others.

    World(seed, shape) -> start nodes -> run -> faults, workloads and checkers plan for themselves
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, NamedTuple

from cotidal.core.machine import Entropy
from cotidal.messages.records.quorum import Endpoint as VoterEndpoint
from cotidal.messages.records.quorum import KRaftVersionFeature, VotersRecordVoter
from cotidal.node.effects import Effect, Endpoint
from cotidal.node.events import Event
from cotidal.node.state import NodeConfig
from cotidal.sim.agenda import MS, Agenda
from cotidal.sim.clock import Clock
from cotidal.sim.network import Address, HostId, Network
from cotidal.sim.process import POWER_LOST, Machine, Process, StartFailed, Watcher
from cotidal.sim.sowing import sow
from cotidal.sim.trace import Trace
from cotidal.values import NodeId, Uuid

CLIENT_PORT: Final = 9092
CONTROLLER_PORT: Final = 9093
FIRST_CLIENT_HOST: Final = 1_000
SNAPSHOT_CHUNK_BYTES: Final = 700
"""Small, so that a snapshot takes several."""


class Shape(NamedTuple):
    """What the cluster is made of."""

    nodes: int = 1
    """Brokers."""
    controllers: int = 0
    """Beside them, with the numbers after theirs; 0: the brokers are."""
    settings: Mapping[str, str] = {}
    """Of every node, as in server.properties."""
    region_ms: int = 0
    """Not 0: every node stands in a region of its own, at most so far from another."""
    drift_ppm_max: int = 0
    wall_skew_ms_max: int = 0
    first_voters: int = 0
    """The first so many vote at first, and that can be changed; 0: all vote, for ever."""
    recorded: bool = False
    """Every life of a node is written down."""


class World(Watcher):
    network_class: ClassVar[type[Network]] = Network
    """Whoever wants to see what travels has one of its own (console/tap.py)."""

    def __init__(self, seed: int, shape: Shape, trace: Trace | None = None) -> None:
        self.seed = seed
        self.shape = shape
        self.trace = Trace() if trace is None else trace
        self.agenda = Agenda()
        self.network = self.network_class(self.agenda, seed)
        self.network.region_us = shape.region_ms * MS
        self.machines: dict[NodeId, Machine] = {}
        self.watchers: list[Watcher] = []
        self.steps = 0
        """Events that nodes have been stepped with."""
        self._events_before = 0
        """Of processes that have ended."""
        self._client_hosts = 0
        self.cluster_id = "sim"
        self._make_machines()

    def _make_machines(self) -> None:
        count = self.shape.nodes + self.shape.controllers
        ids = [NodeId(number) for number in range(1, count + 1)]
        deciding = ids[self.shape.nodes :] or ids
        points = {id_: Endpoint("CONTROLLER", f"node-{id_}", CONTROLLER_PORT) for id_ in deciding}
        first = deciding[: self.shape.first_voters]
        for id_ in ids:
            name = f"node-{id_}"
            draw = sow(self.seed, "machine", id_)
            is_broker = id_ <= self.shape.nodes
            clients = (Endpoint("PLAINTEXT", name, CLIENT_PORT),) if is_broker else ()
            controllers = (Endpoint("CONTROLLER", name, CONTROLLER_PORT),) if id_ in points else ()
            config = NodeConfig(
                node_id=id_,
                cluster_id=self.cluster_id,
                directory_id=Uuid(draw.bytes16()),
                endpoints=clients,
                controller_endpoints=controllers or clients,
                rack=name if is_broker else None,
                settings=self.shape.settings,
                voters=() if first else tuple(points.items()),
                is_broker=is_broker,
                is_controller=id_ in points,
                bootstrap=tuple(points[voter] for voter in first),
                snapshot_chunk_bytes=SNAPSHOT_CHUNK_BYTES,
            )
            self.machines[id_] = Machine(config, self._clock(draw))
            self.network.add_host(HostId(id_), name)
            if self.shape.region_ms:
                self.network.settle(HostId(id_), id_)
        voters = tuple(
            VotersRecordVoter(
                id_,
                self.machines[id_].config.directory_id,
                (VoterEndpoint(*points[id_]),),
                KRaftVersionFeature(0, 1),
            )
            for id_ in first
        )
        for id_ in first:
            self.machines[id_].format_voters(voters)

    def _clock(self, draw: Entropy) -> Clock:
        drift, skew = self.shape.drift_ppm_max, self.shape.wall_skew_ms_max
        return Clock(
            boot_us=draw.below(1 << 40),
            drift_ppm=draw.below(2 * drift + 1) - drift,
            wall_skew_ms=draw.below(2 * skew + 1) - skew,
        )

    @property
    def now(self) -> int:
        return self.agenda.now

    def run_for(self, micros: int) -> None:
        self.agenda.run_until(self.agenda.now + micros)

    @property
    def events(self) -> int:
        """Protocol events of all nodes so far (node/tally.py)."""
        return self._events_before + sum(each.node.tally.protocol_events for each in self.running)

    # Nodes

    @property
    def running(self) -> list[Process]:
        return [each.process for each in self.machines.values() if each.process is not None]

    def addresses(self) -> list[Address]:
        """Where clients may begin."""
        return [(f"node-{each.node_id}", CLIENT_PORT) for each in self.brokers]

    @property
    def brokers(self) -> list[Machine]:
        """Whatever else they are."""
        return [machine for machine in self.machines.values() if machine.config.is_broker]

    def start(self, id_: NodeId) -> bool:
        """A new process on the machine; False if its disk does not let it start."""
        machine = self.machines[id_]
        assert machine.process is None
        self.network.power_back(machine.host)
        try:
            process = Process(
                machine,
                self.agenda,
                self.network,
                node_entropy=sow(self.seed, "node", id_, machine.incarnations),
                disk_entropy=sow(self.seed, "disk", id_, machine.incarnations),
                watcher=self,
                on_end=self._on_end,
                recorded=self.shape.recorded,
            )
        except StartFailed as error:
            self.trace.say(self.now, id_, f"could not start: {error}")
            self.network.process_died(machine.host)
            return False
        machine.process = process
        process.begin()
        return True

    def kill(self, id_: NodeId) -> None:
        """kill -9: the page cache survives, peers are told by the kernel."""
        process = self.machines[id_].process
        if process is not None:
            process.end("killed")

    def cut_power(self, id_: NodeId, entropy: Entropy) -> None:
        """What was not synced may be lost, and nobody is told; ``entropy`` says how much."""
        machine = self.machines[id_]
        process = machine.process
        if process is not None:
            self.network.power_lost(machine.host, entropy)
            process.end(POWER_LOST)
            machine.files.crash(entropy.below)

    def _on_end(self, process: Process, reason: str) -> None:
        machine = process.machine
        machine.process = None
        self._events_before += process.node.tally.protocol_events
        if self.network.has_power(machine.host):
            self.network.process_died(machine.host)
        machine.files.crash()

    # Clients

    def add_client_host(self) -> HostId:
        self._client_hosts += 1
        host = HostId(FIRST_CLIENT_HOST + self._client_hosts)
        self.network.add_host(host, f"host-{host}")
        if self.shape.region_ms:
            home = 1 + sow(self.seed, "home", host).below(self.shape.nodes)
            self.network.settle(host, home)
        return host

    # Watching

    def on_stepped(self, process: Process, event: Event, effects: tuple[Effect, ...]) -> None:
        self.steps += 1
        self.trace.add(self.agenda.now, process.machine.host, event, effects)
        for watcher in self.watchers:
            watcher.on_stepped(process, event, effects)

    def on_started(self, process: Process) -> None:
        self.trace.say(self.now, process.node_id, f"started, incarnation {process.incarnation}")
        for watcher in self.watchers:
            watcher.on_started(process)

    def on_ended(self, process: Process, reason: str) -> None:
        self.trace.say(self.now, process.node_id, f"ended: {reason}")
        for watcher in self.watchers:
            watcher.on_ended(process, reason)
