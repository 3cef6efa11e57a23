"""A world for scripts: one partition, several replicas, and a controller played by hand. Shipped.

Deterministic: nothing happens but what is asked for. Time stands still until it is moved, metadata
reaches the broker that is told, an answer arrives when it is delivered; the disk obeys at once.
``partition_commands`` are the words in which a script asks.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cotidal.core.partition.effects import (
    AdvanceLogStart,
    AppendFetched,
    CompleteAcks,
    EndMoved,
    LeadershipLost,
    PartitionEffect,
    ProposeIsr,
    Readable,
    RememberAborted,
    RememberEpochs,
    RememberProducers,
    StartOver,
    Truncate,
)
from cotidal.core.partition.follower import (
    Answered,
    LeaderEnds,
    Question,
    on_answered,
    on_leader_ends,
    on_log_cut,
    question,
    question_of_ends,
)
from cotidal.core.partition.follower import on_appended as follower_appended
from cotidal.core.partition.leader import (
    ACKS_ALL,
    FollowerFetched,
    IsrAnswered,
    WriteRules,
    acks_outcome,
    admit_batch,
    become_leader,
    on_follower_fetched,
    on_isr_answered,
    on_partition_changed,
    shrink_isr,
)
from cotidal.core.partition.leader import on_appended as leader_appended
from cotidal.core.partition.reading import (
    Diverged,
    Granted,
    admit_replica_fetch,
    check_leader_epoch,
)
from cotidal.core.partition.replica import Appointment, Replica, on_log_opened, on_start_moved
from cotidal.core.trace import line, state_line
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.batch import NO_BATCHES
from cotidal.testing.memory_log import MemoryLog, batch_of
from cotidal.testing.scripts import ScriptError
from cotidal.values import (
    NO_EPOCH,
    NO_OFFSET,
    ZERO_UUID,
    BrokerEpoch,
    EpochEntry,
    LeaderEpoch,
    Millis,
    NodeId,
    Offset,
    PartitionEpoch,
    TopicPartition,
    WallMillis,
)

PARTITION: Final = TopicPartition("orders", 0)
RULES: Final = WriteRules(1 << 20, 1 << 30, 1 << 40, stamps_time=False)
FIRST_BROKER_EPOCH: Final = 100
"""Broker 3 registers as 103; its next life is 203."""


class Parked(NamedTuple):
    """An acks=all write that waits."""

    base_offset: Offset
    next_offset: Offset
    deadline: Millis


class Broker:
    """One broker: its disk, and while it lives a replica."""

    __slots__ = ("broker_epoch", "inbox", "log", "node_id", "parked", "replica")

    def __init__(self, node_id: NodeId, log: MemoryLog) -> None:
        self.node_id = node_id
        self.log = log
        self.broker_epoch = BrokerEpoch(FIRST_BROKER_EPOCH + node_id)
        self.replica: Replica | None = None
        self.parked: list[Parked] = []
        self.inbox: list[Answered | LeaderEnds] = []
        """Answers that are on their way to it."""

    @property
    def living(self) -> Replica:
        if self.replica is None:
            raise ScriptError(f"broker {self.node_id} is down")
        return self.replica

    def open(self) -> None:
        self.replica = Replica(PARTITION, ZERO_UUID)
        on_log_opened(
            self.replica,
            start_offset=self.log.start,
            end_offset=self.log.end,
            high_watermark=self.log.checkpoint,
            epochs=self.log.epochs,
            producers=None,
            headers_after=self.log.headers,
        )

    def kill(self, *, keeps: Offset) -> None:
        """Everything in memory is gone, and what the disk had not been made to keep."""
        self.replica = None
        self.parked.clear()
        self.inbox.clear()
        if keeps < self.log.end:
            self.log.truncate(keeps)


class Sender(NamedTuple):
    """A broker that fetches, and the incarnation that it says it is."""

    node_id: NodeId
    broker_epoch: BrokerEpoch


class FoundLog(NamedTuple):
    """What is on a disk when a story begins: one batch a record, named after its offset."""

    start: Offset = Offset(0)
    end: Offset = Offset(0)
    high_watermark: Offset = Offset(0)
    epochs: tuple[EpochEntry, ...] = ()

    def written(self) -> MemoryLog:
        log = MemoryLog(self.start)
        for offset in range(self.start, self.end):
            within = max(entry for entry in self.epochs if entry.start_offset <= offset)
            record = batch_of((f"r{offset}",))
            log.write(record, base_offset=Offset(offset), epoch=within.epoch)
        log.epochs = self.epochs if log.end > log.start else ()
        log.checkpoint = self.high_watermark
        return log


class Committed(NamedTuple):
    """What the controller has decided about the partition."""

    leader: NodeId = NodeId(-1)
    epoch: LeaderEpoch = NO_EPOCH
    partition_epoch: PartitionEpoch = PartitionEpoch(0)
    replicas: tuple[NodeId, ...] = (NodeId(1), NodeId(2), NodeId(3))
    isr: tuple[NodeId, ...] = ()
    min_isr: int = 1
    lag_max_ms: int = 10_000


class PartitionWorld:
    """The brokers, what the controller has decided, and what there is to tell of a command."""

    def __init__(self) -> None:
        self.now = Millis(0)
        self.brokers: dict[NodeId, Broker] = {}
        self.committed = Committed()
        self.registered: dict[NodeId, BrokerEpoch] = {}
        self.racks: dict[NodeId, str] = {}
        self.last_grant: IsrAnswered | None = None
        self._met: set[NodeId] = set()
        self._lines: list[tuple[NodeId | None, str]] = []
        self._touched: dict[NodeId, None] = {}

    def begin(self) -> None:
        """Forget what was told of the command before."""
        self._lines, self._touched = [], {}

    def told(self) -> list[str]:
        """What happened since, then where the brokers stand to which it happened."""
        for node_id in sorted(self._touched):
            replica = self.brokers[node_id].replica
            if replica is not None:
                replica.check()
                self.say(node_id, state_line(replica))
        many = len(self.brokers) > 1
        return [f"{who}: {what}" if many and who else what for who, what in self._lines]

    def say(self, who: NodeId | None, what: str) -> None:
        self._lines.append((who, what))

    def touch(self, broker: Broker) -> None:
        self._touched[broker.node_id] = None

    def broker(self, number: int) -> Broker:
        found = self.brokers.get(NodeId(number))
        if found is None:
            raise ScriptError(f"there is no broker {number} in this script yet")
        return found

    def leaders(self) -> list[Broker]:
        return [
            broker
            for _, broker in sorted(self.brokers.items())
            if broker.replica is not None and broker.replica.leadership is not None
        ]

    def found(self, node_id: NodeId, log: FoundLog) -> Broker:
        """The broker of this id; a new one finds this log on its disk."""
        broker = self.brokers.get(node_id)
        if broker is None:
            broker = self.brokers[node_id] = Broker(node_id, log.written())
            self._meet(node_id)
            broker.open()
        return broker

    def _meet(self, node_id: NodeId) -> None:
        """A broker that is heard of for the first time is registered; later, commands decide."""
        if node_id not in self._met:
            self._met.add(node_id)
            self.registered[node_id] = BrokerEpoch(FIRST_BROKER_EPOCH + node_id)

    # --- metadata -------------------------------------------------------------------------------

    def commit(self, decided: Committed) -> None:
        """The controller has decided; nobody has heard of it yet."""
        before = self.committed
        if decided != before:
            decided = decided._replace(partition_epoch=PartitionEpoch(before.partition_epoch + 1))
        self.committed = decided
        for node_id in decided.replicas:
            self._meet(node_id)

    def tell_leader(self, broker: Broker) -> None:
        told, replica = self.committed, broker.living
        appointment = Appointment(
            node_id=broker.node_id,
            epoch=told.epoch,
            partition_epoch=told.partition_epoch,
            replicas=told.replicas,
            isr=told.isr,
            min_isr=told.min_isr,
            lag_max_ms=told.lag_max_ms,
            active=dict(self.registered),
        )
        leads = replica.leadership is not None and replica.leader_epoch == told.epoch
        take = on_partition_changed if leads else become_leader
        self.obey(broker, take(replica, appointment, self.now))

    # --- replication ----------------------------------------------------------------------------

    def ask(self, broker: Broker, *, batches_max: int) -> bool:
        """Put the leader's answer on its way; False if there is nothing to ask, or nobody."""
        replica = broker.living
        self.touch(broker)
        ends = question_of_ends(replica, self.now)
        asked = ends or question(replica, self.now)
        if asked is None or replica.following is None:
            self.say(broker.node_id, f"asks nothing: {_silence(replica, self.now)}")
            return False
        leader = self.brokers.get(replica.following.leader)
        self.say(broker.node_id, line(asked) + (" for the leader's ends" if ends else ""))
        if leader is None or leader.replica is None:
            self.say(broker.node_id, f"broker {replica.following.leader} does not answer")
            return False
        if ends is not None:
            answer = self._ends_of(leader, asked)
        else:
            answer = self._answer(leader, broker, asked, batches_max)
        self.say(leader.node_id, line(answer))
        broker.inbox.append(answer)
        return True

    def _answer(
        self, leader: Broker, broker: Broker, asked: Question, batches_max: int
    ) -> Answered:
        """The high watermark of an answer is from before the fetch that it answers."""
        replica = leader.living
        told = Answered(
            asked, ErrorCode.NONE, replica.high_watermark, replica.start_offset, None, NO_BATCHES
        )
        verdict = self.fetched(leader, Sender(broker.node_id, broker.broker_epoch), asked)
        match verdict:
            case Refusal(error):
                return told._replace(error=error)
            case Diverged(end):
                return told._replace(diverging=end)
            case Granted(below):
                found = leader.log.read(asked.offset, below=below, batches_max=batches_max)
                return told._replace(batches=found)

    def _ends_of(self, leader: Broker, asked: Question) -> Answered | LeaderEnds:
        refusal = check_leader_epoch(leader.living, asked.leader_epoch)
        if refusal is None:
            return LeaderEnds(asked, leader.living.start_offset, leader.living.end_offset)
        return Answered(asked, refusal.error, NO_OFFSET, NO_OFFSET, None, NO_BATCHES)

    def deliver(self, broker: Broker, answer: Answered | LeaderEnds) -> None:
        replica = broker.living
        if isinstance(answer, LeaderEnds):
            self.obey(broker, on_leader_ends(replica, answer))
        else:
            self.obey(broker, on_answered(replica, answer, self.now))

    def fetched(
        self, leader: Broker, sender: Sender, asked: Question
    ) -> Granted | Diverged | Refusal:
        """Only a fetch that is granted says how far a follower has got."""
        replica = leader.living
        self.touch(leader)
        verdict = admit_replica_fetch(
            replica,
            node_id=sender.node_id,
            broker_epoch=sender.broker_epoch,
            offset=asked.offset,
            current_epoch=asked.leader_epoch,
            last_fetched_epoch=asked.last_fetched_epoch,
        )
        if isinstance(verdict, Granted):
            event = FollowerFetched(
                sender.node_id, asked.offset, asked.start_offset, sender.broker_epoch
            )
            self.obey(leader, on_follower_fetched(replica, event, self.now))
        return verdict

    # --- clients --------------------------------------------------------------------------------

    def append(
        self,
        leader: Broker,
        values: tuple[str, ...],
        *,
        acks: int,
        producer_id: int = -1,
        producer_epoch: int = 0,
        sequence: int = 0,
        timeout_ms: int = 0,
        quietly: bool = False,
    ) -> None:
        """A producer's write; ``quietly`` if it is of before the story."""
        replica, node_id = leader.living, leader.node_id
        self.touch(leader)
        said = len(self._lines)
        batches = batch_of(
            values, producer_id=producer_id, producer_epoch=producer_epoch, sequence=sequence
        )
        verdict = admit_batch(replica, batches, acks=acks, rules=RULES, wall=WallMillis(0))
        if not quietly:
            self.say(node_id, line(verdict))
        if isinstance(verdict, Refusal):
            return
        waiting = Parked(verdict.base_offset, verdict.next_offset, Millis(self.now + timeout_ms))
        if acks == ACKS_ALL:
            leader.parked.append(waiting)
        if verdict.write:
            assert replica.leadership is not None
            leader.log.write(
                batches, base_offset=verdict.base_offset, epoch=replica.leadership.epoch
            )
            effects = leader_appended(replica, verdict.next_offset, self.now)
            self.obey(leader, effects)
        else:
            self._complete(leader)
        if quietly:
            del self._lines[said:]
        elif acks == ACKS_ALL and waiting in leader.parked:
            self.say(node_id, f"park {_span(waiting)} until hw={waiting.next_offset}")
        elif acks == 1:
            self.say(node_id, f"acknowledge {_span(waiting)}")

    def _complete(self, leader: Broker) -> None:
        """Answer every acks=all write whose fate is known."""
        still: list[Parked] = []
        for waiting in leader.parked:
            outcome = acks_outcome(leader.living, next_offset=waiting.next_offset)
            if isinstance(outcome, Refusal):
                self.say(leader.node_id, f"{_span(waiting)} {line(outcome)}")
            elif outcome:
                self.say(leader.node_id, f"acknowledge {_span(waiting)}")
            else:
                still.append(waiting)
        leader.parked = still

    # --- the controller -------------------------------------------------------------------------

    def grant(self, asked: ProposeIsr) -> IsrAnswered:
        told = self.committed
        isr = tuple(member.node_id for member in asked.isr)
        partition_epoch = PartitionEpoch(told.partition_epoch + 1)
        self.committed = told._replace(isr=isr, partition_epoch=partition_epoch)
        answer = IsrAnswered(asked, ErrorCode.NONE, asked.leader_epoch, partition_epoch, isr)
        self.last_grant = answer
        return answer

    def answer_isr(self, leader: Broker, answer: IsrAnswered) -> None:
        self.say(leader.node_id, line(answer))
        self.obey(leader, on_isr_answered(leader.living, answer, self.now))

    def proposal_of(self, leader: Broker) -> ProposeIsr:
        leadership = leader.living.leadership
        if leadership is None or leadership.proposal is None:
            raise ScriptError(f"broker {leader.node_id} has proposed nothing")
        return leadership.proposal

    def tell_registrations(self) -> None:
        """The leader hears who may be in an ISR."""
        leader = self.brokers.get(self.committed.leader)
        if leader is not None and leader.replica is not None:
            self.tell_leader(leader)

    # --- time -----------------------------------------------------------------------------------

    def tick(self, passed_ms: int) -> None:
        """Time passes; every half of the lag time leaders look for members that fell behind."""
        until = self.now + passed_ms
        half = max(self.committed.lag_max_ms // 2, 1)
        while self.now < until:
            self.now = Millis(min(until, (self.now // half + 1) * half))
            for broker in self.leaders():
                self.touch(broker)
                if self.now % half == 0:
                    self.obey(broker, shrink_isr(broker.living, self.now))
                self._time_out(broker)

    def _time_out(self, broker: Broker) -> None:
        late = [waiting for waiting in broker.parked if waiting.deadline <= self.now]
        for waiting in late:
            broker.parked.remove(waiting)
            error = ErrorCode.REQUEST_TIMED_OUT
            self.say(broker.node_id, f"{_span(waiting)} refuse {error.name}({int(error)})")

    # --- effects --------------------------------------------------------------------------------

    def obey(self, broker: Broker, effects: tuple[PartitionEffect, ...]) -> None:
        """Obey in order. What the state line shows anyway is not said twice."""
        self.touch(broker)
        for effect in effects:
            match effect:
                case EndMoved() | Readable() | RememberProducers() | RememberAborted():
                    pass
                case RememberEpochs(entries):
                    broker.log.epochs = entries
                case CompleteAcks() | LeadershipLost():
                    self.say(broker.node_id, line(effect))
                    self._complete(broker)
                case ProposeIsr():
                    self.say(broker.node_id, line(effect))
                case AppendFetched(batches):
                    self.say(broker.node_id, line(effect))
                    broker.log.append(batches)
                    self.obey(broker, follower_appended(broker.living, broker.log.end))
                case Truncate(offset):
                    self.say(broker.node_id, line(effect))
                    broker.log.truncate(offset)
                    self._cut(broker)
                case StartOver(offset):
                    self.say(broker.node_id, line(effect))
                    broker.log.start_over(offset)
                    self._cut(broker)
                case AdvanceLogStart(offset):
                    self.say(broker.node_id, line(effect))
                    broker.log.advance_start(offset)
                    if on_start_moved(broker.living, offset):
                        broker.log.epochs = tuple(broker.living.epochs.entries)

    def _cut(self, broker: Broker) -> None:
        effects = on_log_cut(
            broker.living,
            start_offset=broker.log.start,
            end_offset=broker.log.end,
            epochs=broker.log.epochs,
            producers=None,
            headers_after=broker.log.headers,
        )
        self.obey(broker, effects)


def _silence(replica: Replica, now: Millis) -> str:
    following = replica.following
    if following is None:
        return "it follows nobody"
    if following.needs_metadata:
        return "it waits for newer metadata"
    return f"it backs off for {following.not_before - now} ms more"


def _span(waiting: Parked) -> str:
    last = waiting.next_offset - 1
    return str(last) if waiting.base_offset == last else f"{waiting.base_offset}-{last}"
