"""InitProducerId (key 22), versions 0-5. KIP-98, KIP-360.

Ids for idempotent producers come out of blocks that the controller hands out. With a transactional
id it is the coordinator that answers, and an id that it needs comes from the same blocks.
"""

from __future__ import annotations

from typing import Final

from cotidal.api.asked import Asked
from cotidal.api.coordination import Answered, AnyPart, Fresh, of_transaction
from cotidal.api.transactions import producer, told
from cotidal.api.view import View
from cotidal.core.transactions.asks import InitProducer, Producer
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from cotidal.values import NO_PRODUCER_ID

FENCED_SINCE: Final = 4
NO_EPOCH: Final = -1


def parts(request: InitProducerIdRequest, asked: Asked, view: View) -> tuple[AnyPart, ...]:
    id_ = request.transactional_id
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_EPOCH):
        sentence = "a producer id comes with its epoch, or neither is given"
        return (Answered(Refusal(ErrorCode.INVALID_REQUEST, sentence)),)
    if id_ is None:
        return (Fresh(),)
    current = None
    if request.producer_id != NO_PRODUCER_ID:
        current = producer(request.producer_id, request.producer_epoch)
    return of_transaction(id_, InitProducer(id_, request.transaction_timeout_ms, current))


def response(
    request: InitProducerIdRequest, asked: Asked, answers: list[object]
) -> InitProducerIdResponse:
    (answer,) = answers
    if isinstance(answer, Refusal):
        error = told(answer.error, asked.api_version, fenced_since=FENCED_SINCE)
        return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)
    if not isinstance(answer, Producer):
        # A fresh id begins with epoch 0, also for a producer that lost its old one (KIP-360).
        assert isinstance(answer, int)
        return InitProducerIdResponse(producer_id=answer, producer_epoch=0)
    return InitProducerIdResponse(producer_id=answer.producer_id, producer_epoch=answer.epoch)
