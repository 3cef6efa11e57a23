"""InitProducerId (key 22), versions 0-5. KIP-98, KIP-360.

Ids for idempotent producers come out of blocks that the controller hands out. A transactional id is
answered with COORDINATOR_NOT_AVAILABLE until transactions are served.
"""

from __future__ import annotations

from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from cotidal.values import ProducerId


def refused(request: InitProducerIdRequest) -> Refusal | None:
    if request.transactional_id == "":
        return Refusal(ErrorCode.INVALID_REQUEST, "a transactional id may not be empty")
    if request.transactional_id is not None:
        return Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, "transactions are not served yet")
    return None


def response_refused(refusal: Refusal) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=refusal.error, producer_id=-1, producer_epoch=-1)


def response(producer_id: ProducerId) -> InitProducerIdResponse:
    """A fresh id begins with epoch 0, also for a producer that lost its old one (KIP-360)."""
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
