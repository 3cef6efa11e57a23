"""Controllers say who they are and what they can read. Pure. KIP-919.

A controller's registration gives it no part in the quorum: voters are the quorum's own matter. It
says where clients find it, and which feature levels the whole cluster may be raised to.
"""

from __future__ import annotations

from cotidal.core.cluster.controller import Controller, Decided
from cotidal.core.cluster.decide.features import refuse_levels
from cotidal.core.cluster.image import ControllerNode
from cotidal.core.cluster.registered import controller_record
from cotidal.errors import ErrorCode, Refusal


def decide_register_controller(controller: Controller, asked: ControllerNode) -> Decided:
    names = [endpoint.name for endpoint in asked.endpoints]
    if not names or len(set(names)) != len(names):
        return Refusal(
            ErrorCode.INVALID_REGISTRATION,
            f"controller {asked.node_id} names no listener, or one of them twice",
        )
    refusal = refuse_levels(controller.image, f"controller {asked.node_id}", asked.features)
    if refusal is not None:
        return refusal
    if controller.image.controllers.get(asked.node_id) == asked:
        return ()
    return (controller_record(asked),)
