"""A world for scripts: the nodes of one quorum, real machines on disks of memory. Shipped.

Whatever a command sets going is carried to its end before the next one, in no time at all: messages
arrive, disks write, answers come. Time passes only when it is asked to. A node that is cut off
hears nothing and is not heard; a disk that is held writes nothing until it is released. A node that
is played has no machine: what is asked of it stays open until a command answers. What a node says
again within one command is told once.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from cotidal.core.machine import Entropy
from cotidal.core.quorum import dialogue as say
from cotidal.core.quorum import effects as want
from cotidal.core.quorum import events as seen
from cotidal.core.quorum.log_view import SnapshotId
from cotidal.core.quorum.node import QuorumNode
from cotidal.core.quorum.states import Leader, QuorumConfig
from cotidal.core.quorum.voters import ReplicaKey, VoterSet
from cotidal.core.trace import line, quorum_line
from cotidal.messages.records.quorum import (
    KRaftVersionFeature,
    QuorumStateData,
    VotersRecordVoter,
)
from cotidal.testing.quorum_disk import SNAPSHOT_BYTES, QuorumDisk
from cotidal.testing.scripts import ScriptError
from cotidal.values import LeaderEpoch, Millis, NodeId, Offset, Uuid

BOTH_VERSIONS: Final = KRaftVersionFeature(0, 1)
STEPS_MAX: Final = 10_000
"""More than any story needs: whoever gets there is going in circles."""


def directory(node_id: int, life: int = 0) -> Uuid:
    return Uuid(bytes([life]) * 15 + bytes([node_id]))


def voter_set(numbers: tuple[int, ...]) -> VoterSet:
    return VoterSet(
        tuple(VotersRecordVoter(each, directory(each), (), BOTH_VERSIONS) for each in numbers)
    )


class Machine:
    """One node: its disk, and while it lives a process."""

    __slots__ = (
        "config",
        "disk",
        "is_cut",
        "is_held",
        "is_played",
        "kept",
        "last_voters",
        "life",
        "node",
        "pending",
    )

    def __init__(self, config: QuorumConfig) -> None:
        self.config = config
        self.disk = QuorumDisk()
        self.node: QuorumNode | None = None
        self.life = 0
        self.is_cut = False
        self.is_held = False
        """The disk does not answer."""
        self.is_played = False
        self.pending: want.Persist | None = None
        self.last_voters: want.VotersChanged | None = None
        self.kept: tuple[NodeId, ...] = ()
        """Peers to which it keeps connections."""

    @property
    def id(self) -> NodeId:
        return self.config.node_id

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.id, self.config.directory_id)


class QuorumWorld:
    def __init__(self) -> None:
        self.now = Millis(0)
        self.machines: dict[NodeId, Machine] = {}
        self._events: deque[tuple[Machine, int, seen.Event]] = deque()
        self._requests: dict[seen.RequestToken, tuple[Machine, Machine, int, seen.AskId]] = {}
        self.open_asks: dict[tuple[NodeId, NodeId], seen.AskId] = {}
        """The last question of each node to each node that is played."""
        self._lines: list[str] = []
        self._shown: dict[NodeId, str] = {}

    def begin(self) -> None:
        self._lines = []

    def told(self) -> list[str]:
        """What happened; then where those nodes stand for whom that has changed."""
        for node_id, machine in sorted(self.machines.items()):
            if machine.node is None:
                self._shown.pop(node_id, None)
                continue
            machine.node.check()
            state = quorum_line(machine.node.state)
            if self._shown.get(node_id) != state:
                self._shown[node_id] = state
                self.tell(machine, state)
        return self._lines

    def tell(self, machine: Machine, what: str) -> None:
        told = f"{machine.id}: {what}"
        if told not in self._lines:
            self._lines.append(told)

    # --- processes ------------------------------------------------------------------------------

    def machine(self, number: int) -> Machine:
        found = self.machines.get(NodeId(number))
        if found is None:
            raise ScriptError(f"there is no node {number} in this script")
        return found

    def living(self, machine: Machine) -> QuorumNode:
        if machine.node is None:
            raise ScriptError(f"node {machine.id} is down")
        return machine.node

    def leader(self) -> Machine:
        """The leader of the highest epoch."""
        leading = [
            (machine.node.state.epoch, machine.id)
            for machine in self.machines.values()
            if machine.node is not None and isinstance(machine.node.state.role, Leader)
        ]
        if not leading:
            raise ScriptError("nobody leads the quorum")
        return self.machines[max(leading)[1]]

    def start(self, machine: Machine) -> None:
        machine.life += 1
        machine.node = QuorumNode(machine.config, Entropy(100 * machine.id + machine.life))
        self.step(machine, machine.disk.started())
        self.tell_connections()
        self.run()

    def kill(self, machine: Machine) -> None:
        """What the disk was asked to write and has not confirmed is lost."""
        machine.node, machine.pending, machine.kept = None, None, ()
        self.tell_connections()
        self.run()

    def reaches(self, one: Machine, other: Machine) -> bool:
        return not one.is_cut and not other.is_cut

    def tell_connections(self) -> None:
        """A connection stands, or is refused; of one that is cut nothing is heard."""
        for machine in self.machines.values():
            for peer in machine.kept:
                self._tell_connection(machine, self.machines[peer])

    def _tell_connection(self, machine: Machine, peer: Machine) -> None:
        if machine.node is None or not self.reaches(machine, peer):
            return
        if peer.node is not None or peer.is_played:
            self._post(machine, seen.PeerConnected(peer.id))
        else:
            self._post(machine, seen.PeerUnreachable(peer.id, refused=True))

    # --- running --------------------------------------------------------------------------------

    def _post(self, machine: Machine, event: seen.Event) -> None:
        self._events.append((machine, machine.life, event))

    def run(self) -> None:
        """Until nothing is on its way."""
        for _ in range(STEPS_MAX):
            if not self._events:
                return
            machine, life, event = self._events.popleft()
            if machine.node is not None and machine.life == life:
                self.step(machine, event)
        raise ScriptError("these nodes never come to rest")

    def tick(self, passed_ms: int) -> None:
        until = self.now + passed_ms
        while True:
            due = [
                (deadline, machine.id)
                for machine in self.machines.values()
                if machine.node is not None
                and (deadline := machine.node.next_deadline()) is not None
                and deadline <= until
            ]
            if not due:
                break
            deadline, node_id = min(due)
            self.now = max(self.now, deadline)
            self.step(self.machines[node_id], seen.Ticked())
            self.run()
        self.now = Millis(until)

    def step(self, machine: Machine, event: seen.Event) -> None:
        for effect in self.living(machine).step(event, self.now):
            self._obey(machine, effect)
            if machine.node is None:
                return

    def _obey(self, machine: Machine, effect: want.Effect) -> None:
        if _is_worth_telling(effect) and machine.last_voters != effect:
            self.tell(machine, line(effect))
        if isinstance(effect, want.VotersChanged):
            machine.last_voters = effect
        match effect:
            case want.Persist():
                machine.pending = effect
                self.write(machine)
            case want.Ask(peer, _, ask, message):
                self._ask(machine, self.machines[peer], ask, message)
            case want.Answer(request, message):
                self._answer(machine, request, message)
            case want.KeepConnected(peers):
                machine.kept = tuple(peer for peer, _ in peers if peer in self.machines)
                for peer in machine.kept:
                    self._tell_connection(machine, self.machines[peer])
            case want.TakeSnapshot(id_):
                self._take_snapshot(machine, id_)
            case want.KeepChunk(id_, _, handle):
                assert isinstance(handle, seen.SnapshotFacts)
                machine.disk.snapshots[id_] = handle
            case want.ForgetSnapshot(id_):
                machine.disk.snapshots.pop(id_, None)
            case want.Stopped() | want.Fatal():
                self.kill(machine)
            case _:
                pass  # news for the controller above, told if it is worth it

    def write(self, machine: Machine) -> None:
        """Do what the disk was asked for, unless it is held."""
        pending = machine.pending
        if pending is None or machine.is_held:
            return
        machine.pending = None
        installed = None
        for write in pending.writes:
            if _is_news(machine.disk, write):
                self.tell(machine, line(write))
            installed = machine.disk.apply(write) or installed
        self._post(machine, seen.Persisted(pending.token, installed))

    def _ask(self, machine: Machine, peer: Machine, ask: seen.AskId, message: say.Question) -> None:
        if peer.is_played:
            self.open_asks[machine.id, peer.id] = ask
        if peer.is_played or not self.reaches(machine, peer):
            return
        if peer.node is None:
            self._post(machine, seen.PeerUnreachable(peer.id, refused=True))
            return
        token = seen.RequestToken(len(self._requests) + 1)
        self._requests[token] = (machine, peer, machine.life, ask)
        self._post(peer, seen.Asked(token, message))

    def _answer(self, machine: Machine, request: seen.RequestToken, message: say.Reply) -> None:
        asker, _, life, ask = self._requests[request]
        if asker is machine:  # asked by hand
            return
        if self.reaches(machine, asker) and asker.life == life:
            self._post(asker, seen.Answered(machine.id, ask, _filled(machine.disk, message)))

    def answer_by_hand(self, machine: Machine, peer: Machine, reply: say.Reply) -> None:
        """A node that is played answers what it was asked last."""
        ask = self.open_asks.pop((machine.id, peer.id), None)
        if ask is None:
            raise ScriptError(f"node {machine.id} has asked node {peer.id} nothing")
        self._post(machine, seen.Answered(peer.id, ask, reply))
        self.run()

    def ask_by_hand(self, machine: Machine, question: say.Question) -> None:
        """Somebody asks this node; its answer is told and goes nowhere."""
        token = seen.RequestToken(len(self._requests) + 1)
        self._requests[token] = (machine, machine, machine.life, seen.AskId(-1))
        self._post(machine, seen.Asked(token, question))
        self.run()

    def _take_snapshot(self, machine: Machine, id_: SnapshotId) -> None:
        record, version = None, 0
        for entry in self.living(machine).state.voters.entries:
            if entry.offset < id_.end_offset:
                version = entry.kraft_version
                record = entry.voters.record() if version else None
        facts = seen.SnapshotFacts(id_, SNAPSHOT_BYTES, record, version)
        machine.disk.snapshots[id_] = facts
        self._post(machine, seen.SnapshotWritten(facts))

    # --- the controller above -------------------------------------------------------------------

    def propose(self, machine: Machine, values: tuple[str, ...]) -> None:
        epoch = LeaderEpoch(self.living(machine).state.epoch)
        self.step(machine, seen.ProposalMade(values, len(values), len(values), epoch))
        self.run()


def formatted(disk: QuorumDisk, voters: VoterSet) -> None:
    """The checkpoint that formatting leaves: who votes in the beginning."""
    id_ = SnapshotId(Offset(0), LeaderEpoch(0))
    disk.snapshots[id_] = seen.SnapshotFacts(id_, SNAPSHOT_BYTES, voters.record(), 1)


def _filled(disk: QuorumDisk, message: say.Reply) -> say.Reply:
    """What the disk has to add to an answer on its way out."""
    if isinstance(message, say.FetchReply) and isinstance(message.records, say.RecordRange):
        return message._replace(records=disk.read(message.records))
    if isinstance(message, say.ChunkReply) and isinstance(message.chunk, say.ChunkRange):
        facts = disk.snapshots[message.snapshot]
        return message._replace(chunk=say.FetchedChunk(SNAPSHOT_BYTES, facts))
    return message


def _is_news(disk: QuorumDisk, write: want.Write) -> bool:
    """Of a node's own writes: a new epoch, a vote, a cut, records about the quorum itself."""
    if isinstance(write, want.WriteState):
        known = disk.state or QuorumStateData(leader_epoch=0)
        before = (known.leader_epoch, known.voted_id)
        return before != (write.state.leader_epoch, write.state.voted_id)
    return isinstance(write, want.TruncateTo | want.AppendControl | want.InstallSnapshot)


def _is_worth_telling(effect: want.Effect) -> bool:
    """Fetching goes on all the time and shows in where the nodes stand; elections are told."""
    match effect:
        case want.Ask(_, _, _, message):
            return isinstance(message, say.Vote | say.EndEpoch | say.FetchChunk)
        case want.Answer(_, message):
            return isinstance(message, say.VoteReply | say.MemberReply) or (
                isinstance(message, say.FetchReply)
                and (message.diverging is not None or message.snapshot is not None)
            )
        case want.Persist() | want.KeepConnected() | want.LeaderKnown() | want.LeaderUnknown():
            return False
        case want.Committed() | want.ProposalPlaced() | want.KeepChunk():
            return False
        case _:
            return True
