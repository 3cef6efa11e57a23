"""A small world of quorum nodes: one seed, simulated disks and network, every promise watched.

Messages are lost, doubled, late and out of order; nodes die in the middle of a Persist and come
back with what was durable; pairs and groups are cut off from each other. After each event the
promises are checked over all nodes at once; ``heal`` ends the faults and asks for progress.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from typing import NamedTuple

from cotidal.core.machine import Entropy
from cotidal.core.quorum import dialogue as said
from cotidal.core.quorum import effects as fx
from cotidal.core.quorum import events as ev
from cotidal.core.quorum.log_view import SnapshotId
from cotidal.core.quorum.majority import majority_of
from cotidal.core.quorum.node import QuorumNode
from cotidal.core.quorum.states import Leader, QuorumConfig
from cotidal.core.quorum.voters import ReplicaKey, VoterSet, key_of
from cotidal.errors import ErrorCode
from cotidal.messages.records.quorum import (
    KRaftVersionFeature,
    KRaftVersionRecord,
    QuorumStateData,
    VotersRecord,
    VotersRecordVoter,
)
from cotidal.values import (
    ZERO_UUID,
    EpochEntry,
    LeaderEpoch,
    Millis,
    NodeId,
    Offset,
    Uuid,
)

SNAPSHOT_BYTES = 10


def directory(node: int, life: int = 0) -> Uuid:
    return Uuid(bytes([life]) * 15 + bytes([node]))


def voters(*nodes: int, version: int = 1) -> VoterSet:
    return VoterSet(
        tuple(
            VotersRecordVoter(
                node,
                directory(node) if version else ZERO_UUID,
                (),
                KRaftVersionFeature(0, 1),
            )
            for node in nodes
        )
    )


class Batch(NamedTuple):
    base_offset: int
    epoch: int
    records: tuple[object, ...]
    is_control: bool

    @property
    def next_offset(self) -> int:
        return self.base_offset + len(self.records)


class Snapshot(NamedTuple):
    facts: ev.SnapshotFacts
    content: tuple[object, ...]


class Disk:
    """What survives a crash."""

    def __init__(self) -> None:
        self.state: QuorumStateData | None = None
        self.start = 0
        self.batches: list[Batch] = []
        self.snapshots: dict[SnapshotId, Snapshot] = {}

    @property
    def end(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.start

    @property
    def last_epoch(self) -> int:
        if self.batches:
            return self.batches[-1].epoch
        return max((s.epoch for s in self.snapshots if s.end_offset == self.start), default=0)

    def apply(self, write: fx.Write) -> ev.SnapshotFacts | None:
        match write:
            case fx.WriteState(state):
                before = self.state
                if before is not None:
                    assert before.leader_epoch <= state.leader_epoch, "the epoch went back"
                    if before.leader_epoch == state.leader_epoch:
                        assert before.voted_id in (-1, state.voted_id), "voted twice"
                self.state = state
            case fx.AppendOwn(base, epoch, handle):
                assert isinstance(handle, tuple)
                self._append(Batch(base, epoch, handle, False))
            case fx.AppendControl(base, epoch, records):
                self._append(Batch(base, epoch, records, True))
            case fx.AppendFetched(base, end, handle):
                assert isinstance(handle, tuple)
                for batch in handle:
                    if base <= batch.base_offset and batch.next_offset <= end:
                        self._append(batch)
                assert self.end == end
            case fx.TruncateTo(offset):
                self.batches = [b for b in self.batches if b.next_offset <= offset]
                assert self.end == offset, "truncated inside a batch"
            case fx.InstallSnapshot(id_):
                self.batches = []
                self.start = id_.end_offset
                return self.snapshots[id_].facts
            case fx.CleanTo(offset):
                self.batches = [b for b in self.batches if b.base_offset >= offset]
                self.start = offset
        return None

    def _append(self, batch: Batch) -> None:
        assert batch.base_offset == self.end, "a gap"
        assert batch.epoch >= self.last_epoch, "epochs go back"
        self.batches.append(batch)

    def records(self) -> dict[int, tuple[int, object]]:
        return {
            batch.base_offset + delta: (batch.epoch, record)
            for batch in self.batches
            for delta, record in enumerate(batch.records)
        }

    def facts(self) -> ev.LogFacts:
        epochs: list[EpochEntry] = []
        control = []
        for batch in self.batches:
            if not epochs or epochs[-1].epoch < batch.epoch:
                epochs.append(EpochEntry(LeaderEpoch(batch.epoch), Offset(batch.base_offset)))
            for delta, record in enumerate(batch.records):
                if isinstance(record, VotersRecord | KRaftVersionRecord):
                    control.append((Offset(batch.base_offset + delta), record))
        return ev.LogFacts(Offset(self.start), Offset(self.end), tuple(epochs), tuple(control))

    def epoch_before(self, offset: int) -> int:
        for batch in reversed(self.batches):
            if batch.base_offset < offset:
                return batch.epoch
        return self.last_epoch


class Faults(NamedTuple):
    """Per mille where not said otherwise."""

    lose: int = 0
    double: int = 0
    delay_ms_max: int = 10
    persist_ms_max: int = 5
    tell_connections: int = 900
    is_live: bool = True


class Machine:
    """One node with its disk, in one of its lives."""

    def __init__(self, world: World, node_id: int, config: QuorumConfig) -> None:
        self.world = world
        self.id = node_id
        self.config = config
        self.disk = Disk()
        self.life = 0
        self.node: QuorumNode | None = None
        self.persist: fx.Persist | None = None
        self.chunks: dict[SnapshotId, object] = {}
        self.high_watermark = 0
        self.leads: LeaderEpoch | None = None
        self.tick_at: int | None = None
        self.is_stopped = False
        self.known: list[object] = []


class World:
    def __init__(
        self,
        seed: int,
        *,
        size: int = 3,
        observers: int = 0,
        kraft_version: int = 1,
        snapshot_every: int = 0,
        faults: Faults | None = None,
        config: dict[str, object] | None = None,
    ) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.faults = faults or Faults()
        self.now = 0
        self.queue: list[tuple[int, int, Callable[[], None]]] = []
        self.sequence = 0
        self.steps = 0
        self.requests: dict[int, tuple[Machine, int, int, Machine]] = {}
        self.cut: set[tuple[int, int]] = set()
        self.leaders: dict[int, int] = {}
        self.votes: dict[tuple[int, int], ReplicaKey] = {}
        self.committed: dict[int, tuple[int, object]] = {}
        self.committed_end = 0
        self.next_value = 0
        self.trace: list[str] = []
        self.is_tracing = False
        self.seen: set[str] = set()
        self.initial = voters(*range(1, size + 1), version=kraft_version)
        self.kraft_version = kraft_version
        self.machines: dict[int, Machine] = {}
        self.extra = dict(config or {})
        if snapshot_every:
            self.extra.setdefault("snapshot_after_bytes", snapshot_every)
            self.extra.setdefault("chunk_bytes", 4)
        for node_id in range(1, size + observers + 1):
            self.add_machine(node_id, is_formatted=node_id <= size)

    # building

    def add_machine(self, node_id: int, *, is_formatted: bool, life: int = 0) -> Machine:
        config = QuorumConfig(
            NodeId(node_id),
            directory(node_id, life),
            voters=VoterSet() if self.kraft_version else self.initial,
            bootstrap=tuple((NodeId(voter), ()) for voter in self.initial.ids),
        )._replace(**self.extra)
        machine = self.machines[node_id] = Machine(self, node_id, config)
        if is_formatted and self.kraft_version:
            id_ = SnapshotId(Offset(0), LeaderEpoch(0))
            facts = ev.SnapshotFacts(id_, SNAPSHOT_BYTES, self.initial.record(), 1)
            machine.disk.snapshots[id_] = Snapshot(facts, ())
        return machine

    def at(self, delay_ms: int, act: Callable[[], None]) -> None:
        self.sequence += 1
        heapq.heappush(self.queue, (self.now + delay_ms, self.sequence, act))

    def start(self, machine: Machine) -> None:
        assert machine.node is None
        machine.life += 1
        machine.is_stopped = False
        machine.node = QuorumNode(
            machine.config, Entropy(self.seed * 1000 + machine.id * 100 + machine.life)
        )
        machine.high_watermark = 0
        machine.tick_at = None
        disk = machine.disk
        ids = sorted(disk.snapshots)
        snapshots = tuple(disk.snapshots[id_].facts for id_ in ids)
        self.step(machine, ev.Started(disk.state, disk.facts(), snapshots))
        self.tell_connection_of(machine)

    def crash(self, machine: Machine) -> None:
        """Any part of what was being written may have reached the disk, in order."""
        assert machine.node is not None
        if machine.persist is not None:
            done = self.random.randint(0, len(machine.persist.writes))
            for write in machine.persist.writes[:done]:
                machine.disk.apply(write)
        machine.persist = None
        machine.node = None
        machine.leads = None
        machine.chunks.clear()
        self.tell_connection_of(machine)

    # connections

    def reaches(self, a: int, b: int) -> bool:
        return (a, b) not in self.cut

    def partition(self, group: set[int]) -> None:
        for a in self.machines:
            for b in self.machines:
                if (a in group) != (b in group):
                    self.cut.add((a, b))
        for machine in self.machines.values():
            self.tell_connection_of(machine)

    def tell_connection_of(self, machine: Machine) -> None:
        """Both sides hear of a connection made or ended: mostly."""
        for other in self.machines.values():
            if other is machine or other.node is None:
                continue
            if self.random.randrange(1000) >= self.faults.tell_connections:
                continue
            self.tell_connection(other, machine)
            if machine.node is not None:
                self.tell_connection(machine, other)

    def tell_connection(self, machine: Machine, peer: Machine) -> None:
        life = machine.life

        def tell() -> None:
            if machine.node is None or machine.life != life:
                return
            is_up = peer.node is not None
            is_open = self.reaches(machine.id, peer.id) and self.reaches(peer.id, machine.id)
            if is_up and is_open:
                self.step(machine, ev.PeerConnected(NodeId(peer.id)))
            else:
                refused = is_open and not is_up
                self.step(machine, ev.PeerUnreachable(NodeId(peer.id), refused))

        self.at(self.random.randint(0, self.faults.delay_ms_max), tell)

    # running

    def run(self, ms: int, *, until: Callable[[], bool] | None = None) -> bool:
        end = self.now + ms
        while self.queue and self.queue[0][0] <= end:
            self.now, _, act = heapq.heappop(self.queue)
            act()
            if until is not None and until():
                return True
        self.now = end
        return until is not None and until()

    def step(self, machine: Machine, event: ev.Event) -> None:
        node = machine.node
        assert node is not None
        self.steps += 1
        if self.is_tracing:
            self.trace.append(f"{self.now} {machine.id} <- {event}")
        effects = node.step(event, Millis(self.now))
        node.check()
        self.watch(machine, node)
        for effect in effects:
            if self.is_tracing:
                self.trace.append(f"{self.now} {machine.id} -> {effect}")
            self.obey(machine, effect)
        self.plan_tick(machine, node)

    def plan_tick(self, machine: Machine, node: QuorumNode) -> None:
        deadline = node.next_deadline()
        if deadline is None or (machine.tick_at is not None and machine.tick_at <= deadline):
            return
        due = max(deadline, self.now + 1)
        machine.tick_at = due
        life = machine.life

        def tick() -> None:
            if machine.life == life and machine.node is not None and machine.tick_at == due:
                machine.tick_at = None
                self.step(machine, ev.Ticked())

        self.at(due - self.now, tick)

    def obey(self, machine: Machine, effect: fx.Effect) -> None:
        match effect:
            case fx.Persist():
                self.begin_persist(machine, effect)
            case fx.Ask():
                self.send_question(machine, effect)
            case fx.Answer():
                self.send_answer(machine, effect)
            case fx.BecameLeader(epoch, _):
                assert self.leaders.setdefault(epoch, machine.id) == machine.id, "two leaders"
                self.check_completeness(machine)
                machine.leads = epoch
            case fx.LostLeadership():
                machine.leads = None
            case fx.Committed(high_watermark):
                self.on_committed(machine, high_watermark)
            case fx.TakeSnapshot(id_):
                self.take_snapshot(machine, id_)
            case fx.KeepChunk(id_, position, handle):
                self.seen.add("chunk")
                if position == 0:
                    machine.chunks[id_] = []
                machine.chunks.setdefault(id_, [])
                machine.chunks[id_] = handle
            case fx.LoadSnapshot(id_):
                self.seen.add("load")
                content = machine.disk.snapshots[id_].content
                for offset, record in enumerate(content):
                    assert self.committed[offset] == record, "a snapshot of something else"
                machine.high_watermark = max(machine.high_watermark, id_.end_offset)
            case fx.ForgetSnapshot(id_):
                machine.disk.snapshots.pop(id_, None)
            case fx.Stopped():
                machine.is_stopped = True
            case fx.Fatal(sentence):
                raise AssertionError(sentence)
            case _:
                machine.known.append(effect)

    def begin_persist(self, machine: Machine, persist: fx.Persist) -> None:
        assert machine.persist is None, "two Persists at once"
        machine.persist = persist
        for write in persist.writes:
            if isinstance(write, fx.InstallSnapshot):
                source = machine.chunks.get(write.id)
                if isinstance(source, Snapshot):
                    machine.disk.snapshots[write.id] = source
        life = machine.life

        def done() -> None:
            if machine.life != life or machine.node is None:
                return
            machine.persist = None
            installed = None
            for write in persist.writes:
                installed = machine.disk.apply(write) or installed
            self.step(machine, ev.Persisted(persist.token, installed))

        self.at(self.random.randint(0, self.faults.persist_ms_max), done)

    # messages

    def deliver(self, source: Machine, target: Machine, act: Callable[[], None]) -> None:
        if not self.reaches(source.id, target.id):
            return
        draw = self.random.randrange(1000)
        if draw < self.faults.lose:
            self.seen.add("loss")
            return
        self.at(self.random.randint(0, self.faults.delay_ms_max), act)
        if self.random.randrange(1000) < self.faults.double:
            self.at(self.random.randint(0, 20 * self.faults.delay_ms_max), act)

    def send_question(self, machine: Machine, effect: fx.Ask) -> None:
        self.check_question(machine, effect.message)
        target = self.machines.get(effect.peer)
        if target is None:
            return
        life = machine.life

        def arrive() -> None:
            if target.node is None:
                if self.faults.is_live:
                    self.tell_connection(machine, target)
                return
            self.sequence += 1
            token = self.sequence
            self.requests[token] = (machine, life, effect.ask, target)
            self.step(target, ev.Asked(ev.RequestToken(token), effect.message))

        self.deliver(machine, target, arrive)

    def send_answer(self, machine: Machine, effect: fx.Answer) -> None:
        asker, life, ask, _ = self.requests.pop(effect.request)
        message = self.fill(machine, effect.message)
        self.check_answer(machine, asker, message)

        def arrive() -> None:
            if asker.node is not None and asker.life == life:
                answered = ev.Answered(NodeId(machine.id), ev.AskId(ask), message)
                self.step(asker, answered)

        if life >= 0:
            self.deliver(machine, asker, arrive)
        else:
            asker.known.append(message)

    def fill(self, machine: Machine, message: said.Reply) -> said.Reply:
        """Read what an answer names from the disk."""
        if isinstance(message, said.FetchReply) and isinstance(message.records, said.RecordRange):
            offset, below = message.records
            wanted = [
                batch
                for batch in machine.disk.batches
                if batch.base_offset >= offset
                and batch.next_offset <= below
                and batch.epoch <= message.hint.epoch
            ][: self.random.randint(1, 8)]
            batches = tuple(
                said.FetchedBatch(
                    Offset(b.base_offset),
                    Offset(b.next_offset),
                    LeaderEpoch(b.epoch),
                    len(b.records),
                    tuple(
                        (Offset(b.base_offset + delta), record)
                        for delta, record in enumerate(b.records)
                        if isinstance(record, VotersRecord | KRaftVersionRecord)
                    ),
                )
                for b in wanted
            )
            return message._replace(records=said.FetchedRecords(batches, tuple(wanted)))
        if isinstance(message, said.ChunkReply) and isinstance(message.chunk, said.ChunkRange):
            position, size = message.chunk
            length = min(size, SNAPSHOT_BYTES - position)
            snapshot = machine.disk.snapshots.get(message.snapshot)
            if snapshot is None:
                return message._replace(error=ErrorCode.SNAPSHOT_NOT_FOUND, chunk=None)
            return message._replace(chunk=said.FetchedChunk(length, snapshot))
        return message

    # what the machines above would do

    def propose(self, machine: Machine, count: int = 1) -> tuple[str, ...]:
        assert machine.leads is not None
        values = []
        for _ in range(count):
            self.next_value += 1
            values.append(f"v{self.next_value}")
        event = ev.ProposalMade(tuple(values), count, count, machine.leads)
        self.step(machine, event)
        return tuple(values)

    def change(self, machine: Machine, change: said.MemberChange) -> None:
        """Ask ``machine``; the reply is found in its ``known``."""
        self.sequence += 1
        self.requests[self.sequence] = (machine, -1, 0, machine)
        self.step(machine, ev.Asked(ev.RequestToken(self.sequence), change))

    def take_snapshot(self, machine: Machine, id_: SnapshotId) -> None:
        self.seen.add("snapshot")
        node = machine.node
        assert node is not None
        assert id_.end_offset <= self.committed_end
        content = tuple(self.committed[offset] for offset in range(id_.end_offset))
        record, version = None, 0
        for entry in node.state.voters.entries:
            if entry.offset < id_.end_offset:
                version = entry.kraft_version
                record = entry.voters.record() if version else None
        facts = ev.SnapshotFacts(id_, SNAPSHOT_BYTES, record, version)
        life = machine.life

        def written() -> None:
            if machine.life == life and machine.node is not None:
                machine.disk.snapshots[id_] = Snapshot(facts, content)
                self.step(machine, ev.SnapshotWritten(facts))

        self.at(self.random.randint(0, 50), written)

    # promises

    def watch(self, machine: Machine, node: QuorumNode) -> None:
        q = node.state
        assert q.high_watermark >= machine.high_watermark, "the high watermark went back"
        if isinstance(q.role, Leader):
            assert self.leaders.setdefault(q.epoch, machine.id) == machine.id, "two leaders"

    def on_committed(self, machine: Machine, high_watermark: int) -> None:
        assert high_watermark > machine.high_watermark or machine.high_watermark == 0
        records = machine.disk.records()
        for offset in range(max(machine.high_watermark, machine.disk.start), high_watermark):
            assert offset in records, "committed before it is durable"
            known = self.committed.setdefault(offset, records[offset])
            assert known == records[offset], f"two committed records at {offset}"
        machine.high_watermark = high_watermark
        if high_watermark > self.committed_end:
            self.committed_end = high_watermark
            self.check_majority(machine, high_watermark)

    def check_majority(self, machine: Machine, high_watermark: int) -> None:
        assert machine.node is not None
        in_force = machine.node.state.voter_set
        last = self.committed[high_watermark - 1]
        holders = 0
        for voter in in_force.voters:
            other = self.machines.get(voter.voter_id)
            if other is None or key_of(voter).directory_id not in (
                ZERO_UUID,
                other.config.directory_id,
            ):
                continue
            is_in_snapshot = other.disk.start >= high_watermark
            holders += is_in_snapshot or other.disk.records().get(high_watermark - 1) == last
        assert holders >= majority_of(len(in_force.voters)), "committed without a majority"

    def check_completeness(self, machine: Machine) -> None:
        records = machine.disk.records()
        for offset in range(machine.disk.start, self.committed_end):
            assert records.get(offset) == self.committed[offset], "a leader lacks a record"

    def check_question(self, machine: Machine, message: said.Question) -> None:
        disk = machine.disk
        epoch = -1 if disk.state is None else disk.state.leader_epoch
        match message:
            case said.Vote():
                assert message.epoch <= epoch or message.epoch == 0, "asked before it is durable"
                if not message.pre_vote:
                    self.check_vote(machine, message.epoch, message.candidate)
                assert (message.last_epoch, message.end_offset) <= (disk.last_epoch, disk.end)
            case said.Fetch():
                if message.epoch == epoch:
                    assert message.offset <= disk.end, "fetched before it is durable"
            case said.BeginEpoch() | said.EndEpoch():
                assert message.epoch <= epoch, "told before it is durable"
            case _:
                pass

    def check_answer(self, machine: Machine, asker: Machine, message: said.Reply) -> None:
        state = machine.disk.state
        epoch = 0 if state is None else state.leader_epoch
        assert message.hint.epoch <= epoch or message.hint.epoch == 0, "told before it is durable"
        if not isinstance(message, said.VoteReply) or not message.granted or state is None:
            return
        if state.voted_id == asker.id and message.hint.epoch == state.leader_epoch:
            self.check_vote(machine, state.leader_epoch, asker_key(asker))

    def check_vote(self, machine: Machine, epoch: int, candidate: ReplicaKey) -> None:
        state = machine.disk.state
        assert state is not None, "a vote that is not durable"
        if state.leader_epoch == epoch:
            assert state.voted_id == candidate.node_id, "a vote that is not durable"
        known = self.votes.setdefault((machine.id, epoch), candidate)
        assert known == candidate, "voted twice"

    # the end of faults

    def leader(self) -> Machine | None:
        leading = [m for m in self.machines.values() if m.leads is not None and m.node is not None]
        leading.sort(key=lambda m: m.leads or 0)
        return leading[-1] if leading else None

    def heal(self) -> None:
        self.faults = Faults(tell_connections=1000)
        self.cut.clear()
        for machine in self.machines.values():
            if machine.node is None:
                self.start(machine)
            else:
                self.tell_connection_of(machine)

    def settle(self, ms: int = 20_000) -> None:
        """A new record reaches every node, or the run fails."""
        values: list[tuple[str, ...]] = []

        def is_settled() -> bool:
            leader = self.leader()
            if leader is not None and (not values or leader.leads not in asked):
                asked.append(leader.leads)
                values.append(self.propose(leader))
            if not values or leader is None or leader.node is None:
                return False
            end = leader.node.state.high_watermark
            if not any(self.committed[o][1] == values[-1][0] for o in tail(end)):
                return False
            return all(
                m.node is not None and m.node.state.high_watermark == end
                for m in self.machines.values()
            )

        def tail(end: int) -> range:
            return range(max(0, end - 30), end)

        asked: list[LeaderEpoch | None] = []
        assert self.run(ms, until=is_settled), f"no progress after healing, seed {self.seed}"


def asker_key(machine: Machine) -> ReplicaKey:
    return ReplicaKey(machine.config.node_id, machine.config.directory_id)
