"""The controller half of a node: decisions on their way into the metadata log. Pure.

    decided -> ProposalMade -> placed: replayed into the speculative image -> Committed
            -> replayed into the committed image -> published -> answered

  DURABLE_BEFORE_TOLD  an answer leaves only when its records, and all records before them, are
                       committed. A decision without records waits behind those in flight.

Only the leader of the quorum decides. On becoming it, the speculative image is the committed one
with everything replayed that is in the log and not yet committed; on ceasing to be, whatever waits
is told NOT_CONTROLLER: its records may commit all the same, under another leader.

Answers also wait until every log that a decision created here is open, so that a client that was
told of its new topic can write to it at once. A node that does not lead forwards what the
controller must decide, and hands the answer on.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple, TypeAlias, cast

from cotidal.api import init_producer_id as producer_id_api
from cotidal.api import refusing
from cotidal.api.active import Active
from cotidal.api.asked import Asked
from cotidal.api.registry import Owner, handler
from cotidal.core.cluster import duties as periodic
from cotidal.core.cluster.controller import Controller
from cotidal.core.cluster.decide.features import bootstrap_records
from cotidal.core.cluster.image import Image, MetadataRecord
from cotidal.core.cluster.sessions import Probe, decide_refused
from cotidal.core.quorum import events as qev
from cotidal.core.quorum.states import Leader
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.init_producer_id import InitProducerIdRequest
from cotidal.node import calls, quorum
from cotidal.node.connections import Slot
from cotidal.node.effects import Note
from cotidal.node.state import ControllerAt, NodeState
from cotidal.values import NO_BROKER_EPOCH, LeaderEpoch, Millis, NodeId, Offset, ProducerId

FORWARD_TIMEOUT_MS = 10_000
PROBE_TIMEOUT_MS = 500
RECORD_BYTES_GUESS = 64
"""Only for knowing when a snapshot is due."""


class Answer(NamedTuple):
    slot: Slot
    reply: object


class AnswerAgain(NamedTuple):
    """Ask the request's own handler once more: what it missed has been created."""

    slot: Slot


class Nothing(NamedTuple):
    """Nobody waits."""


Then: TypeAlias = Answer | AnswerAgain | Nothing


class Proposal(NamedTuple):
    """Records on their way, and what follows their commit."""

    records: tuple[MetadataRecord, ...]
    then: Then


class InFlight(NamedTuple):
    end_offset: Offset
    then: Then


class Forwarded(NamedTuple):
    """A client's request that the active controller answers in our place."""

    slot: Slot


class Probing(NamedTuple):
    """Is there anybody behind this broker's listener?"""

    probe: Probe


class BlockAsked(NamedTuple):
    """Producer ids, asked of the controller."""


class ControllerDuty:
    """State of the controller half."""

    __slots__ = (
        "broker_epoch",
        "committed",
        "controller",
        "duties",
        "epoch",
        "in_flight",
        "leader",
        "next_producer_id",
        "producer_ids_end",
        "until_open",
        "waiting_for_block",
    )

    def __init__(self) -> None:
        self.committed = Image()
        self.leader: ControllerAt | None = None
        """Who leads the quorum, as far as is known here."""
        self.controller: Controller | None = None
        """While this node leads the quorum."""
        self.duties: periodic.Duties | None = None
        self.epoch = LeaderEpoch(-1)
        self.in_flight: deque[InFlight] = deque()
        self.until_open: list[Then] = []
        """What follows once every log is open."""
        self.broker_epoch = NO_BROKER_EPOCH
        """Of this node's broker, once it is registered."""
        self.next_producer_id = ProducerId(0)
        self.producer_ids_end = ProducerId(0)
        self.waiting_for_block: deque[Slot] = deque()


def activate(state: NodeState, epoch: LeaderEpoch) -> None:
    """This node leads the quorum: decide from now on."""
    duty = state.controller
    image = duty.committed.copy()
    for batch in state.quorum.tail:
        if not batch.control:
            for record in batch.records:
                image.replay(cast("MetadataRecord", record))
    duty.epoch = epoch
    duty.controller = Controller(
        image, state.entropy, state.config.settings, node_id=state.config.node_id
    )
    end = state.quorum.machine.state.log.end_offset
    duty.duties, probes = periodic.begin(duty.controller, state.now, end_offset=end)
    if not image.features:
        propose(state, bootstrap_records(duty.controller), Nothing())
    for probe in probes:
        if probe.node_id != state.config.node_id:
            _probe(state, probe)
        elif probe.epoch != duty.broker_epoch:  # an earlier life of this very process
            _fence_refused(state, probe)


def deactivate(state: NodeState) -> None:
    """Another node leads, or nobody: what is not committed may never be."""
    duty = state.controller
    duty.controller = duty.duties = None
    lost, duty.in_flight = duty.in_flight, deque()
    for waiting in lost:
        match waiting.then:
            case Answer(slot, _) | AnswerAgain(slot):
                refuse(state, slot)
            case Nothing():
                pass


def propose(state: NodeState, records: tuple[MetadataRecord, ...], then: Then) -> None:
    """Append these records together; ``then`` follows once they are committed."""
    duty = state.controller
    if records:
        proposal = Proposal(records, then)
        size = RECORD_BYTES_GUESS * len(records)
        quorum.step(state, qev.ProposalMade(proposal, len(records), size, duty.epoch))
    else:
        end = duty.in_flight[-1].end_offset if duty.in_flight else Offset(0)
        duty.in_flight.append(InFlight(end, then))
        on_committed(state, state.quorum.applied)


def on_placed(state: NodeState, proposal: Proposal, base_offset: Offset) -> None:
    duty = state.controller
    assert duty.controller is not None
    for record in proposal.records:
        duty.controller.image.replay(record)
    end = Offset(base_offset + len(proposal.records))
    duty.in_flight.append(InFlight(end, proposal.then))


def on_refused(state: NodeState, proposal: Proposal) -> None:
    match proposal.then:
        case Answer(slot, _) | AnswerAgain(slot):
            refuse(state, slot)
        case Nothing():
            pass


def on_committed(state: NodeState, high_watermark: Offset) -> None:
    duty = state.controller
    while duty.in_flight and duty.in_flight[0].end_offset <= high_watermark:
        duty.until_open.append(duty.in_flight.popleft().then)
    follow(state)


def follow(state: NodeState) -> None:
    """Do what follows commits, once no log is being opened any more."""
    duty = state.controller
    if state.opening or not duty.until_open:
        return
    due, duty.until_open = duty.until_open, []
    for then in due:
        match then:
            case Answer(slot, reply):
                slot.connection.answer(slot, reply, state.out)
            case AnswerAgain(slot):
                state.again.append(slot)
            case Nothing():
                pass


def begin(state: NodeState, slot: Slot, owner: Owner) -> None:
    """A request that the controller decides."""
    state.control_moved = True
    duty = state.controller
    request = slot.request
    if duty.controller is None:
        _forward(state, slot)
        return
    asked = Asked(
        request.api_version, request.client_id, slot.connection.listener, slot.connection.wall
    )
    decide = handler(request.api_key).decide
    arguments: tuple[Any, ...] = (request.message, asked, duty.controller)
    if owner is Owner.ACTIVE:
        assert duty.duties is not None
        end = state.quorum.machine.state.log.end_offset
        arguments += (Active(duty.duties, state.now, end, state.config.cluster_id),)
    decision = decide(*arguments)
    propose(state, decision.records, Answer(slot, decision.reply))


def refuse(state: NodeState, slot: Slot) -> None:
    """This node cannot decide: the asker looks for the controller again."""
    request = slot.request
    reply = refusing.not_controller(request.api_key, request.message)
    slot.connection.answer(slot, reply, state.out)


def on_forwarded(state: NodeState, forwarded: Forwarded, reply: object) -> None:
    forwarded.slot.connection.answer(forwarded.slot, reply, state.out)


def on_forward_failed(state: NodeState, forwarded: Forwarded) -> None:
    refuse(state, forwarded.slot)


def on_probe_failed(state: NodeState, probing: Probing, *, refused: bool) -> None:
    """A connection that is refused is strong evidence; a silent one will run out of session."""
    if refused:
        _fence_refused(state, probing.probe)


def probe_broker(state: NodeState, node_id: NodeId) -> None:
    """A connection to this broker was lost: a hint, not a proof. Look."""
    duty = state.controller
    if duty.controller is None or duty.duties is None:
        return
    session = duty.duties.sessions.of.get(node_id)
    if session is not None and node_id != state.config.node_id:
        _probe(state, Probe(node_id, session.epoch))


def on_ticked(state: NodeState) -> None:
    duty = state.controller
    me = state.config.node_id
    if duty.duties is not None and me in duty.duties.sessions.of:
        # Whoever decides here is alive: a loop that stalled must not fence its own broker.
        session = duty.duties.sessions.of[me]
        if session.epoch == duty.broker_epoch:
            session.last_contact = state.now
    while duty.controller is not None and duty.duties is not None and _leads(state):
        if periodic.next_deadline(duty.controller, duty.duties) > state.now:
            return
        due = periodic.decide_due(duty.controller, duty.duties, state.now)
        if due.reply:
            state.out.append(Note("info", due.reply))
        if due.records:
            propose(state, due.records, Nothing())


def next_deadline(state: NodeState) -> Millis | None:
    duty = state.controller
    if duty.controller is None or duty.duties is None or not _leads(state):
        return None
    return periodic.next_deadline(duty.controller, duty.duties)


def _leads(state: NodeState) -> bool:
    """The machine has known for longer when it no longer leads: LostLeadership waits for a write,
    and until then every proposal is refused."""
    return isinstance(state.quorum.machine.state.role, Leader)


def begin_init_producer_id(state: NodeState, slot: Slot, request: InitProducerIdRequest) -> None:
    refusal = producer_id_api.refused(request)
    if refusal is not None:
        slot.connection.answer(slot, producer_id_api.response_refused(refusal), state.out)
        return
    duty = state.controller
    duty.waiting_for_block.append(slot)
    if duty.next_producer_id < duty.producer_ids_end:
        _hand_out_producer_ids(state)
    elif len(duty.waiting_for_block) == 1:
        _ask_for_block(state)


def on_block(state: NodeState, block: AllocateProducerIdsResponse) -> None:
    if block.error_code != 0:
        on_no_block(state, ErrorCode(block.error_code))
        return
    duty = state.controller
    duty.next_producer_id = ProducerId(block.producer_id_start)
    duty.producer_ids_end = ProducerId(block.producer_id_start + block.producer_id_len)
    _hand_out_producer_ids(state)


def on_no_block(state: NodeState, error: ErrorCode = ErrorCode.COORDINATOR_NOT_AVAILABLE) -> None:
    """Retriable for the clients that wait."""
    duty = state.controller
    refusal = Refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"no producer ids: {error.name}")
    while duty.waiting_for_block:
        slot = duty.waiting_for_block.popleft()
        slot.connection.answer(slot, producer_id_api.response_refused(refusal), state.out)


def _forward(state: NodeState, slot: Slot) -> None:
    leader = state.controller.leader
    request = slot.request
    if leader is None or leader.node_id == state.config.node_id:
        refuse(state, slot)
        return
    calls.call(
        state,
        leader.node_id,
        leader.endpoint,
        lane=calls.FORWARD_LANE,
        api=ApiKey(request.api_key),
        version=request.api_version,
        message=request.message,
        timeout_ms=FORWARD_TIMEOUT_MS,
        owner=Forwarded(slot),
    )


def _probe(state: NodeState, probe: Probe) -> None:
    from cotidal.messages.rpc.api_versions import ApiVersionsRequest
    from cotidal.node.fetchers import leader_endpoint

    endpoint = leader_endpoint(state, probe.node_id)
    if endpoint is None:
        return
    calls.call(
        state,
        probe.node_id,
        endpoint,
        lane="probe",
        api=ApiKey.API_VERSIONS,
        version=0,
        message=ApiVersionsRequest(),
        timeout_ms=PROBE_TIMEOUT_MS,
        owner=Probing(probe),
    )


def _fence_refused(state: NodeState, probe: Probe) -> None:
    duty = state.controller
    if duty.controller is None or duty.duties is None:
        return
    records = decide_refused(duty.controller, duty.duties.sessions, probe)
    if records:
        state.out.append(Note("info", f"fenced broker {probe.node_id}: nobody listens there"))
        propose(state, records, Nothing())


def _hand_out_producer_ids(state: NodeState) -> None:
    duty = state.controller
    while duty.waiting_for_block and duty.next_producer_id < duty.producer_ids_end:
        slot = duty.waiting_for_block.popleft()
        reply = producer_id_api.response(duty.next_producer_id)
        duty.next_producer_id = ProducerId(duty.next_producer_id + 1)
        slot.connection.answer(slot, reply, state.out)
    if duty.waiting_for_block:
        _ask_for_block(state)


def _ask_for_block(state: NodeState) -> None:
    leader = state.controller.leader
    if leader is None:
        on_no_block(state)
        return
    calls.call(
        state,
        leader.node_id,
        leader.endpoint,
        lane=calls.CONTROL_LANE,
        api=ApiKey.ALLOCATE_PRODUCER_IDS,
        version=0,
        message=AllocateProducerIdsRequest(state.config.node_id, state.controller.broker_epoch),
        timeout_ms=FORWARD_TIMEOUT_MS,
        owner=BlockAsked(),
    )
