"""UnregisterBroker (key 64), version 0.

KIP-631. A broker that will not come back is forgotten; replicas that were assigned to it stay
assigned until they are moved. One that runs has to be stopped first: it is refused with
INVALID_REQUEST (Kafka takes it out under its own feet).

Not there: nothing of the protocol.
"""

from __future__ import annotations

from cotidal.api.asked import Asked
from cotidal.core.cluster.controller import Controller
from cotidal.core.cluster.decide.brokers import decide_unregister
from cotidal.core.cluster.image import MetadataRecord
from cotidal.core.machine import Decision
from cotidal.errors import Refusal
from cotidal.messages.rpc.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from cotidal.values import NodeId


def decide(
    request: UnregisterBrokerRequest, asked: Asked, controller: Controller
) -> Decision[MetadataRecord, UnregisterBrokerResponse]:
    decided = decide_unregister(controller, NodeId(request.broker_id))
    if isinstance(decided, Refusal):
        reply = UnregisterBrokerResponse(error_code=decided.error, error_message=decided.text)
        return Decision((), reply)
    return Decision(decided, UnregisterBrokerResponse(error_message=None))
