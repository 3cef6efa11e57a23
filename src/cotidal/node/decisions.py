"""Decisions on their way into the metadata log, and what follows their commit. Pure.

    decided -> submitted -> placed: replayed into the speculative image -> Committed
            -> replayed into the committed image -> published -> answered

  DURABLE_BEFORE_TOLD  an answer leaves only when its records, and all records before them, are
                       committed. A decision without records waits behind those in flight.

Only the leader of the quorum decides. On becoming it, the speculative image is the committed one
with everything replayed that is in the log and not yet committed; on ceasing to be, whatever waits
is told NOT_CONTROLLER: its records may commit all the same, under another leader.

Answers also wait until every log that a decision created here is open, so that a client that was
told of its new topic can write to it at once.
Owns of the state: controller.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple, TypeAlias

from cotidal.api.registry import refusals
from cotidal.core.cluster import duties as periodic
from cotidal.core.cluster import together
from cotidal.core.cluster.controller import Controller
from cotidal.core.cluster.decide.features import bootstrap_records
from cotidal.core.cluster.image import Image, MetadataRecord
from cotidal.core.cluster.sessions import Probe, decide_refused
from cotidal.messages.records.metadata import AbortTransactionRecord
from cotidal.messages.rpc.api_versions import ApiVersionsRequest
from cotidal.messages.rpc.apis import ApiKey
from cotidal.node import calls
from cotidal.node.connections import Slot
from cotidal.node.effects import Note
from cotidal.node.state import ControllerAt, NodeState
from cotidal.values import NO_BROKER_EPOCH, LeaderEpoch, Millis, NodeId, Offset

PROBE_TIMEOUT_MS = 500


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


class Probing(NamedTuple):
    """Is there anybody behind this broker's listener?"""

    probe: Probe
    asked_at: Millis
    begun_at: Millis
    """Of the first of these probes, where the ones before were lost."""
    lost: int = 0
    """So many were."""


class ProbeDue(NamedTuple):
    """A probe that was lost, and when it is to be repeated."""

    at: Millis
    probing: Probing


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
        "probes_due",
        "submitted",
        "until_open",
    )

    def __init__(self) -> None:
        self.committed = Image()
        self.leader: ControllerAt | None = None
        """Who leads the quorum, as far as is known here."""
        self.controller: Controller | None = None
        """While this node leads the quorum."""
        self.duties: periodic.Duties | None = None
        self.epoch = LeaderEpoch(-1)
        self.probes_due: dict[NodeId, ProbeDue] = {}
        """Of brokers whose last probe was lost."""
        self.submitted: deque[Proposal] = deque()
        """Decided, not yet proposed to the quorum: empty between two steps."""
        self.in_flight: deque[InFlight] = deque()
        self.until_open: list[Then] = []
        """What follows once every log is open."""
        self.broker_epoch = NO_BROKER_EPOCH
        """Of this node's broker, once it is registered."""


def activate(state: NodeState, epoch: LeaderEpoch) -> None:
    """This node leads the quorum: decide from now on."""
    duty = state.controller
    image = duty.committed.copy()
    tail = state.quorum.tail
    for _, record in together.counted(tail):
        state.tally.controller_events += 1
        image.replay(record)
    duty.epoch = epoch
    duty.controller = Controller(
        image, state.entropy, state.config.settings, node_id=state.config.node_id
    )
    end = state.quorum.machine.state.log.end_offset
    duty.duties, probes = periodic.begin(duty.controller, state.now, end_offset=end)
    if together.is_undecided(record for batch in tail for record in batch.records):
        submit(state, (AbortTransactionRecord(reason="its controller is gone"),), Nothing())
    if not image.features:
        submit(state, bootstrap_records(duty.controller), Nothing())
    for probe in probes:
        if probe.node_id != state.config.node_id:
            probe_listener(state, probe)
        elif probe.epoch != duty.broker_epoch:  # an earlier life of this very process
            fence_refused(state, probe)


def deactivate(state: NodeState) -> None:
    """Another node leads, or nobody: what is not committed may never be."""
    duty = state.controller
    duty.controller = duty.duties = None
    duty.probes_due.clear()
    lost, duty.in_flight = duty.in_flight, deque()
    for waiting in lost:
        _give_up(state, waiting.then)


def submit(state: NodeState, records: tuple[MetadataRecord, ...], then: Then) -> None:
    """Records to be appended together; ``then`` follows once they are committed.

    The quorum places them when it has obeyed what its machine says just now (quorum.place).
    """
    duty = state.controller
    if records:
        duty.submitted.append(Proposal(records, then))
    else:
        end = duty.in_flight[-1].end_offset if duty.in_flight else Offset(0)
        duty.in_flight.append(InFlight(end, then))
        on_committed(state, state.quorum.applied)


def on_placed(state: NodeState, proposal: Proposal, base_offset: Offset) -> None:
    duty = state.controller
    assert duty.controller is not None
    state.tally.controller_events += len(proposal.records)
    for record in proposal.records:
        duty.controller.image.replay(record)
    end = Offset(base_offset + len(proposal.records))
    duty.in_flight.append(InFlight(end, proposal.then))


def on_refused(state: NodeState, proposal: Proposal) -> None:
    _give_up(state, proposal.then)


def _give_up(state: NodeState, then: Then) -> None:
    """It may never be committed: whoever waits for it is told what is known now."""
    match then:
        case Answer(slot, _):
            refuse(state, slot)
        case AnswerAgain(slot):
            state.again.append(slot)
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


def refuse(state: NodeState, slot: Slot) -> None:
    """This node cannot decide: the asker looks for the controller again."""
    request = slot.request
    reply = refusals().not_controller(request.api_key, request.message)
    slot.connection.answer(slot, reply, state.out)


def probe_listener(state: NodeState, probe: Probe, lost: Probing | None = None) -> None:
    """``lost``: the one before, which this one repeats."""
    endpoint = calls.broker_endpoint(state, probe.node_id)
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
        owner=(
            Probing(probe, state.now, state.now)
            if lost is None
            else Probing(probe, state.now, lost.begun_at, lost.lost + 1)
        ),
    )


def fence_refused(state: NodeState, probe: Probe) -> None:
    duty = state.controller
    if duty.controller is None or duty.duties is None:
        return
    state.tally.controller_events += 1
    records = decide_refused(duty.controller, duty.duties.sessions, probe)
    if records:
        state.out.append(Note("info", f"fenced broker {probe.node_id}: nobody listens there"))
        submit(state, records, Nothing())
