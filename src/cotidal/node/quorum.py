"""The quorum half of a node: its replica of the metadata log. Pure.

The machine (core.quorum) decides; here its effects become calls, writes and news:

    Persist             -> Persist of the node, and the batches join the tail
    Ask, Answer         -> Call, Respond, in Kafka's messages (api.quorum_talk)
    Committed           -> batches leave the tail and are replayed into the committed image
    TakeSnapshot, ...   -> the committed image written down, or replaced (snapshots.py)
    BecameLeader, ...   -> the controller half takes up or lays down its duty

The *tail* holds the decoded batches that are in the log and not yet committed, in order. It is what
a new leader replays into its speculative image, and what a cut takes back.
Owns of the state: quorum.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias, assert_never, cast

from cotidal.api import quorum_talk as talk
from cotidal.core.cluster import together
from cotidal.core.cluster.image import MetadataRecord
from cotidal.core.quorum import effects as qfx
from cotidal.core.quorum import events as qev
from cotidal.core.quorum.dialogue import ChunkRange, ChunkReply, FetchReply, Question, RecordRange
from cotidal.core.quorum.node import QuorumNode
from cotidal.core.quorum.states import QuorumConfig
from cotidal.core.quorum.voters import ControlRecord, VoterSet
from cotidal.errors import ErrorCode, Refusal
from cotidal.limits import STRANGERS_TOLD_MAX
from cotidal.messages.batch import Batches
from cotidal.messages.records.quorum import (
    Endpoint as QuorumEndpoint,
)
from cotidal.messages.records.quorum import (
    QuorumStateData,
    VotersRecordVoter,
)
from cotidal.node import calls, chronicle, decisions, enrolment, lifecycle, snapshots
from cotidal.node.connections import Slot
from cotidal.node.effects import (
    CleanMetadata,
    CloseConnection,
    CutMetadata,
    DropSnapshot,
    Endpoint,
    FetchedMetadata,
    InstallSnapshot,
    KeepChunk,
    KeepConnected,
    MetadataBatch,
    Note,
    Persist,
    QuorumState,
    Read,
    ReadSnapshot,
    Stop,
    Want,
    Write,
)
from cotidal.node.events import (
    CallFailed,
    MetadataSnapshot,
    PeerConnected,
    PeerLost,
    Persisted,
    ReadDone,
    SnapshotWritten,
    Started,
)
from cotidal.node.state import ControllerAt, NodeState
from cotidal.settings import effective
from cotidal.values import (
    NO_TIMESTAMP,
    ZERO_UUID,
    EpochEntry,
    LeaderEpoch,
    Millis,
    NodeId,
    Offset,
)

CALL_TIMEOUT_MS = 1_500
"""As long as a follower waits for what it fetches; of the rest, the machine asks again before."""
CLUSTER_ID_SHOWN = 40
"""Characters of somebody else's; ours have 22."""
RECORD_BYTES_GUESS = 64
"""Of a metadata record: only for knowing when a snapshot is due."""

MetadataReader: TypeAlias = Callable[[Batches], Iterable[tuple[Any, ...]]]
"""What a node is given to read batches of the metadata log with, for it decodes nothing itself: the
fields of a MetadataBatch for each."""


class Asked(NamedTuple):
    """A question of the machine that is under way to another node."""

    peer: NodeId
    ask: qev.AskId


class Reading(NamedTuple):
    """An answer that waits for the records, or the piece of a snapshot, that it names."""

    slot: Slot
    reply: FetchReply | ChunkReply


class QuorumDuty:
    """State of the quorum half."""

    __slots__ = (
        "applied",
        "applied_wall",
        "installed",
        "machine",
        "persists",
        "reader",
        "requests",
        "sequence",
        "strangers",
        "tail",
        "voters",
        "writing",
    )

    def __init__(self, state: NodeState, reader: MetadataReader) -> None:
        self.machine = QuorumNode(_quorum_config(state), state.entropy)
        self.reader = reader
        self.tail: deque[MetadataBatch] = deque()
        self.applied = Offset(0)
        """Everything below is in the committed image."""
        self.applied_wall = NO_TIMESTAMP
        """When the last of it was written."""
        self.writing: qev.SnapshotFacts | None = None
        """The snapshot that is being written."""
        self.voters: tuple[NodeId, ...] | None = None
        """As they were last told."""
        self.installed: MetadataSnapshot | None = None
        """The snapshot that has just taken the log's place, until it is loaded."""
        self.persists: dict[int, qev.PersistToken] = {}
        self.requests: dict[int, Slot] = {}
        self.sequence = 0
        self.strangers: set[str] = set()
        """What was said of nodes of other clusters."""


def _quorum_config(state: NodeState) -> QuorumConfig:
    config = state.config
    voters = config.voters
    if not voters and not config.bootstrap and config.controller_endpoints:
        voters = ((config.node_id, config.controller_endpoints[0]),)  # a cluster by itself
    is_static = bool(voters)
    return QuorumConfig(
        node_id=config.node_id,
        directory_id=config.directory_id,
        endpoints=tuple(QuorumEndpoint(*point) for point in config.controller_endpoints),
        voters=VoterSet(
            tuple(
                VotersRecordVoter(node_id, ZERO_UUID, (QuorumEndpoint(*point),))
                for node_id, point in sorted(voters)
            )
        ),
        bootstrap=tuple(
            (NodeId(-2 - number), (QuorumEndpoint(*point),))
            for number, point in enumerate(config.bootstrap)
        ),
        can_vote=(
            any(node_id == config.node_id for node_id, _ in voters)
            if is_static
            else config.is_controller
        ),
        joins=effective("controller.quorum.auto.join.enable", static=config.settings).value is True,
        chunk_bytes=config.snapshot_chunk_bytes,
        snapshot_after_bytes=state.config.number("metadata.log.max.record.bytes.between.snapshots"),
        snapshot_after_ms=state.config.number("metadata.log.max.snapshot.interval.ms"),
    )


def start(state: NodeState, event: Started) -> None:
    duty = state.quorum
    epochs: list[EpochEntry] = []
    control: list[tuple[Offset, ControlRecord]] = []
    end = event.log_start
    newest = event.snapshots[-1] if event.snapshots else None
    if newest is not None and newest.id.end_offset > 0:
        snapshots.load(state, newest)
    for batch in event.log:
        if batch.base_offset >= duty.applied:
            duty.tail.append(batch)
        end = _end_of(batch)
        if not epochs or epochs[-1].epoch != batch.leader_epoch:
            epochs.append(EpochEntry(batch.leader_epoch, batch.base_offset))
        control += _control_records(batch)
    chronicle.start(state, incarnation=event.incarnation, live_from=end)
    stored = event.quorum_state
    assert stored is None or isinstance(stored, QuorumStateData)
    size = RECORD_BYTES_GUESS * sum(len(batch.records) for batch in duty.tail)
    facts = qev.LogFacts(event.log_start, end, tuple(epochs), tuple(control), size)
    whole = tuple(snapshots.facts_of(snapshot) for snapshot in event.snapshots)
    step(state, qev.Started(stored, facts, whole))


def step(state: NodeState, event: qev.Event) -> None:
    state.control_moved = True
    state.tally.quorum_events += 1
    for effect in state.quorum.machine.step(event, state.now):
        _obey(state, effect)
    place(state)


def place(state: NodeState) -> None:
    """Propose to the machine whatever has been decided."""
    submitted = state.controller.submitted
    while submitted:
        proposal = submitted.popleft()
        count = len(proposal.records)
        size = RECORD_BYTES_GUESS * count
        step(state, qev.ProposalMade(proposal, count, size, state.controller.epoch))


def begin(state: NodeState, slot: Slot, message: Any) -> None:
    """A question of another node. What another cluster decides is nothing to us."""
    refused = talk.refusal_of_stranger(message, state.config.cluster_id)
    if refused is not None:
        other = message.cluster_id[:CLUSTER_ID_SHOWN]
        _note_stranger(state, f"a node of another cluster, {other}, asks the quorum")
        slot.connection.answer(slot, refused, state.out)
        return
    question = talk.from_request(message)
    if isinstance(question, Refusal):
        state.out.append(CloseConnection(slot.connection.id, question.text))
        return
    ask(state, slot, question)


def ask(state: NodeState, slot: Slot, question: Question) -> None:
    """Let the machine answer, now or later."""
    duty = state.quorum
    duty.sequence += 1
    duty.requests[duty.sequence] = slot
    step(state, qev.Asked(qev.RequestToken(duty.sequence), question))


def _note_stranger(state: NodeState, sentence: str) -> None:
    """Each once, and not ten times a second; of a crowd the first few."""
    said = state.quorum.strangers
    if sentence not in said and len(said) < STRANGERS_TOLD_MAX:
        said.add(sentence)
        state.out.append(Note("error", f"{sentence}; see controller.quorum.voters there and here"))


def on_answered(state: NodeState, asked: Asked, message: Any) -> None:
    if talk.is_refused_as_stranger(message):
        _note_stranger(state, f"node {asked.peer} of the quorum belongs to another cluster")
    reply = talk.from_response(message, lambda batches: _control(state, batches))
    if isinstance(reply, Refusal):
        step(state, qev.PeerUnreachable(asked.peer, False))
    else:
        step(state, qev.Answered(asked.peer, asked.ask, reply))


def on_call_failed(state: NodeState, asked: Asked, event: CallFailed) -> None:
    step(state, qev.PeerUnreachable(asked.peer, event.refused))


def on_persisted(state: NodeState, event: Persisted) -> None:
    duty = state.quorum
    token = duty.persists.pop(event.token)
    if event.installed is None:
        step(state, qev.Persisted(token))
    else:
        duty.installed = event.installed
        step(state, qev.Persisted(token, snapshots.facts_of(event.installed)))


def on_snapshot_written(state: NodeState, event: SnapshotWritten) -> None:
    duty = state.quorum
    facts, duty.writing = duty.writing, None
    assert facts is not None
    assert facts.id == event.id
    step(state, qev.SnapshotWritten(facts._replace(size_bytes=event.size_bytes)))


def on_peer(state: NodeState, event: PeerConnected | PeerLost) -> None:
    if isinstance(event, PeerConnected):
        step(state, qev.PeerConnected(event.peer))
    else:
        step(state, qev.PeerUnreachable(event.peer, event.refused))


def on_read_done(state: NodeState, event: ReadDone, reading: Reading) -> None:
    data = event.results[0]
    assert isinstance(data, bytes | memoryview | str), "its Read is not to be sent"
    reply = reading.reply
    if isinstance(data, str):
        data = b""
        if isinstance(reply, ChunkReply):  # dropped since it was promised
            reply = ChunkReply(ErrorCode.SNAPSHOT_NOT_FOUND, reply.hint, reply.snapshot)
    response = talk.to_response(reading.slot.request.message, reply, data)
    reading.slot.connection.answer(reading.slot, response, state.out)


def next_deadline(state: NodeState) -> Millis | None:
    return state.quorum.machine.next_deadline()


def _obey(state: NodeState, effect: qfx.Effect) -> None:
    match effect:
        case qfx.Persist():
            _persist(state, effect)
        case qfx.Ask():
            _ask(state, effect)
        case qfx.Answer(request, reply):
            _answer(state, state.quorum.requests.pop(request), reply)
        case qfx.KeepConnected(peers):
            state.out.append(
                KeepConnected(tuple((peer, _endpoint(points)) for peer, points in peers if points))
            )
        case qfx.Committed(high_watermark):
            _commit(state, high_watermark)
        case qfx.BecameLeader(epoch, _):
            decisions.activate(state, epoch)
            chronicle.on_active(state, epoch)
        case qfx.LostLeadership():
            decisions.deactivate(state)
        case qfx.LeaderKnown(leader_id, epoch, endpoints):
            _lead_by(state, leader_id, epoch, endpoints)
        case qfx.LeaderUnknown():
            state.controller.leader = None
        case qfx.ProposalPlaced(handle, base_offset):
            decisions.on_placed(state, cast("decisions.Proposal", handle), base_offset)
        case qfx.ProposalRefused(handle):
            decisions.on_refused(state, cast("decisions.Proposal", handle))
        case qfx.VotersChanged(voters):
            _tell_voters(state, voters.ids)
        case qfx.Stopped():
            opened_all = lifecycle.has_opened_all(state)
            state.out.append(Stop(state.controller.broker_epoch, opened_all))
        case qfx.Fatal(sentence):
            state.out.append(Note("error", sentence))
            raise AssertionError(sentence)
        case qfx.TakeSnapshot():
            snapshots.take(state)
        case qfx.KeepChunk(snapshot, position, handle):
            state.out.append(KeepChunk(snapshot, position, cast("bytes | memoryview", handle)))
        case qfx.LoadSnapshot():
            _load(state)
        case qfx.ForgetSnapshot(snapshot):
            state.out.append(DropSnapshot(snapshot))
        case _:
            assert_never(effect)


def _persist(state: NodeState, effect: qfx.Persist) -> None:
    duty = state.quorum
    token = state.next_persist_token()
    duty.persists[token] = effect.token
    writes: list[Write] = []
    for write in effect.writes:
        match write:
            case qfx.WriteState(stored):
                writes.append(QuorumState(stored))
            case qfx.AppendOwn(base_offset, epoch, handle):
                records = cast("decisions.Proposal", handle).records
                batch = MetadataBatch(base_offset, epoch, records, False, state.wall)
                duty.tail.append(batch)
                writes.append(batch)
            case qfx.AppendControl(base_offset, epoch, control):
                batch = MetadataBatch(base_offset, epoch, control, True, state.wall)
                duty.tail.append(batch)
                writes.append(batch)
            case qfx.AppendFetched(base_offset, next_offset, handle):
                taken = _between(cast("Batches", handle), base_offset, next_offset)
                duty.tail.extend(MetadataBatch(*batch) for batch in duty.reader(taken))
                writes.append(FetchedMetadata(base_offset, taken))
            case qfx.TruncateTo(offset):
                while duty.tail and duty.tail[-1].base_offset >= offset:
                    duty.tail.pop()
                writes.append(CutMetadata(offset))
            case qfx.InstallSnapshot(snapshot):
                duty.tail.clear()
                writes.append(InstallSnapshot(snapshot))
            case qfx.CleanTo(offset):
                writes.append(CleanMetadata(offset))
            case _:
                assert_never(write)
    state.out.append(Persist(token, tuple(writes)))


def _ask(state: NodeState, effect: qfx.Ask) -> None:
    if not effect.endpoints:
        return
    asking = talk.to_request(effect.message, state.config.cluster_id)
    calls.call(
        state,
        effect.peer,
        _endpoint(effect.endpoints),
        lane=calls.QUORUM_LANE,
        api=asking.api,
        version=asking.version,
        message=asking.message,
        timeout_ms=CALL_TIMEOUT_MS,
        owner=Asked(effect.peer, effect.ask),
    )


def _answer(state: NodeState, slot: Slot, reply: object) -> None:
    if isinstance(reply, FetchReply) and isinstance(reply.records, RecordRange):
        wanted = reply.records
        token = state.next_read_token(Reading(slot, reply))
        want = Want(talk.METADATA, wanted.offset, talk.MAX_BYTES, wanted.below)
        state.out.append(Read(token, (want,), talk.MAX_BYTES))
        return
    if isinstance(reply, ChunkReply) and isinstance(reply.chunk, ChunkRange):
        position, max_bytes = reply.chunk
        token = state.next_read_token(Reading(slot, reply))
        size = min(max_bytes, talk.MAX_BYTES)
        state.out.append(ReadSnapshot(token, reply.snapshot, position, size))
        return
    response = talk.to_response(slot.request.message, reply)  # type: ignore[arg-type]
    slot.connection.answer(slot, response, state.out)


def _commit(state: NodeState, high_watermark: Offset) -> None:
    """Replay what is committed and decided now, then let everybody know."""
    duty = state.quorum
    image = state.controller.committed
    records: list[MetadataRecord] = []
    while batches := _decided(duty.tail, high_watermark):
        for _ in batches:
            duty.tail.popleft()
        duty.applied = _end_of(batches[-1])
        duty.applied_wall = batches[-1].wall
        for offset, record in together.counted(batches):
            chronicle.on_record(state, record, offset)
            state.tally.controller_events += 1
            image.replay(record)
            records.append(record)
    lifecycle.on_committed(state, records)
    enrolment.on_metadata(state)
    decisions.on_committed(state, high_watermark)


def _decided(tail: deque[MetadataBatch], high_watermark: Offset) -> list[MetadataBatch]:
    """The first batch, with those over which a transaction that begins in it goes on; none before
    all of them are committed."""
    batches: list[MetadataBatch] = []
    undecided = False
    for batch in tail:
        if _end_of(batch) > high_watermark:
            break
        batches.append(batch)
        undecided = together.is_undecided(batch.records, undecided)
        if not undecided:
            return batches
    return []


def _tell_voters(state: NodeState, ids: tuple[NodeId, ...]) -> None:
    duty = state.quorum
    before, duty.voters = duty.voters, ids
    if before is not None and before != ids:
        named = ", ".join(str(node_id) for node_id in ids)
        state.out.append(Note("info", f"the voters of the quorum are now {named}"))


def _load(state: NodeState) -> None:
    duty = state.quorum
    snapshot, duty.installed = duty.installed, None
    assert snapshot is not None
    before = state.controller.committed
    snapshots.load(state, snapshot)
    state.out.append(
        Note("info", f"loaded the metadata up to offset {duty.applied} from a snapshot")
    )
    lifecycle.on_loaded(state, before)
    enrolment.on_metadata(state)


def _lead_by(
    state: NodeState,
    leader_id: NodeId,
    epoch: LeaderEpoch,
    endpoints: tuple[QuorumEndpoint, ...],
) -> None:
    endpoint = _endpoint(endpoints) if endpoints else None
    if leader_id == state.config.node_id:
        endpoint = state.config.controller_endpoints[0]
    if endpoint is not None:
        state.controller.leader = ControllerAt(leader_id, epoch, endpoint)


def _control(state: NodeState, fetched: Batches) -> tuple[tuple[Offset, ControlRecord], ...]:
    batches = (MetadataBatch(*fields) for fields in state.quorum.reader(fetched))
    return tuple(found for batch in batches for found in _control_records(batch))


def _control_records(batch: MetadataBatch) -> list[tuple[Offset, ControlRecord]]:
    """The quorum's own records, with their offsets."""
    if not batch.control:
        return []
    return [
        (Offset(batch.base_offset + n), record)
        for n, record in enumerate(batch.records)
        if isinstance(record, ControlRecord)
    ]


def _between(batches: Batches, first: Offset, below: Offset) -> Batches:
    begin = at = 0
    headers = []
    for header in batches.headers:
        if header.base_offset < first:
            begin = at + header.size_bytes
        elif header.next_offset <= below:
            headers.append(header)
        else:
            break
        at += header.size_bytes
    return Batches(tuple(headers), memoryview(batches.data)[begin:at])


def _end_of(batch: MetadataBatch) -> Offset:
    return Offset(batch.base_offset + len(batch.records))


def _endpoint(points: tuple[QuorumEndpoint, ...]) -> Endpoint:
    return Endpoint(points[0].name, points[0].host, points[0].port)
