"""One voter of the quorum's world: the real quorum node and what its disk keeps. Pure.

Time belongs to the adversary: a step takes none, so no deadline is ever due by itself; a move that
wants one to be over makes it so (``TimedOut`` and the like) and lets the node look at its clock.
Lots, back-offs and ranks, which only say how long to wait, are therefore forgotten after each step.

A question that its asker still waits for has the number WAITED_FOR, any other NOBODY_WAITS: the
node keeps one open question a peer, and what it drops by number is dropped here as well.

Does not do: changes of the voters, snapshots, observers, leaders that resign, connections.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias, cast

from cotidal.core.machine import Entropy
from cotidal.core.quorum import dialogue as said
from cotidal.core.quorum import effects as fx
from cotidal.core.quorum import events as ev
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
from cotidal.core.quorum.voters import VoterHistory, VoterSet
from cotidal.invariants import (
    COMMITTED_NEVER_CUT,
    DURABLE_BEFORE_TOLD,
    MAJORITY_HOLDS_COMMITTED,
    OFFSETS_CONTIGUOUS,
    VOTE_ONCE_PER_EPOCH,
)
from cotidal.messages.records.quorum import (
    LeaderChangeMessage,
    QuorumStateData,
    VotersRecordVoter,
)
from cotidal.sim.explore.held import Held
from cotidal.sim.violation import Violation
from cotidal.values import (
    ZERO_UUID,
    EpochEntry,
    LeaderEpoch,
    Millis,
    NodeId,
    Offset,
)

FIRST_ID: Final = 7001
"""Far from every offset, epoch and count, so that renaming finds ids wherever they stand."""
VOTERS: Final = tuple(NodeId(FIRST_ID + place) for place in range(3))
NOW: Final = Millis(0)
LATER: Final = Millis(1)
FIRST_ASK: Final = 1_000
WAITED_FOR: Final = ev.AskId(1)
NOBODY_WAITS: Final = ev.AskId(0)
THE_PERSIST: Final = ev.PersistToken(0)
LEADER_RECORD: Final = "leads"

VOTER_SET: Final = VoterSet(tuple(VotersRecordVoter(node_id) for node_id in VOTERS))
CONFIGS: Final = {node_id: QuorumConfig(node_id, ZERO_UUID, voters=VOTER_SET) for node_id in VOTERS}


class Token(NamedTuple):
    """The driver's name for a question: whose it is, and whether its answer is waited for."""

    sender: NodeId
    ask: ev.AskId


# messages


class Ask(NamedTuple):
    sender: NodeId
    to: NodeId
    ask: ev.AskId
    question: said.Question


class Answer(NamedTuple):
    sender: NodeId
    to: NodeId
    reply: said.Reply


# what else happens to a voter


class Proposed(NamedTuple):
    value: str


class WriteDone(NamedTuple):
    """The Persist under way is on disk."""


class TimedOut(NamedTuple):
    """The deadline of its state is over."""


class AskAgain(NamedTuple):
    """It is time to ask this peer again."""

    peer: NodeId


class CameBack(NamedTuple):
    """It crashed when so many of the writes under way had reached the disk, and started again."""

    done: int


Event: TypeAlias = Ask | Answer | Proposed | WriteDone | TimedOut | AskAgain | CameBack
Message: TypeAlias = Ask | Answer


class Heard(NamedTuple):
    """What the world learns from a step."""

    committed: tuple[Held, ...] = ()
    leads: tuple[tuple[LeaderEpoch, NodeId], ...] = ()
    votes: tuple[tuple[NodeId, LeaderEpoch, NodeId], ...] = ()
    """Who told whom, in which epoch, to have voted for it."""


NOTHING_HEARD: Final = Heard()


class Voter:
    __slots__ = ("batches", "node_id", "quorum", "stored", "writing")

    def __init__(self, node_id: NodeId) -> None:
        self.node_id = node_id
        self.stored: QuorumStateData | None = None
        self.batches: list[Held] = []
        """One batch a record."""
        self.writing: fx.Persist | None = None
        self.quorum = Quorum(CONFIGS[node_id], Entropy(0))

    @property
    def stored_epoch(self) -> int:
        return 0 if self.stored is None else self.stored.leader_epoch


def equip(voter: Voter) -> None:
    """Give a thawed voter what is not frozen with it."""
    voter.quorum.config = CONFIGS[voter.node_id]
    voter.quorum.entropy = Entropy(0)
    voter.quorum.voters = VoterHistory(VOTER_SET, kraft_version=0)


def put_in_order(voter: Voter) -> None:
    """What leaves together has no order of its own; whose name comes first must not give it one."""
    voter.quorum.outbox.waiting.sort(key=lambda each: (each[0], repr(each[1])))


class Turn:
    """One event of one voter: what it sends, what the world hears, and the words for it."""

    def __init__(self, voter: Voter) -> None:
        self.voter = voter
        self.sent: list[Message] = []
        self.lines: list[str] = []
        self.stale: list[NodeId] = []
        """Peers whose answers to earlier questions are waited for no more."""
        self._committed: tuple[Held, ...] = ()
        self._leads: list[tuple[LeaderEpoch, NodeId]] = []
        self._votes: list[tuple[NodeId, LeaderEpoch, NodeId]] = []
        self._node = QuorumNode.__new__(QuorumNode)
        self._node.state = voter.quorum

    def take(self, event: Event) -> Heard:
        """Let it happen; raises what a voter can promise alone."""
        voter = self.voter
        open_before = tuple(voter.quorum.asks)
        voter.quorum.last_ask = FIRST_ASK
        self._dispatch(event)
        self._node.check()
        quorum = self._node.state
        self.stale = [
            peer for peer in open_before if quorum.asks.get(peer, NOBODY_WAITS) != WAITED_FOR
        ]
        self._renumber(quorum)
        _forget_time(quorum)
        quorum.outbox.gathering = [_plain(write) for write in quorum.outbox.gathering]
        if voter.writing is not None:
            writes = tuple(_plain(write) for write in voter.writing.writes)
            voter.writing = fx.Persist(THE_PERSIST, writes)
        put_in_order(voter)
        return Heard(self._committed, tuple(self._leads), tuple(self._votes))

    def _dispatch(self, event: Event) -> None:
        voter = self.voter
        match event:
            case Ask(sender, _, ask, question):
                token = cast("ev.RequestToken", Token(sender, ask))
                self._step(ev.Asked(token, question))
            case Answer(sender, _, reply):
                self._step(ev.Answered(sender, WAITED_FOR, reply))
            case Proposed(value):
                self._step(ev.ProposalMade(value, 1, 0, voter.quorum.epoch))
            case WriteDone():
                persist = voter.writing
                assert persist is not None
                voter.writing = None
                for write in persist.writes:
                    self._write(write)
                self._step(ev.Persisted(persist.token))
            case TimedOut():
                _end_wait(voter.quorum)
                self._step(ev.Ticked())
            case AskAgain(peer):
                _make_due(voter.quorum, peer)
                self._step(ev.Ticked())
            case CameBack(done):
                self._restart(done)

    def _restart(self, done: int) -> None:
        voter = self.voter
        for write in voter.writing.writes[:done] if voter.writing is not None else ():
            self._write(write)
        voter.writing = None
        voter.quorum = self._node.state = Quorum(CONFIGS[voter.node_id], Entropy(0))
        voter.quorum.last_ask = FIRST_ASK
        line: list[EpochEntry] = []
        for offset, held in enumerate(voter.batches):
            if not line or line[-1].epoch < held.epoch:
                line.append(EpochEntry(held.epoch, Offset(offset)))
        facts = ev.LogFacts(Offset(0), Offset(len(voter.batches)), tuple(line))
        self._step(ev.Started(voter.stored, facts))

    def _step(self, event: ev.Event) -> None:
        for effect in self._node.step(event, NOW):
            self._obey(effect)

    def _obey(self, effect: fx.Effect) -> None:
        voter = self.voter
        match effect:
            case fx.Persist():
                assert voter.writing is None, "two Persists at once"
                voter.writing = effect
                self.lines.append(f"writes {', '.join(map(_write_words, effect.writes))}")
            case fx.Ask(peer, _, ask, question):
                self._ask(peer, ask, question)
            case fx.Answer(request, reply):
                self._answer(cast("Token", request), reply)
            case fx.BecameLeader(epoch, _):
                self.lines.append(f"leads epoch {epoch}")
                self._leads.append((epoch, voter.node_id))
            case fx.Committed(high_watermark):
                self._commit(high_watermark)
            case fx.Fatal(sentence):
                raise Violation(COMMITTED_NEVER_CUT, sentence)
            case _:
                pass  # for the machine above

    # messages

    def _ask(self, peer: NodeId, ask: ev.AskId, question: said.Question) -> None:
        voter = self.voter
        if isinstance(question, said.Vote) and not question.pre_vote:
            self._vote(question.epoch, voter.node_id)
        epoch = getattr(question, "epoch", 0)
        if epoch > voter.stored_epoch:
            raise Violation(DURABLE_BEFORE_TOLD, f"{question} is told in an epoch not on disk")
        if isinstance(question, said.Fetch) and question.offset > len(voter.batches):
            raise Violation(DURABLE_BEFORE_TOLD, f"{question} claims more than is on disk")
        self.sent.append(Ask(voter.node_id, peer, ask, question))

    def _answer(self, token: Token, reply: said.Reply) -> None:
        voter = self.voter
        if reply.hint.epoch > voter.stored_epoch:
            raise Violation(DURABLE_BEFORE_TOLD, f"{reply} is told in an epoch not on disk")
        quorum = self._node.state
        if isinstance(reply, said.VoteReply) and reply.granted:
            is_vote = quorum.voted is not None and quorum.voted.node_id == token.sender
            if is_vote and reply.hint.epoch == quorum.epoch:
                self._vote(quorum.epoch, token.sender)
        if isinstance(reply, said.FetchReply) and isinstance(reply.records, said.RecordRange):
            reply = reply._replace(records=self._read(reply.records))
        if token.ask == WAITED_FOR:
            self.sent.append(Answer(voter.node_id, token.sender, reply))

    def _read(self, wanted: said.RecordRange) -> said.FetchedRecords:
        found = self.voter.batches[wanted.offset : wanted.below]
        batches = tuple(
            said.FetchedBatch(Offset(offset), Offset(offset + 1), held.epoch)
            for offset, held in enumerate(found, wanted.offset)
        )
        return said.FetchedRecords(batches, (wanted.offset, tuple(found)))

    def _vote(self, epoch: LeaderEpoch, candidate: NodeId) -> None:
        stored = self.voter.stored
        known = None if stored is None else (stored.leader_epoch, stored.voted_id)
        self._votes.append((self.voter.node_id, epoch, candidate))
        if stored is None or stored.leader_epoch < epoch:
            raise Violation(DURABLE_BEFORE_TOLD, f"a vote in epoch {epoch}; on disk is {known}")

    def _commit(self, high_watermark: Offset) -> None:
        voter, quorum = self.voter, self._node.state
        self.lines.append(f"commits below {high_watermark}")
        if high_watermark > len(voter.batches):
            raise Violation(
                DURABLE_BEFORE_TOLD, f"{high_watermark} committed, {len(voter.batches)} on disk"
            )
        last = voter.batches[high_watermark - 1]
        if isinstance(quorum.role, Leader) and last.epoch != quorum.epoch:
            raise Violation(
                MAJORITY_HOLDS_COMMITTED,
                f"the leader of epoch {quorum.epoch} calls a record of epoch {last.epoch}"
                f" committed, before one of its own",
            )
        self._committed = tuple(voter.batches[:high_watermark])

    # the disk

    def _write(self, write: fx.Write) -> None:
        voter = self.voter
        match write:
            case fx.WriteState(state):
                self._write_state(state)
            case fx.AppendOwn(base, epoch, handle):
                self._append(base, (Held(epoch, str(handle)),))
            case fx.AppendControl(base, epoch, records):
                self._append(base, tuple(Held(epoch, LEADER_RECORD) for _ in records))
            case fx.AppendFetched(base, end, handle):
                first, found = cast("tuple[int, tuple[Held, ...]]", handle)
                self._append(base, found[base - first : end - first])
            case fx.TruncateTo(offset):
                del voter.batches[offset:]
            case fx.InstallSnapshot() | fx.CleanTo():
                raise AssertionError("there are no snapshots in this world")

    def _write_state(self, state: QuorumStateData) -> None:
        before = self.voter.stored
        if before is not None:
            went_back = state.leader_epoch < before.leader_epoch
            is_same = state.leader_epoch == before.leader_epoch
            if went_back or (is_same and before.voted_id not in (-1, state.voted_id)):
                raise Violation(VOTE_ONCE_PER_EPOCH, f"{before} is replaced by {state}")
        self.voter.stored = state

    def _append(self, base: Offset, records: tuple[Held, ...]) -> None:
        assert base == len(self.voter.batches), OFFSETS_CONTIGUOUS
        self.voter.batches.extend(records)

    def _renumber(self, quorum: Quorum) -> None:
        """Questions that are waited for have one number, all others the other."""

        def numbered(peer: NodeId, ask: ev.AskId) -> ev.AskId:
            return WAITED_FOR if quorum.asks.get(peer) == ask else NOBODY_WAITS

        self.sent = [
            each._replace(ask=numbered(each.to, each.ask)) if isinstance(each, Ask) else each
            for each in self.sent
        ]
        outbox = quorum.outbox
        outbox.waiting = [
            (
                number,
                effect._replace(ask=numbered(effect.peer, effect.ask))
                if isinstance(effect, fx.Ask)
                else effect,
            )
            for number, effect in outbox.waiting
        ]
        quorum.asks = dict.fromkeys(quorum.asks, WAITED_FOR)


def _plain(write: fx.Write) -> fx.Write:
    """A leader's first record names those who voted for it, in the order of their ids: left out."""
    if isinstance(write, fx.AppendControl):
        return write._replace(records=(LeaderChangeMessage(),) * len(write.records))
    return write


def _end_wait(quorum: Quorum) -> None:
    role = quorum.role
    assert not isinstance(role, Leader)
    role.deadline = NOW


def _make_due(quorum: Quorum, peer: NodeId) -> None:
    role = quorum.role
    match role:
        case Prospective() | Candidate() | Resigned():
            role.ask_at[peer] = NOW
        case Follower():
            role.ask_at = NOW
        case Leader():
            role.begin_at = NOW
            for progress in role.progress.values():
                progress.contact_at = Millis(NOW - quorum.config.fetch_timeout_ms // 2)
        case Unattached():
            pass


def _forget_time(quorum: Quorum) -> None:
    """What only says when, and what is counted without end."""
    role = quorum.role
    match role:
        case Prospective() | Candidate() | Resigned():
            role.deadline = LATER
            role.ask_at = dict.fromkeys(role.ask_at, LATER)
        case Follower():
            role.deadline = role.ask_at = LATER
        case Unattached():
            role.deadline = LATER
        case Leader():
            role.begin_at = LATER
            for progress in role.progress.values():
                progress.caught_up_at = progress.fetched_at = None
                progress.end_seen = Offset(-1)
                progress.contact_at = NOW
            for key, parked in role.parked.items():
                role.parked[key] = parked._replace(deadline=LATER, ripe_at=LATER)
    quorum.known_ends.clear()
    quorum.losses = 0
    quorum.told = said.Hint()
    quorum.last_ask = FIRST_ASK
    outbox = quorum.outbox
    durable = outbox.durable
    outbox.asked -= durable
    outbox.durable = 0
    outbox.state_number = max(0, outbox.state_number - durable)
    outbox.waiting = [(number - durable, effect) for number, effect in outbox.waiting]
    if outbox.in_flight is not None:
        outbox.in_flight.number -= durable
        outbox.in_flight.token = THE_PERSIST


def stands(voter: Voter) -> str:
    """Where it stands, in words."""
    quorum = voter.quorum
    voted = "nobody" if quorum.voted is None else name_of(quorum.voted.node_id)
    log = " ".join(f"{held.value}@{held.epoch}" for held in voter.batches) or "empty"
    role = type(quorum.role).__name__.lower()
    return (
        f"{role} epoch={quorum.epoch} voted={voted} hw={quorum.high_watermark} log on disk: {log}"
    )


def name_of(node_id: int) -> str:
    return str(node_id - FIRST_ID + 1) if node_id >= FIRST_ID else "nobody"


def _write_words(write: fx.Write) -> str:
    match write:
        case fx.WriteState(state):
            return f"epoch {state.leader_epoch} vote for {name_of(state.voted_id)}"
        case fx.AppendOwn(base) | fx.AppendControl(base) | fx.AppendFetched(base):
            return f"records from {base}"
        case fx.TruncateTo(offset):
            return f"a cut to {offset}"
        case _:
            return type(write).__name__
