"""ControllerRegistration (key 70), version 0.

A controller says where it listens and which feature levels it can read. KIP-919.

Not there: the migration from ZooKeeper; its flag is ignored.
"""

from __future__ import annotations

from cotidal.api.asked import Asked
from cotidal.core.cluster.controller import Controller
from cotidal.core.cluster.decide.controllers import decide_register_controller
from cotidal.core.cluster.image import ControllerNode, Endpoint, FeatureRange, MetadataRecord
from cotidal.core.machine import Decision
from cotidal.errors import Refusal
from cotidal.messages.rpc.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from cotidal.values import NodeId


def decide(
    request: ControllerRegistrationRequest, asked: Asked, controller: Controller
) -> Decision[MetadataRecord, ControllerRegistrationResponse]:
    decided = decide_register_controller(
        controller,
        ControllerNode(
            node_id=NodeId(request.controller_id),
            incarnation_id=request.incarnation_id,
            endpoints=tuple(Endpoint(*listener) for listener in request.listeners),
            features=tuple(FeatureRange(*feature) for feature in request.features),
        ),
    )
    if isinstance(decided, Refusal):
        reply = ControllerRegistrationResponse(error_code=decided.error, error_message=decided.text)
        return Decision((), reply)
    return Decision(decided, ControllerRegistrationResponse(error_message=None))
