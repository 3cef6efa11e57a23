"""The controller half of a node: decisions on their way into the metadata log. Pure.

    decided -> replayed into the speculative image -> Persist -> Persisted: committed
            -> replayed into the committed image -> published -> answered

  DURABLE_BEFORE_TOLD  an answer leaves only when its records, and all records before them, are on
                       disk. A decision without records waits behind those in flight.

While one Persist is under way, further decisions gather and share the next one: a thousand
CreateTopics cost a few fsyncs, not a thousand. Answers also wait until every log that a decision
created is open, so that a client that was told of its new topic can write to it at once.

At start: the log is replayed, the voter elects itself, a new cluster gets its first records, the
broker registers (as a new incarnation it loses its ISR memberships), opens its logs, is unfenced
(its partitions get their leaders back), serves.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple, TypeAlias, cast

from cotidal.api import init_producer_id as producer_id_api
from cotidal.core.cluster.controller import Controller
from cotidal.core.cluster.decide.brokers import Registration, decide_register, decide_unfence
from cotidal.core.cluster.decide.features import bootstrap_records
from cotidal.core.cluster.decide.producer_ids import decide_producer_ids
from cotidal.core.cluster.image import Endpoint, Image, MetadataRecord
from cotidal.core.quorum.voter import Voter
from cotidal.errors import Refusal
from cotidal.messages.records.quorum import QuorumStateData
from cotidal.messages.rpc.init_producer_id import InitProducerIdRequest
from cotidal.node import publishing
from cotidal.node.connections import Slot
from cotidal.node.effects import (
    MetadataBatch,
    Note,
    Persist,
    PersistToken,
    QuorumState,
    Serve,
    Write,
)
from cotidal.node.events import Persisted, Started
from cotidal.node.state import NodeState
from cotidal.values import NO_BROKER_EPOCH, BrokerEpoch, Offset, ProducerId, Uuid


class Elected(NamedTuple):
    """This node leads the quorum: a new cluster gets its first records, then the broker its own."""


class Registered(NamedTuple):
    """This node's broker has its epoch."""


class Unfenced(NamedTuple):
    """This node's broker takes part."""


class Answer(NamedTuple):
    slot: Slot
    reply: object


class AnswerAgain(NamedTuple):
    """Ask the request's own handler once more: what it missed has been created."""

    slot: Slot


class BlockGranted(NamedTuple):
    """A block of producer ids for this broker."""

    first: ProducerId
    length: int


Then: TypeAlias = Elected | Registered | Unfenced | Answer | AnswerAgain | BlockGranted


class Proposal(NamedTuple):
    """Records on their way, and what follows their commit."""

    writes: tuple[Write, ...]
    records: tuple[MetadataRecord, ...]
    end_offset: Offset
    then: Then


class ControllerDuty:
    """State of the controller half."""

    __slots__ = (
        "broker_epoch",
        "committed",
        "controller",
        "gathering",
        "in_flight",
        "incarnation",
        "next_producer_id",
        "previous_broker_epoch",
        "producer_ids_end",
        "token",
        "until_open",
        "voter",
        "waiting_for_block",
    )

    def __init__(self, state: NodeState) -> None:
        config = state.config
        self.voter = Voter(config.node_id, config.directory_id)
        self.committed = Image()
        self.controller = Controller(
            Image(), state.entropy, config.settings, node_id=config.node_id
        )
        self.in_flight: list[Proposal] = []
        self.gathering: list[Proposal] = []
        self.token: PersistToken | None = None
        self.until_open: list[Then] = []
        """What follows once every log is open."""
        self.incarnation = Uuid(bytes(16))
        self.previous_broker_epoch = NO_BROKER_EPOCH
        self.broker_epoch = NO_BROKER_EPOCH
        self.next_producer_id = ProducerId(0)
        self.producer_ids_end = ProducerId(0)
        self.waiting_for_block: deque[Slot] = deque()


def start(state: NodeState, event: Started) -> None:
    """Replay what the disk holds and become leader of the next epoch."""
    duty = state.controller
    duty.incarnation = event.incarnation
    duty.previous_broker_epoch = BrokerEpoch(event.previous_broker_epoch)
    end, last_epoch = Offset(0), duty.voter.epoch
    for batch in event.log:
        assert isinstance(batch, MetadataBatch)
        end, last_epoch = Offset(batch.base_offset + len(batch.records)), batch.leader_epoch
        if not batch.control:
            for record in batch.records:
                duty.committed.replay(cast("MetadataRecord", record))
    duty.controller.image = duty.committed.copy()
    stored = event.quorum_state
    assert stored is None or isinstance(stored, QuorumStateData)
    elected = duty.voter.elect(stored=stored, end_offset=end, last_epoch=last_epoch)
    base_offset = duty.voter.append(1)
    leader_change = MetadataBatch(
        base_offset, duty.voter.epoch, (elected.leader_change,), True, event.wall
    )
    duty.gathering.append(
        Proposal((QuorumState(elected.state), leader_change), (), duty.voter.end_offset, Elected())
    )
    _persist(state)


def propose(state: NodeState, records: tuple[MetadataRecord, ...], then: Then) -> None:
    """Append these records together; ``then`` follows once they are committed."""
    duty = state.controller
    writes: tuple[Write, ...] = ()
    if records:
        base_offset = duty.voter.append(len(records))
        writes = (MetadataBatch(base_offset, duty.voter.epoch, records, False, state.wall),)
        for record in records:
            duty.controller.image.replay(record)
    duty.gathering.append(Proposal(writes, records, duty.voter.end_offset, then))
    if duty.token is None:
        _persist(state)


def on_persisted(state: NodeState, event: Persisted) -> None:
    """What was in flight is committed, in order."""
    duty = state.controller
    assert event.token == duty.token
    duty.token = None
    done, duty.in_flight = duty.in_flight, []
    for proposal in done:
        duty.voter.on_persisted(proposal.end_offset)
        for record in proposal.records:
            duty.committed.replay(record)
        if duty.broker_epoch != NO_BROKER_EPOCH:
            publishing.publish(state, proposal.records)
        duty.until_open.append(proposal.then)
    follow(state)
    if duty.gathering and duty.token is None:
        _persist(state)


def follow(state: NodeState) -> None:
    """Do what follows commits, once no log is being opened any more."""
    duty = state.controller
    while duty.until_open and not state.opening:
        due, duty.until_open = duty.until_open, []
        for then in due:
            _follow_one(state, then)


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


def _persist(state: NodeState) -> None:
    duty = state.controller
    duty.in_flight, duty.gathering = duty.gathering, []
    writes = tuple(write for proposal in duty.in_flight for write in proposal.writes)
    duty.token = state.next_persist_token()
    if writes:
        state.out.append(Persist(duty.token, writes))
    else:
        on_persisted(state, Persisted(duty.token))


def _follow_one(state: NodeState, then: Then) -> None:
    match then:
        case Elected():
            _on_elected(state)
        case Registered():
            duty = state.controller
            duty.broker_epoch = duty.committed.brokers[state.config.node_id].epoch
            publishing.publish_everything(state)
            duty.until_open.append(Unfenced())
        case Unfenced():
            _unfence_or_serve(state)
        case Answer(slot, reply):
            slot.connection.answer(slot, reply, state.out)
        case AnswerAgain(slot):
            state.again.append(slot)
        case BlockGranted(first, length):
            state.controller.next_producer_id = first
            state.controller.producer_ids_end = ProducerId(first + length)
            _hand_out_producer_ids(state)


def _on_elected(state: NodeState) -> None:
    duty = state.controller
    if not duty.controller.image.features:
        propose(state, bootstrap_records(duty.controller), Elected())
        return
    decided = decide_register(
        duty.controller,
        Registration(
            node_id=state.config.node_id,
            incarnation_id=duty.incarnation,
            endpoints=tuple(Endpoint(*endpoint, 0) for endpoint in state.config.endpoints),
            rack=state.config.rack,
            log_dirs=(state.config.directory_id,),
            previous_epoch=duty.previous_broker_epoch,
        ),
        epoch=BrokerEpoch(duty.voter.end_offset),
    )
    assert not isinstance(decided, Refusal), decided
    propose(state, decided, Registered())


def _unfence_or_serve(state: NodeState) -> None:
    duty = state.controller
    if duty.committed.brokers[state.config.node_id].fenced:
        propose(state, decide_unfence(duty.controller, state.config.node_id), Unfenced())
    elif not state.serving:
        state.serving = True
        state.out.append(Serve())


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
    duty = state.controller
    decided = decide_producer_ids(
        duty.controller, node_id=state.config.node_id, broker_epoch=duty.broker_epoch
    )
    if isinstance(decided, Refusal):
        state.out.append(Note("warning", f"no producer ids: {decided.text}"))
        while duty.waiting_for_block:
            slot = duty.waiting_for_block.popleft()
            slot.connection.answer(slot, producer_id_api.response_refused(decided), state.out)
        return
    propose(state, decided.records, BlockGranted(decided.first, decided.length))
