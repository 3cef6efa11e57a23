"""One run: a seed and a plan -> what happened.

setup     nodes start, the administrator creates the workload's topics
faults    producers, consumers and the administrator work while the nemesis strikes
healing   faults stop; producers finish; every promise of progress must come about
reading   a new consumer reads everything from the beginning; logs are looked at once more
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Final, NamedTuple

from cotidal.invariants import ACKED_IS_KEPT, LEADER_APPEARS, READS_REACH_THE_END
from cotidal.node.state import RACK_AWARE
from cotidal.sim.agenda import MS, SECOND
from cotidal.sim.checkers.kept import look_at_kept, look_at_read
from cotidal.sim.checkers.liveness import missing
from cotidal.sim.checkers.lives import LifeChecker
from cotidal.sim.checkers.sightings import Sightings
from cotidal.sim.checkers.snapshots import SnapshotChecker
from cotidal.sim.checkers.watch import Watch
from cotidal.sim.faults.nemesis import Nemesis
from cotidal.sim.faults.schedule import Schedule, draw_schedule
from cotidal.sim.plan import Plan
from cotidal.sim.probes import Probes
from cotidal.sim.sowing import sow
from cotidal.sim.trace import LINES_KEPT, Trace
from cotidal.sim.violation import Violation, promise_name
from cotidal.sim.workloads.admin import SCRATCH, Admin
from cotidal.sim.workloads.committed_reader import CommittedReader
from cotidal.sim.workloads.consumer import Consumer
from cotidal.sim.workloads.consumer_member import ConsumerMember
from cotidal.sim.workloads.group_ledger import GroupLedger
from cotidal.sim.workloads.group_member import GroupMember
from cotidal.sim.workloads.guest import Guest, Household
from cotidal.sim.workloads.history import History
from cotidal.sim.workloads.keeper import Keeper
from cotidal.sim.workloads.member import Member
from cotidal.sim.workloads.operator import Operator
from cotidal.sim.workloads.patterns import PATTERNS
from cotidal.sim.workloads.processor import Processor
from cotidal.sim.workloads.producer import Producer
from cotidal.sim.workloads.scribbler import Scribbler
from cotidal.sim.workloads.stray import STRAYS, STRAYS_PARTITIONS, Identity, Stray
from cotidal.sim.workloads.transaction_ledger import (
    COPIES,
    COPIES_PARTITIONS,
    TransactionLedger,
)
from cotidal.sim.workloads.visitor import Visitor
from cotidal.sim.workloads.voters import VoterAdmin
from cotidal.sim.world import Shape, World
from cotidal.values import NodeId, TopicPartition

SETUP_US: Final = 60 * SECOND
HEALING_US: Final = 120 * SECOND
READING_US: Final = 60 * SECOND
LOOK_US: Final = 200 * MS
SCRIBBLE_GAP_US: Final = 200 * MS
VOTERS_FEWEST: Final = 2
OTHERS: Final = (COPIES, STRAYS)
"""Topics that producers do not write to, nor consumers read."""


class Outcome(NamedTuple):
    seed: int
    plan: str
    broken: str | None
    """The name of the promise that was broken; None if all held."""
    sentence: str
    moment_us: int
    faults_us: int
    """When the schedule's time began."""
    steps: int
    """Events that nodes were stepped with."""
    events: int
    """What the machines in them were told or had to decide (node/tally.py)."""
    sent: int
    acknowledged: int
    unknown: int
    read: int
    seen: dict[str, int]
    trace: tuple[str, ...]
    """The last lines, if something was broken."""


class Run:
    world_class: type[World] = World

    def __init__(
        self,
        seed: int,
        plan: Plan,
        trace: Trace | None = None,
        schedule: Schedule | None = None,
    ) -> None:
        """``schedule``: what is done to the cluster; drawn from the seed if it is not given."""
        self.seed = seed
        self.plan = plan
        self.schedule = draw_schedule(seed, plan) if schedule is None else schedule
        self.world = self.world_class(seed, _shape(plan), trace)
        self.history = History()
        self.history.may_lose = plan.may_lose
        self.probes = Probes()
        self.watch = Watch(self.world, self.history, plan.exempt, self.probes)
        sightings = Sightings(self.world, self.watch.ghost, self.probes)
        self.lives = LifeChecker(self.world)
        self.world.watchers += (self.watch, sightings, SnapshotChecker(self.probes))
        if plan.recorded:
            self.world.watchers.append(self.lives)
        self.watch.metadata.listeners.append(sightings)
        self.world.trace.names = lambda: self.watch.ghost.image.topic_names
        self.nemesis = Nemesis(
            self.world, self.schedule, self.probes, lambda: self.watch.ghost.image
        )
        topics = {"orders": plan.partitions, "events": 1}
        if plan.processors:
            topics[COPIES] = COPIES_PARTITIONS
        if plan.strays:
            topics[STRAYS] = STRAYS_PARTITIONS
        topic_settings = {"min.insync.replicas": str(plan.min_isr)} if plan.nodes > 1 else {}
        self.admin = Admin(
            self.world,
            self.probes,
            topics=topics,
            replication=plan.replication,
            configs={**topic_settings, **plan.topic},
            gap_us=plan.admin_gap_ms * MS,
            elr=plan.elr,
        )
        self.scribbler = Scribbler(self.world, self.probes, SCRATCH, gap_us=SCRIBBLE_GAP_US)
        self.operator = Operator(
            self.world,
            self.probes,
            partitions=self.admin.partitions,
            duties=plan.duties,
            replicas_min=min(plan.replication, max(2, plan.min_isr)),
            min_isr=plan.min_isr,
            gap_us=plan.duty_gap_ms * MS,
            furthest=lambda: self.watch.ghost.image,
        )
        self.voter_admin = VoterAdmin(
            self.world, self.probes, fewest=VOTERS_FEWEST, gap_us=plan.voters_gap_ms * MS
        )
        self.producers: list[Producer] = []
        self.consumers: list[Consumer] = []
        self.members: list[Member] = []
        self.groups = GroupLedger(may_lose=plan.may_lose, coordinator=self.watch.ghost.coordinator)
        self.processors: list[Processor] = []
        self.readers: list[CommittedReader] = []
        self.transactions = TransactionLedger()
        self.keepers: list[Keeper] = []
        self.visitors: list[Visitor] = []
        self.final = History()
        """What a new consumer reads from beginning to end, when all is over."""
        self.final.may_lose = plan.may_lose
        self.faults_us = 0
        """When the schedule's time began."""

    def go(self) -> Outcome:
        """The whole run. Whatever is broken ends it."""
        broken, sentence = None, ""
        try:
            for micros in self.course():
                self.world.run_for(micros)
        except Violation as violation:
            broken, sentence = violation.name, violation.sentence
        except AssertionError as fault:
            broken = promise_name(str(fault))
            sentence = _where(fault)
        except Exception as fault:
            broken, sentence = "FAULT", _where(fault)
        return self._outcome(broken, sentence)

    def course(self) -> Iterator[int]:
        """All that is done, between waits: whoever goes through it lets so much time pass."""
        yield from self._set_up()
        yield from self._endure()
        yield from self._heal()
        yield from self._read_all()

    def _set_up(self) -> Iterator[int]:
        for node_id in self.world.machines:
            moment = sow(self.seed, "start", node_id).below(300 * MS)
            self.world.agenda.after(moment, self._start, node_id)
        until = self.world.now + SETUP_US
        while self.plan.gathered and not self._all_serve() and self.world.now < until:
            yield LOOK_US
        self.admin.begin()
        while not self.admin.ready:
            if self.world.now >= until:
                raise Violation(LEADER_APPEARS, "the workload's topics could not be created")
            yield LOOK_US
        partitions = self._inputs()
        for number, acks in enumerate(self.plan.acks):
            producer = Producer(
                self.world,
                f"p{number}",
                partitions,
                self.history,
                self.probes,
                acks=acks,
                idempotent=acks == -1 and self._is_idempotent(number),
                gap_us=self.plan.produce_gap_ms * MS,
                keys=self.plan.keys,
            )
            self.producers.append(producer)
            producer.begin()
        if self.plan.admin_gap_ms:
            self.scribbler.begin()
        self.operator.begin()
        if self.plan.voters_gap_ms:
            self.voter_admin.begin()
        for number in range(self.plan.consumers):
            self._add_consumer(f"c{number}", partitions, bold=number % 2 == 1)
        for number in range(self.plan.members):
            self._add_member(GroupMember, f"m{number}", partitions)
        for number in range(self.plan.consumer_members):
            self._add_member(ConsumerMember, f"n{number}", partitions)
        for number in range(self.plan.processors):
            self._add_processor(number, partitions)
        if self.plan.processors:
            self._add_reader("r0")
            self._add_reader("r1", bold=True)
        self._add_visitors(partitions)

    def _inputs(self) -> tuple[TopicPartition, ...]:
        """Partitions of the workload that producers write to."""
        return tuple(each for each in self.admin.partitions if each.topic not in OTHERS)

    def _add_visitors(self, partitions: tuple[TopicPartition, ...]) -> None:
        homes = (Household("guests-0"), Household("guests-1"))
        identities = (Identity("stray-0"), Identity("stray-1"))
        scratch = tuple(TopicPartition(topic, 0) for topic in SCRATCH)
        self.keepers += [
            Keeper(self.world, f"keeper-{number}", partitions, self.probes)
            for number in range(self.plan.keepers)
        ]
        self.visitors += [
            Guest(self.world, f"guest-{number}", homes, (*partitions, *scratch), self.probes)
            for number in range(self.plan.guests)
        ]
        self.visitors += [
            Stray(self.world, f"stray-{number}", identities, self.probes)
            for number in range(self.plan.strays)
        ]
        callers: list[Keeper | Visitor] = [*self.keepers, *self.visitors]
        for each in callers:
            each.begin()

    def _all_serve(self) -> bool:
        processes = [machine.process for machine in self.world.machines.values()]
        return all(process is not None and process.serving for process in processes)

    def _is_idempotent(self, number: int) -> bool:
        match self.plan.idempotence:
            case "on":
                return True
            case "off":
                return False
            case _:
                return number % 2 == 0

    def _start(self, node_id: NodeId) -> None:
        assert self.world.start(node_id), "a new disk lets its node start"

    def _add_consumer(
        self,
        name: str,
        partitions: tuple[TopicPartition, ...],
        history: History | None = None,
        *,
        bold: bool = False,
    ) -> Consumer:
        """``bold``: reads from followers too, in sessions."""
        consumer = Consumer(
            self.world,
            name,
            partitions,
            self.history if history is None else history,
            self.probes,
            may_lose=self.plan.may_lose,
            rack=self._rack(name) if bold else "",
            sessions=bold,
            gaps=self.plan.keys > 0,
        )
        self.consumers.append(consumer)
        consumer.begin()
        return consumer

    def _add_member(
        self, make: type[Member], name: str, partitions: tuple[TopicPartition, ...]
    ) -> None:
        """Two groups; the last member of each protocol in each is a static one."""
        number = int(name[1:])
        classic = make is GroupMember
        count = self.plan.members if classic else self.plan.consumer_members
        member = make(
            self.world,
            name,
            f"group-{number % 2}",
            partitions,
            self.groups,
            self.probes,
            static=number >= count - 2,
        )
        if isinstance(member, ConsumerMember):
            member.lookup_us = self.plan.lookup_ms * MS
            if self.plan.patterns:
                member.pattern = PATTERNS[member.draw(len(PATTERNS))]
        self.members.append(member)
        member.begin()

    def _add_processor(self, number: int, partitions: tuple[TopicPartition, ...]) -> None:
        processor = Processor(
            self.world,
            f"x{number}",
            "processors",
            partitions,
            self.groups,
            self.transactions,
            self.probes,
        )
        self.processors.append(processor)
        processor.begin()

    def _add_reader(self, name: str, *, bold: bool = False) -> CommittedReader:
        copies = tuple(each for each in self.admin.partitions if each.topic == COPIES)
        rack = self._rack(name) if bold else ""
        reader = CommittedReader(
            self.world, name, copies, self.transactions, self.probes, rack=rack
        )
        self.readers.append(reader)
        reader.begin()
        return reader

    def _rack(self, name: str) -> str:
        racks = [machine.config.rack or "" for machine in self.world.brokers]
        return racks[sow(self.seed, "rack", name).below(len(racks))]

    def _endure(self) -> Iterator[int]:
        self.faults_us = self.world.now
        self.nemesis.begin()
        yield self.plan.seconds * SECOND
        self.nemesis.heal()

    def _heal(self) -> Iterator[int]:
        for producer in self.producers:
            producer.stop()
        callers: list[Member | Keeper | Visitor] = [*self.members, *self.processors]
        for caller in (*callers, *self.keepers, *self.visitors):
            caller.stop()
        self.admin.stop()
        self.scribbler.stop()
        self.operator.stop()
        self.voter_admin.stop()
        until = self.world.now + HEALING_US
        while True:
            yield LOOK_US
            first = next(self._missing(), None)
            if first is None:
                return
            if self.world.now >= until:
                raise Violation(*first)

    def _missing(self) -> Iterator[tuple[str, str]]:
        yield from missing(self.world, self.producers, (*self.members, *self.processors))
        if not self.processors:
            return
        for partition in self.admin.partitions:
            at = [each.position(partition) for each in self.processors]
            reached = max((each for each in at if each is not None), default=-1)
            if partition.topic not in OTHERS and reached != self._end(partition):
                yield READS_REACH_THE_END, f"{partition} is processed up to {reached}"

    def _read_all(self) -> Iterator[int]:
        """Everybody reads to the end, and a new consumer all there is, with all that was
        acknowledged."""
        self.watch.audit()
        partitions = self.admin.partitions
        last = self._add_consumer("last", partitions, self.final)
        judging = self._add_reader("judge") if self.processors else None
        for consumer in (*self.consumers, *self.readers):
            consumer.restless = False
        for keeper in self.keepers:
            keeper.judge()
        until = self.world.now + READING_US
        while behind := list(self._behind()):
            if self.world.now >= until:
                raise Violation(READS_REACH_THE_END, "; ".join(behind))
            yield LOOK_US
        self.watch.audit()
        self.lives.judge()
        if ACKED_IS_KEPT in self.plan.exempt:
            look_at_read(self.history, self.final)
        else:
            look_at_kept(self.history, self.final, last.beginning)
        if judging is not None:
            self.transactions.judge(
                judging.results, {each: self._end(each) or 0 for each in self._inputs()}
            )

    def _behind(self) -> Iterator[str]:
        for consumer in (*self.consumers, *self.readers):
            for partition in consumer.partitions:
                if not self._has_read(consumer, partition):
                    reached = consumer.position(partition)
                    yield f"{consumer.name} has read {partition} up to {reached}"
        for keeper in self.keepers:
            if not keeper.judged:
                yield f"{keeper.name} has not been told what it keeps"

    def _has_read(self, consumer: Consumer, partition: TopicPartition) -> bool:
        end = self._end(partition)
        return end is not None and consumer.position(partition) >= end

    def _end(self, partition: TopicPartition) -> int | None:
        """Of its leader's log, while there is one."""
        told = self.watch.ghost.told(partition)
        process = None if told is None else self.world.machines[told.leader].process
        log = None if process is None else process.disk.log_of(partition)
        return None if log is None else log.end_offset

    def _outcome(self, broken: str | None, sentence: str) -> Outcome:
        history = self.history
        return Outcome(
            self.seed,
            self.plan.name,
            broken,
            sentence,
            self.world.now,
            self.faults_us,
            self.world.steps,
            self.world.events,
            history.sent,
            history.acknowledged,
            history.unknown,
            history.read,
            self.probes.seen,
            tuple(self.world.trace.last(LINES_KEPT)) if broken else (),
        )


def run(
    seed: int, plan: Plan, trace: Trace | None = None, schedule: Schedule | None = None
) -> Outcome:
    return Run(seed, plan, trace, schedule).go()


def _shape(plan: Plan) -> Shape:
    return Shape(
        nodes=plan.nodes,
        controllers=plan.controllers,
        region_ms=plan.region_ms,
        first_voters=plan.first_voters,
        recorded=plan.recorded,
        settings={**_defaults(plan), **plan.settings},
        drift_ppm_max=20_000,
        wall_skew_ms_max=5_000,
    )


def _defaults(plan: Plan) -> dict[str, str]:
    """Promises hold for every topic, so those that nobody configures have the plan's settings."""
    found = {
        "replica.selector.class": RACK_AWARE,
        "default.replication.factor": str(plan.replication),
        "offsets.topic.replication.factor": str(plan.replication),
        "transaction.state.log.replication.factor": str(plan.replication),
        "transaction.state.log.min.isr": str(plan.min_isr),
        "num.partitions": "1",
    }
    if plan.nodes > 1:
        found["min.insync.replicas"] = str(plan.min_isr)
    return found | dict(plan.topic)


def _where(fault: BaseException) -> str:
    frames = traceback.extract_tb(fault.__traceback__)[-4:]
    path = " < ".join(
        f"{frame.filename.rpartition('/cotidal/')[2]}:{frame.lineno} {frame.name}"
        for frame in reversed(frames)
    )
    return f"{type(fault).__name__}: {fault}; in {path}"
