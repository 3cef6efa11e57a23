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
    Answer,
    Nothing,
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
    """A connection that is refused is strong evidence; a silent one will run out of session."""
    if refused:
        fence_refused(state, probing.probe)
        quorum.place(state)


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
    return periodic.next_deadline(duty.controller, duty.duties)


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
