"""AllocateProducerIds (key 67), version 0.

A broker gets a block of producer ids that nobody else has. KIP-730.

Not there: nothing of the protocol.
"""

from __future__ import annotations

from cotidal.api.asked import Asked
from cotidal.core.cluster.controller import Controller
from cotidal.core.cluster.decide.producer_ids import decide_producer_ids
from cotidal.core.cluster.image import MetadataRecord
from cotidal.core.machine import Decision
from cotidal.errors import Refusal
from cotidal.messages.rpc.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from cotidal.values import BrokerEpoch, NodeId


def decide(
    request: AllocateProducerIdsRequest, asked: Asked, controller: Controller
) -> Decision[MetadataRecord, AllocateProducerIdsResponse]:
    decided = decide_producer_ids(
        controller,
        node_id=NodeId(request.broker_id),
        broker_epoch=BrokerEpoch(request.broker_epoch),
    )
    if isinstance(decided, Refusal):
        return Decision((), AllocateProducerIdsResponse(error_code=decided.error))
    reply = AllocateProducerIdsResponse(
        producer_id_start=decided.first, producer_id_len=decided.length
    )
    return Decision(decided.records, reply)
