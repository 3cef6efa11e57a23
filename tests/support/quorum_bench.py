"""One quorum node on a bench: events go in by hand, what it wants is kept and looked at.

Writes are durable at once unless ``hold`` is set; then ``release`` makes the oldest durable.
"""

from __future__ import annotations

from typing import TypeVar

from cotidal.core.machine import Entropy
from cotidal.core.quorum import dialogue as said
from cotidal.core.quorum import effects as fx
from cotidal.core.quorum import events as ev
from cotidal.core.quorum.log_view import SnapshotId
from cotidal.core.quorum.node import QuorumNode
from cotidal.core.quorum.states import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Quorum,
    QuorumConfig,
    Resigned,
    Unattached,
)
from cotidal.core.quorum.voters import ReplicaKey
from cotidal.errors import ErrorCode
from cotidal.messages.records.quorum import QuorumStateData, VotersRecord
from cotidal.values import EpochEntry, LeaderEpoch, Millis, NodeId, Offset
from quorum_world import directory, voters

EffectT = TypeVar("EffectT", bound=tuple[object, ...])
NONE = ErrorCode.NONE


def key(node: int, life: int = 0) -> ReplicaKey:
    return ReplicaKey(NodeId(node), directory(node, life))


def hint(leader: int = -1, epoch: int = 0) -> said.Hint:
    return said.Hint(NodeId(leader), LeaderEpoch(epoch), ())


def stored(epoch: int, *, leader: int = -1, voted: int | None = None) -> QuorumStateData:
    state = QuorumStateData(leader_id=leader, leader_epoch=epoch)
    if voted is None:
        return state
    return state._replace(voted_id=voted, voted_directory_id=directory(voted))


def log(*epochs: int, start: int = 0) -> ev.LogFacts:
    """A log with one record of each of these epochs."""
    line: list[EpochEntry] = []
    for place, epoch in enumerate(epochs):
        if not line or line[-1].epoch < epoch:
            line.append(EpochEntry(LeaderEpoch(epoch), Offset(start + place)))
    return ev.LogFacts(Offset(start), Offset(start + len(epochs)), tuple(line))


def snapshot(
    end: int, epoch: int, *, size: int = 10, record: VotersRecord | None = None, version: int = 1
) -> ev.SnapshotFacts:
    id_ = SnapshotId(Offset(end), LeaderEpoch(epoch))
    return ev.SnapshotFacts(id_, size, record, version if record else 0)


def batch(base: int, epoch: int, *control: object, count: int = 1) -> said.FetchedBatch:
    records = tuple((Offset(base + place), record) for place, record in enumerate(control))
    end = base + max(count, len(control))
    return said.FetchedBatch(Offset(base), Offset(end), LeaderEpoch(epoch), 1, records)


class Bench:
    def __init__(
        self,
        node: int = 1,
        *,
        size: int = 3,
        version: int = 1,
        life: int = 0,
        config: dict[str, object] | None = None,
    ) -> None:
        self.voters = voters(*range(1, size + 1), version=version)
        self.config = QuorumConfig(
            NodeId(node),
            directory(node, life),
            voters=self.voters if version == 0 else voters(),
            bootstrap=tuple((NodeId(peer), ()) for peer in range(1, size + 1)),
        )._replace(**(config or {}))
        self.version = version
        self.node = QuorumNode(self.config, Entropy(7))
        self.now = 1_000
        self.hold = False
        self.effects: list[fx.Effect] = []
        self.pending: list[fx.Persist] = []
        self.written: list[fx.Write] = []
        self.requests = 0
        self.installed: dict[SnapshotId, ev.SnapshotFacts] = {}

    @property
    def q(self) -> Quorum:
        return self.node.state

    @property
    def state(self) -> str:
        return type(self.q.role).__name__

    # events

    def start(
        self,
        state: QuorumStateData | None = None,
        facts: ev.LogFacts | None = None,
        *snapshots: ev.SnapshotFacts,
    ) -> Bench:
        formatted = snapshot(0, 0, record=self.voters.record()) if self.version else None
        whole = (formatted, *snapshots) if formatted else snapshots
        self.step(ev.Started(state, facts or ev.LogFacts(), whole))
        return self

    def step(self, event: ev.Event) -> list[fx.Effect]:
        """Everything the node wants after this, durable writes included."""
        got: list[fx.Effect] = []
        events = [event]
        while events:
            for effect in self.node.step(events.pop(0), Millis(self.now)):
                got.append(effect)
                if isinstance(effect, fx.Persist):
                    self.pending.append(effect)
            self.node.check()
            if self.pending and not self.hold:
                events.append(self._durable())
        self.effects += got
        return got

    def release(self) -> list[fx.Effect]:
        """The Persist under way is done."""
        return self.step(self._durable())

    def _durable(self) -> ev.Persisted:
        persist = self.pending.pop(0)
        self.written += persist.writes
        installs = [w.id for w in persist.writes if isinstance(w, fx.InstallSnapshot)]
        installed = self.installed.get(installs[-1]) if installs else None
        return ev.Persisted(persist.token, installed)

    def ask(self, message: said.Question) -> said.Reply | None:
        """The answer, or None if there is none yet."""
        self.requests += 1
        request = ev.RequestToken(self.requests)
        return self.reply_in(self.step(ev.Asked(request, message)), request)

    def reply_in(self, effects: list[fx.Effect], request: int | None = None) -> said.Reply | None:
        wanted = self.requests if request is None else request
        for effect in effects:
            if isinstance(effect, fx.Answer) and effect.request == wanted:
                return effect.message
        return None

    def answer(self, peer: int, message: said.Reply) -> list[fx.Effect]:
        """To the question that is open there."""
        return self.step(ev.Answered(NodeId(peer), self.q.asks[NodeId(peer)], message))

    def connect(self, *peers: int) -> None:
        for peer in peers:
            self.step(ev.PeerConnected(NodeId(peer)))

    def wait(self, ms: int) -> list[fx.Effect]:
        """Time passes, with a tick at each deadline."""
        end = self.now + ms
        got: list[fx.Effect] = []
        while True:
            deadline = self.node.next_deadline()
            if deadline is None or deadline > end:
                break
            assert deadline >= self.now or not got, "a deadline that never passes"
            self.now = max(self.now, deadline)
            got += self.step(ev.Ticked())
        self.now = end
        return got

    def pass_deadline(self) -> list[fx.Effect]:
        deadline = self.node.next_deadline()
        assert deadline is not None
        self.now = max(self.now, deadline)
        return self.step(ev.Ticked())

    # what it said

    def of(self, kind: type[EffectT], effects: list[fx.Effect] | None = None) -> list[EffectT]:
        chosen = self.effects if effects is None else effects
        return [effect for effect in chosen if isinstance(effect, kind)]

    def wrote(self, write: fx.Write) -> bool:
        """NamedTuples of different kinds may be equal: the kind is compared too."""
        return any(type(done) is type(write) and done == write for done in self.written)

    def asked(self, kind: type[EffectT], effects: list[fx.Effect]) -> dict[int, EffectT]:
        """Questions of one kind, by peer."""
        asks = self.of(fx.Ask, effects)
        return {ask.peer: ask.message for ask in asks if isinstance(ask.message, kind)}

    # on its way

    def prospect(self) -> Bench:
        while not isinstance(self.q.role, Prospective):
            self.pass_deadline()
        return self

    def grant(self, *peers: int, granted: bool = True) -> list[fx.Effect]:
        got: list[fx.Effect] = []
        for peer in peers:
            got += self.answer(peer, said.VoteReply(NONE, hint(-1, self.q.epoch), granted))
        return got

    def stand(self) -> Bench:
        self.prospect()
        for peer in self.q.other_voters:
            if isinstance(self.q.role, Prospective):
                self.grant(peer)
        assert isinstance(self.q.role, Candidate)
        return self

    def lead(self) -> Bench:
        if not isinstance(self.q.role, Leader):
            self.stand()
        for peer in self.q.other_voters:
            if isinstance(self.q.role, Candidate):
                self.grant(peer)
        assert isinstance(self.q.role, Leader)
        return self

    def follow(self, leader: int = 2, epoch: int = 1) -> Bench:
        begin = said.BeginEpoch(NodeId(leader), self.q.me, LeaderEpoch(epoch), ())
        self.ask(begin)
        assert isinstance(self.q.role, Follower)
        return self

    def resign(self) -> Bench:
        self.lead()
        self.wait(3_000)
        assert isinstance(self.q.role, Resigned)
        return self

    def fetch(
        self,
        node: int = 2,
        *,
        offset: int | None = None,
        last_epoch: int | None = None,
        epoch: int | None = None,
        high_watermark: int = 1 << 62,
        max_wait_ms: int = 0,
        life: int = 0,
    ) -> said.FetchReply | None:
        """A fetch from this replica; at our own end unless said otherwise."""
        at = self.q.log.end_offset if offset is None else offset
        last = self.q.log.epoch_before(Offset(at)) if last_epoch is None else last_epoch
        fetch = said.Fetch(
            key(node, life),
            self.q.epoch if epoch is None else LeaderEpoch(epoch),
            Offset(at),
            LeaderEpoch(last),
            Offset(high_watermark),
            max_wait_ms,
        )
        reply = self.ask(fetch)
        assert reply is None or isinstance(reply, said.FetchReply)
        return reply

    def fetched(
        self, *batches: said.FetchedBatch, high_watermark: int = 0, leader: int = 2
    ) -> list[fx.Effect]:
        """The leader answers our fetch with these."""
        records = said.FetchedRecords(batches, "handle") if batches else None
        here = hint(leader, self.q.epoch)
        reply = said.FetchReply(NONE, here, Offset(high_watermark), Offset(0), records=records)
        return self.answer(leader, reply)

    def propose(self, count: int = 1) -> list[fx.Effect]:
        return self.step(ev.ProposalMade(("handle", count), count, count, self.q.epoch))

    def vote(
        self,
        candidate: int = 2,
        *,
        epoch: int,
        last_epoch: int | None = None,
        end: int | None = None,
        pre_vote: bool = False,
        voter: ReplicaKey | None = None,
    ) -> said.VoteReply | None:
        """Somebody asks for our vote; with a log as long as ours unless said otherwise."""
        reach = self.q.log.reach
        reply = self.ask(
            said.Vote(
                key(candidate),
                voter or self.q.me,
                LeaderEpoch(epoch),
                LeaderEpoch(reach.epoch if last_epoch is None else last_epoch),
                Offset(reach.end_offset if end is None else end),
                pre_vote,
            )
        )
        assert reply is None or isinstance(reply, said.VoteReply)
        return reply


STATES = {
    Unattached: lambda: Bench().start(),
    Prospective: lambda: Bench().start().prospect(),
    Candidate: lambda: Bench().start().stand(),
    Leader: lambda: Bench().start().lead(),
    Follower: lambda: Bench().start().follow(),
    Resigned: lambda: Bench().start().resign(),
}
"""A voter of three in each of its states."""
