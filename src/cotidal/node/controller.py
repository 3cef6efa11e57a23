"""The controller half of a node: who decides, what, and when. Pure.

A request for the controller is decided here while this node leads the quorum; what becomes of the
decision is in node.decisions. A node that does not lead forwards the request, and hands the answer
on.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from cotidal.api import to_controller
from cotidal.api.active import Active
from cotidal.api.registry import Owner, handler
from cotidal.core.cluster import duties as periodic
from cotidal.core.cluster.decide.topics import by_kind
from cotidal.core.cluster.image import MetadataRecord
from cotidal.core.cluster.sessions import Probe
from cotidal.core.quorum.states import Leader
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.broker_heartbeat import BrokerHeartbeatRequest
from cotidal.node import calls, quorum
from cotidal.node.connections import Slot
from cotidal.node.decisions import (
    PROBE_TIMEOUT_MS,
    Answer,
    Nothing,
    ProbeDue,
    Probing,
    Then,
    fence_refused,
    probe_listener,
    refuse,
    submit,
)
from cotidal.node.effects import Note
from cotidal.node.state import NodeState
from cotidal.settings import effective
from cotidal.values import Millis, NodeId

FORWARD_TIMEOUT_MS = 10_000
PROBE_AGAIN_FIRST_MS = 10
"""After a probe that was lost: a process that is killed is gone in a few milliseconds. Doubled each
time, up to PROBE_AGAIN_MAX_MS."""
PROBE_AGAIN_MAX_MS = 160
PROBED_AGAIN_MS = 3_000
"""For so long: something else than a dying process ends our connections there."""


class CreateCall(NamedTuple):
    """Topics that somebody asked for are being created by the active controller."""

    slot: Slot


class Forwarded(NamedTuple):
    """A client's request that the active controller answers in our place."""

    slot: Slot


def propose(state: NodeState, records: tuple[MetadataRecord, ...], then: Then) -> None:
    """Append these records together; ``then`` follows once they are committed."""
    submit(state, records, then)
    quorum.place(state)


def begin(state: NodeState, slot: Slot, owner: Owner) -> None:
    """A request that the controller decides."""
    state.control_moved = True
    duty = state.controller
    request = slot.request
    if duty.controller is None:
        forward(state, slot)
        return
    decide = handler(request.api_key).decide
    arguments: tuple[Any, ...] = (request.message, slot.asked, duty.controller)
    if owner is Owner.ACTIVE:
        assert duty.duties is not None
        if isinstance(request.message, BrokerHeartbeatRequest):
            slot.connection.broker = NodeId(request.message.broker_id)
        end = state.quorum.machine.state.log.end_offset
        arguments += (Active(duty.duties, state.now, end, state.config.cluster_id),)
    state.tally.controller_events += 1
    decision = decide(*arguments)
    propose(state, decision.records, Answer(slot, decision.reply))


def on_forwarded(state: NodeState, forwarded: Forwarded, reply: object) -> None:
    forwarded.slot.connection.answer(forwarded.slot, reply, state.out)


def on_forward_failed(state: NodeState, forwarded: Forwarded) -> None:
    refuse(state, forwarded.slot)


def on_probe_failed(state: NodeState, probing: Probing, *, refused: bool) -> None:
    """A connection that is refused is strong evidence; a silent one will run out of session. One
    that stood and was lost is neither: the system ends the connections of a process that is killed
    before its listener, which still took this one. A moment later it is refused."""
    if refused:
        fence_refused(state, probing.probe)
        quorum.place(state)
    elif state.now < probing.asked_at + PROBE_TIMEOUT_MS and _is_silent_since(state, probing):
        pause = min(PROBE_AGAIN_FIRST_MS << min(probing.lost, 10), PROBE_AGAIN_MAX_MS)
        due = ProbeDue(Millis(state.now + pause), probing)
        state.controller.probes_due[probing.probe.node_id] = due
        state.control_moved = True


def _is_silent_since(state: NodeState, probing: Probing) -> bool:
    """Its session goes on, and it has said nothing since it was first probed."""
    duties = state.controller.duties
    session = None if duties is None else duties.sessions.of.get(probing.probe.node_id)
    return (
        session is not None
        and session.last_contact <= probing.begun_at
        and probing.begun_at + PROBED_AGAIN_MS > state.now
    )


def _probe_again(state: NodeState) -> None:
    due = state.controller.probes_due
    for node_id, (at, probing) in list(due.items()):
        if at <= state.now:
            del due[node_id]
            if _is_silent_since(state, probing):
                probe_listener(state, probing.probe, probing)


def probe_broker(state: NodeState, node_id: NodeId) -> None:
    """A connection to or of this broker was lost: a hint, not a proof. Look."""
    duty = state.controller
    if duty.controller is None or duty.duties is None:
        return
    session = duty.duties.sessions.of.get(node_id)
    if session is not None and node_id != state.config.node_id:
        probe_listener(state, Probe(node_id, session.epoch))


def on_ticked(state: NodeState) -> None:
    duty = state.controller
    me = state.config.node_id
    if duty.duties is not None and me in duty.duties.sessions.of:
        # Whoever decides here is alive: a loop that stalled must not fence its own broker.
        session = duty.duties.sessions.of[me]
        if session.epoch == duty.broker_epoch:
            session.last_contact = state.now
    if duty.probes_due:
        _probe_again(state)
    while duty.controller is not None and duty.duties is not None and _leads(state):
        if periodic.next_deadline(duty.controller, duty.duties) > state.now:
            return
        state.tally.controller_events += 1
        due = periodic.decide_due(duty.controller, duty.duties, state.now)
        if due.reply:
            state.out.append(Note("info", due.reply))
        if due.records:
            propose(state, due.records, Nothing())


def next_deadline(state: NodeState) -> Millis | None:
    duty = state.controller
    if duty.controller is None or duty.duties is None or not _leads(state):
        return None
    deadline = periodic.next_deadline(duty.controller, duty.duties)
    return min((deadline, *(due.at for due in duty.probes_due.values())))


def _leads(state: NodeState) -> bool:
    """The machine has known for longer when it no longer leads: LostLeadership waits for a write,
    and until then every proposal is refused."""
    return isinstance(state.quorum.machine.state.role, Leader)


def create_elsewhere(state: NodeState, slot: Slot, names: tuple[str, ...]) -> bool:
    """Have the active controller create topics; the request is answered again when it has."""
    leader = state.controller.leader
    if leader is None or leader.node_id == state.config.node_id:
        return False
    topics = [by_kind(partial(_number, state), name) for name in names]
    calls.call(
        state,
        leader.node_id,
        leader.endpoint,
        lane=calls.FORWARD_LANE,
        api=ApiKey.CREATE_TOPICS,
        version=to_controller.CREATE_VERSION,
        message=to_controller.creation(topics, timeout_ms=FORWARD_TIMEOUT_MS),
        timeout_ms=FORWARD_TIMEOUT_MS,
        owner=CreateCall(slot),
    )
    return True


def forward(state: NodeState, slot: Slot) -> None:
    """Have the leader of the quorum answer it."""
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


def _number(state: NodeState, name: str) -> int:
    """A setting, as it holds for all brokers."""
    cluster = state.controller.committed.cluster_config
    value = effective(name, cluster=cluster, static=state.config.settings).value
    assert isinstance(value, int), name
    return value
