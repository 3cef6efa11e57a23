"""A controller makes itself known (ControllerRegistration). Pure. KIP-919.

Every controller, the active one too, has a record that says where it listens and which feature
levels it can read: by these records nodes of another make find the controllers, and no level is
finalized that one of them cannot read. A process asks for its record until the metadata has it. It
gives no part in the quorum: who votes is the quorum's own matter.

A node that is a cluster by itself has nobody to make itself known to.
Owns of the state: enrolment.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cotidal.api import to_controller as api
from cotidal.core.cluster.decide.features import OFFERED
from cotidal.core.cluster.image import METADATA_VERSION, ControllerNode
from cotidal.core.cluster.image import Endpoint as Told
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.controller_registration import ControllerRegistrationResponse
from cotidal.node import calls
from cotidal.node.effects import Note
from cotidal.node.state import NodeState
from cotidal.values import ZERO_UUID, Millis, Uuid

SINCE: Final = 15
"""The metadata.version (3.7-IV0) that has such records."""
RETRY_MS: Final = 1_000
TIMEOUT_MS: Final = 3_000


class Enrolling(NamedTuple):
    """A registration under way."""


class Enrolment:
    __slots__ = ("incarnation", "is_due", "is_under_way", "not_before")

    def __init__(self) -> None:
        self.incarnation = ZERO_UUID
        self.is_due = False
        """The metadata does not have this process yet, and it could."""
        self.is_under_way = False
        self.not_before = Millis(0)


def start(state: NodeState, incarnation: Uuid) -> None:
    state.enrolment.incarnation = incarnation


def on_metadata(state: NodeState) -> None:
    """Metadata has been applied: are we in it?"""
    config = state.config
    if not config.is_controller or not (config.voters or config.bootstrap):
        return
    image = state.controller.committed
    is_possible = image.features.get(METADATA_VERSION, 0) >= SINCE
    state.enrolment.is_due = is_possible and image.controllers.get(config.node_id) != _me(state)


def pump(state: NodeState) -> None:
    """At the end of a step: ask for it, if it is due."""
    enrolment = state.enrolment
    leader = state.controller.leader
    if enrolment.is_under_way or leader is None or state.now < enrolment.not_before or state.gone:
        return
    enrolment.is_under_way = True
    calls.call(
        state,
        leader.node_id,
        leader.endpoint,
        lane=calls.CONTROL_LANE,
        api=ApiKey.CONTROLLER_REGISTRATION,
        version=api.ENROLMENT_VERSION,
        message=api.enrolment(_me(state)),
        timeout_ms=TIMEOUT_MS,
        owner=Enrolling(),
    )


def on_answered(state: NodeState, reply: ControllerRegistrationResponse) -> None:
    """Granted or not, the metadata will tell; until then it is not asked for at once again."""
    if reply.error_code not in (ErrorCode.NONE, ErrorCode.NOT_CONTROLLER):
        why = reply.error_message or ErrorCode(reply.error_code).name
        sentence = f"the active controller does not register this controller: {why}"
        state.out.append(Note("warning", sentence))
    on_failed(state)


def on_failed(state: NodeState) -> None:
    state.enrolment.is_under_way = False
    state.enrolment.not_before = Millis(state.now + RETRY_MS)


def next_deadline(state: NodeState) -> Millis | None:
    enrolment = state.enrolment
    waits = enrolment.is_due and not enrolment.is_under_way and state.controller.leader is not None
    return enrolment.not_before if waits and not state.gone else None


def _me(state: NodeState) -> ControllerNode:
    return ControllerNode(
        node_id=state.config.node_id,
        incarnation_id=state.enrolment.incarnation,
        endpoints=tuple(Told(*point) for point in state.config.controller_endpoints),
        features=OFFERED,
    )
