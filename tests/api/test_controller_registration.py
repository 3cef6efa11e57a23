from __future__ import annotations

from cotidal.api.controller_registration import decide
from cotidal.core.cluster.decide.features import SUPPORTED
from cotidal.core.cluster.image import Endpoint
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.controller_registration import (
    ControllerRegistrationRequest,
    Feature,
    Listener,
)
from cotidal.values import Uuid

FEATURES = tuple(Feature(*each) for each in SUPPORTED)


def test_controller_can_be_found_where_it_says(cluster, asked):
    request = ControllerRegistrationRequest(
        2, Uuid(b"c" * 16), False, (Listener("CONTROLLER", "c2", 9093, 0),), FEATURES
    )
    reply = cluster.commit(decide(request, asked(0), cluster.controller))
    assert reply == (0, ErrorCode.NONE, None)
    node = cluster.image.controllers[2]
    assert node.endpoints == (Endpoint("CONTROLLER", "c2", 9093, 0),)
    assert node.incarnation_id == Uuid(b"c" * 16)


def test_controller_that_listens_nowhere_is_refused(cluster, asked):
    request = ControllerRegistrationRequest(2, Uuid(b"c" * 16), False, (), FEATURES)
    decision = decide(request, asked(0), cluster.controller)
    assert (decision.records, decision.reply.error_code) == ((), ErrorCode.INVALID_REGISTRATION)
    assert decision.reply.error_message
