"""A simulated cluster to play with: brokers, one topic, clients, and what a person can do to them.

Built from one seed like every world of the simulator, with its network, its disks and its checkers.
Nothing happens by itself but what brokers and clients do: faults are commands. The same commands at
the same moments give the same run, which is how it goes back in time (simulated.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from cotidal.console.clients import Clerk, Ledger, Reader, Source
from cotidal.console.losses import Losses
from cotidal.console.picture import Client
from cotidal.console.tap import SeenWorld
from cotidal.console.teller import Teller
from cotidal.console.world import Command, Json, Refused
from cotidal.core.partition.replica import Leadership
from cotidal.node.state import RACK_AWARE
from cotidal.sim.agenda import MS, SECOND
from cotidal.sim.checkers.watch import Watch
from cotidal.sim.checkers.window import hosted_by
from cotidal.sim.network import HostId
from cotidal.sim.probes import Probes
from cotidal.sim.process import Machine
from cotidal.sim.sowing import sow
from cotidal.sim.workloads.history import Acked
from cotidal.sim.world import Shape
from cotidal.values import NodeId, TopicPartition, Uuid

TOPIC: Final = "orders"
NODES_MAX: Final = 7
PARTITIONS_MAX: Final = 1_000
LAG_MS: Final = 4_000
DELAY_US: Final = 12 * MS
JITTER_US: Final = 3 * MS
"""Far enough apart for messages to be seen on their way."""
SET_UP_US: Final = 60 * SECOND
READY_LOOK_US: Final = 50 * MS
START_RETRY_US: Final = 500 * MS
LEVELS: Final = {"all": -1, "1": 1, "0": 0}
RATE_MAX: Final = 200
DELAY_MS_MAX: Final = 5_000
READERS_MAX: Final = 8


class Start(NamedTuple):
    """What a run begins with; with its seed and its commands it is the whole run."""

    seed: int = 1
    nodes: int = 3
    partitions: int = 1
    replication: int = 3
    min_isr: int = 2
    lag_ms: int = LAG_MS
    delay_ms: int = DELAY_US // MS
    elr: bool = True
    unclean: bool = False
    rate: int = 4
    """Records a second with acks=all; what else is produced is asked for later."""

    @classmethod
    def told(cls, command: Command) -> Start:
        nodes = command.number("nodes", 3, least=1, most=NODES_MAX)
        replication = command.number("replication", min(3, nodes), least=1, most=nodes)
        return cls(
            seed=command.number("seed", 1, least=0, most=(1 << 53) - 1),
            nodes=nodes,
            partitions=command.number("partitions", 1, least=1, most=PARTITIONS_MAX),
            replication=replication,
            min_isr=command.number("min_isr", min(2, replication), least=1, most=replication),
            lag_ms=command.number("lag_ms", LAG_MS, least=200, most=60_000),
            delay_ms=command.number("delay_ms", DELAY_US // MS, least=0, most=DELAY_MS_MAX),
            elr=command.flag("elr", True),
            unclean=command.flag("unclean", False),
            rate=command.number("rate", 4, least=0, most=RATE_MAX),
        )


class Sandbox:
    def __init__(self, start: Start) -> None:
        self.start = start
        self.settings = {
            "replica.selector.class": RACK_AWARE,
            "replica.lag.time.max.ms": str(start.lag_ms),
            "default.replication.factor": str(start.replication),
            "min.insync.replicas": str(start.min_isr),
            "unclean.leader.election.interval.ms": "2000",
            "leader.imbalance.check.interval.seconds": "20",
        }
        self.min_isr = start.min_isr
        self.unclean = start.unclean
        self.elr = start.elr
        self.lag_ms = start.lag_ms
        self.world = SeenWorld(start.seed, Shape(nodes=start.nodes, settings=self.settings))
        self.network = self.world.network
        self.network.delay_us = start.delay_ms * MS
        self.network.jitter_us = JITTER_US if start.delay_ms else 0
        self.told: list[Json] = []
        self.samples: list[Json] = []
        self.history = Ledger(self._on_acked)
        self.probes = Probes()
        self.watch = Watch(self.world, self.history, frozenset(), self.probes)
        self.partitions = tuple(TopicPartition(TOPIC, n) for n in range(start.partitions))
        self.losses = Losses(self.world, self.history, self.watch.ghost)
        self.teller = Teller(self.world, self.watch.ghost, self.losses, self.told)
        self.world.watchers += (self.watch, self.teller)
        self.watch.metadata.listeners.append(self.teller)
        self.teller.after_election = self._look_soon
        self.clerk = Clerk(self.world, TOPIC)
        self.sources: dict[str, Source] = {}
        self.readers: dict[str, Reader] = {}
        self.ready = False
        self._readers_made = 0
        self._look_due = False
        self._begin()

    # How it begins

    def _begin(self) -> None:
        for node_id in self.world.machines:
            moment = sow(self.start.seed, "start", node_id).below(40 * MS)
            self.world.agenda.after(moment, self._start_again, node_id)
        self.world.agenda.after(READY_LOOK_US, self._await_brokers)

    def _await_brokers(self) -> None:
        machines = self.world.machines.values()
        if all(each.process is not None and each.process.serving for each in machines):
            self._create()
        else:
            self.world.agenda.after(READY_LOOK_US, self._await_brokers)

    def _create(self) -> None:
        if not self.start.elr:
            self.clerk.keep_elr(False, lambda error: None)
        configs = {
            "min.insync.replicas": str(self.start.min_isr),
            "unclean.leader.election.enable": str(self.start.unclean).lower(),
        }
        self.clerk.create(self.start.partitions, self.start.replication, configs)
        self.world.agenda.after(READY_LOOK_US, self._await_topic)

    def _await_topic(self) -> None:
        if not self.clerk.is_ready:
            self.world.agenda.after(READY_LOOK_US, self._await_topic)
            return
        for level, acks in LEVELS.items():
            source = Source(
                self.world,
                f"acks={level}",
                self.partitions,
                self.history,
                self.probes,
                acks=acks,
            )
            source.begin()
            self.sources[level] = source
        self._add_reader("")
        self.world.agenda.after(READY_LOOK_US, self._await_sources)

    def _await_sources(self) -> None:
        if all(source.is_ready for source in self.sources.values()):
            self.ready = True
            self.sources["all"].set_rate(self.start.rate)
            self.teller.say("start", "The cluster is ready: the producer begins.", big=True)
        else:
            self.world.agenda.after(READY_LOOK_US, self._await_sources)

    def _start_again(self, node_id: NodeId) -> None:
        if self.world.machines[node_id].process is None and not self.world.start(node_id):
            self.world.agenda.after(START_RETRY_US, self._start_again, node_id)

    # What there is to see

    @property
    def exempt(self) -> frozenset[str]:
        return frozenset()

    def min_isr_of(self, partition: TopicPartition) -> int:
        return self.min_isr

    def settings_shown(self) -> Json:
        return {
            "min_isr": self.min_isr,
            "unclean": self.unclean,
            "elr": self.elr,
            "lag_ms": self.lag_ms,
        }

    def clients(self) -> dict[str, Client]:
        found: dict[str, Client] = {}
        for level, source in self.sources.items():
            found[source.name] = {
                "kind": "producer",
                "host": source.host,
                "acks": level,
                "rate": source.per_second,
            }
        for name, reader in self.readers.items():
            found[name] = {
                "kind": "consumer",
                "host": reader.host,
                "positions": {str(each): reader.position(each) for each in reader.partitions},
                "reads_from": {str(each): reader.reads_from(each) for each in reader.partitions},
            }
        return found

    # What is noticed

    def _on_acked(self, acked: Acked) -> None:
        took_us = acked.moment_us - acked.made_us
        level = "all" if acked.acks == -1 else "1"
        sample = {"at": acked.moment_us, "acks": level, "us": took_us, "bytes": acked.size_bytes}
        self.samples.append(sample)
        self.teller.on_acked(acked, level)

    def _look_soon(self) -> None:
        """A new leader: all logs are looked at as soon as this step is over, once for all of it."""
        if not self._look_due:
            self._look_due = True
            self.world.agenda.after(0, self._look)

    def _look(self) -> None:
        self._look_due = False
        self.watch.sweep()

    # What can be done to it

    @property
    def acts(self) -> dict[str, Callable[[Command], None]]:
        return {
            "kill": self._kill,
            "power": self._power,
            "start": self._start,
            "stop": self._stop,
            "pause-node": self._pause,
            "resume-node": self._resume,
            "wipe": self._wipe,
            "cut": self._cut,
            "join": self._join,
            "slow": self._slow,
            "lose": self._lose,
            "produce": self._produce,
            "rate": self._rate,
            "min-isr": self._set_min_isr,
            "unclean": self._set_unclean,
            "elr": self._set_elr,
            "lag": self._set_lag,
            "add-consumer": self._add_consumer,
            "drop-consumer": self._drop_consumer,
            "elect": self._elect,
        }

    def _machine(self, command: Command, name: str = "node") -> Machine:
        number = command.number(name, least=1, most=self.start.nodes)
        return self.world.machines[NodeId(number)]

    def _living(self, command: Command) -> Machine:
        machine = self._machine(command)
        if machine.process is None:
            raise Refused(f"broker {machine.node_id} is down already")
        return machine

    def _down(self, command: Command) -> Machine:
        machine = self._machine(command)
        if machine.process is not None:
            raise Refused(f"broker {machine.node_id} is running: kill it first")
        return machine

    def _kill(self, command: Command) -> None:
        self.world.kill(self._living(command).node_id)

    def _power(self, command: Command) -> None:
        machine = self._living(command)
        entropy = sow(self.start.seed, "power", machine.node_id, self.world.now)
        self.world.cut_power(machine.node_id, entropy)

    def _start(self, command: Command) -> None:
        self._start_again(self._down(command).node_id)

    def _stop(self, command: Command) -> None:
        process = self._living(command).process
        assert process is not None
        self.teller.say(
            "stop",
            f"Broker {process.node_id} is asked to stop: it hands its partitions over first.",
            node=process.node_id,
            big=True,
        )
        process.request_stop()

    def _pause(self, command: Command) -> None:
        process = self._living(command).process
        assert process is not None
        if process.paused:
            raise Refused(f"broker {process.node_id} is paused already")
        process.pause()
        text = f"Broker {process.node_id} is paused: it does nothing, and nobody is told."
        self.teller.say("pause", text, node=process.node_id, big=True)

    def _resume(self, command: Command) -> None:
        process = self._living(command).process
        assert process is not None
        if not process.paused:
            raise Refused(f"broker {process.node_id} is not paused")
        text = f"Broker {process.node_id} goes on where it stood."
        self.teller.say("resume", text, node=process.node_id, big=True)
        process.resume()

    def _wipe(self, command: Command) -> None:
        machine = self._machine(command)
        if machine.process is not None:
            self.world.kill(machine.node_id)
        machine.wipe(Uuid(sow(self.start.seed, "wipe", machine.node_id, self.world.now).bytes16()))
        self.teller.on_wiped(machine.node_id)

    # The network

    def _pair(self, command: Command) -> tuple[HostId, HostId]:
        one, other = self._machine(command, "one").host, self._machine(command, "other").host
        if one == other:
            raise Refused("a link has two ends")
        return min(one, other), max(one, other)

    def _cut(self, command: Command) -> None:
        one, other = self._pair(command)
        self.network.cut(one, other, sow(self.start.seed, "cut", one, other, self.world.now))
        text = f"The link between brokers {one} and {other} is cut: what they send waits."
        self.teller.say("link", text, big=True)

    def _join(self, command: Command) -> None:
        one, other = self._pair(command)
        self.network.unblock(one, other)
        self.network.unblock(other, one)
        text = f"The link between brokers {one} and {other} is whole again."
        self.teller.say("link", text, big=True)

    def _slow(self, command: Command) -> None:
        """One link, or all links of a broker: its region is so far away."""
        by_ms = command.number("by_ms", least=0, most=DELAY_MS_MAX)
        if "node" in command:
            node = self._machine(command).host
            pairs = [
                (min(node, other.host), max(node, other.host))
                for other in self.world.machines.values()
                if other.host != node
            ]
            what = f"Every link of broker {node}"
        else:
            pairs = [self._pair(command)]
            what = "The link between brokers {} and {}".format(*pairs[0])
        for one, other in pairs:
            self.network.slow(one, other, by_ms * MS)
        how = f"takes {by_ms} ms longer each way" if by_ms else "is as fast as before"
        self.teller.say("link", f"{what} {how}.", big=True)

    def _lose(self, command: Command) -> None:
        number = command.number("message", least=1, most=1 << 53)
        if not self.network.doom(number):
            raise Refused("that message has arrived already")
        text = (
            "A message is lost, and its connection with it: its sender cannot know if it was heard."
        )
        self.teller.say("lose", text, big=True)

    # Clients

    def _partition(self, command: Command) -> TopicPartition:
        number = command.number("partition", 0, least=0, most=self.start.partitions - 1)
        return self.partitions[number]

    def _source(self, command: Command) -> Source:
        self._needs_ready()
        return self.sources[command.one_of("acks", tuple(LEVELS), "all")]

    def _needs_ready(self) -> None:
        if not self.ready:
            raise Refused("the cluster is still starting: its topic is not there yet")

    def _produce(self, command: Command) -> None:
        source = self._source(command)
        partition = self._partition(command)
        value = command.text("value", "", longest=1000)
        count = command.number("count", 1, least=1, most=50)
        for number in range(count):
            source.produce(
                partition, f"{value} {number + 1}" if value and count > 1 else value or None
            )

    def _rate(self, command: Command) -> None:
        source = self._source(command)
        source.set_rate(command.number("per_second", least=0, most=RATE_MAX))

    def _add_consumer(self, command: Command) -> None:
        self._needs_ready()
        if len(self.readers) >= READERS_MAX:
            raise Refused(f"{READERS_MAX} consumers are enough")
        near = command.number("near", 0, least=0, most=self.start.nodes)
        self._add_reader(f"node-{near}" if near else "")

    def _add_reader(self, rack: str) -> None:
        self._readers_made += 1
        name = f"c{self._readers_made}"
        reader = Reader(self.world, name, self.partitions, self.history, self.probes, rack=rack)
        self.readers[name] = reader
        reader.begin()

    def _drop_consumer(self, command: Command) -> None:
        name = command.one_of("name", tuple(self.readers))
        self.readers.pop(name).stop()

    # Settings

    def _set_min_isr(self, command: Command) -> None:
        self._needs_ready()
        value = command.number("value", least=1, most=self.start.replication)
        self.min_isr = value
        self.clerk.configure_topic("min.insync.replicas", str(value), self._settled("min ISR"))

    def _set_unclean(self, command: Command) -> None:
        self._needs_ready()
        self.unclean = command.flag("on")
        value = str(self.unclean).lower()
        name = "unclean.leader.election.enable"
        self.clerk.configure_topic(name, value, self._settled(name))

    def _set_elr(self, command: Command) -> None:
        self._needs_ready()
        self.elr = command.flag("on")
        self.clerk.keep_elr(self.elr, self._settled("eligible.leader.replicas.version"))

    def _set_lag(self, command: Command) -> None:
        """A static setting: every broker is given it as if it had started with it."""
        self.lag_ms = command.number("ms", least=200, most=60_000)
        self.settings["replica.lag.time.max.ms"] = str(self.lag_ms)
        for leadership in self.leaderships():
            leadership.lag_max_ms = self.lag_ms
        text = f"replica.lag.time.max.ms is {self.lag_ms} ms from now on."
        self.teller.say("config", text, big=True)

    def leaderships(self) -> list[Leadership]:
        return [
            hosted.replica.leadership
            for process in self.world.running
            for hosted in hosted_by(process).values()
            if hosted.replica.leadership is not None
        ]

    def _elect(self, command: Command) -> None:
        """The preferred leader, or (by hand) anyone at all."""
        self._needs_ready()
        unclean = command.flag("unclean", False)
        partition = self._partition(command)
        then = self._settled(f"{'an unclean' if unclean else 'a preferred'} election")
        self.clerk.elect(partition, unclean=unclean, then=then)

    def _settled(self, what: str) -> Callable[[str], None]:
        def then(error: str) -> None:
            text = f"The controller refuses: {what}, {error}." if error else f"Done: {what}."
            self.teller.say("config", text, big=bool(error))

        return then
