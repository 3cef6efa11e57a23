"""EndTxn (key 26), versions 0-5. KIP-98; KIP-890 from 5 on: every end raises the epoch."""

from __future__ import annotations

from typing import Final

from cotidal.api.asked import Asked
from cotidal.api.coordination import Answered, Part, of_transaction
from cotidal.api.transactions import RAISES_EPOCH, producer, told
from cotidal.api.view import View
from cotidal.core.transactions.asks import EndTransaction, Producer
from cotidal.errors import Refusal
from cotidal.messages.rpc.end_txn import EndTxnRequest, EndTxnResponse

RAISES_EPOCH_SINCE: Final = 5
FENCED_SINCE: Final = 2


def parts(request: EndTxnRequest, asked: Asked, view: View) -> tuple[Part | Answered, ...]:
    ask = EndTransaction(
        request.transactional_id,
        producer(request.producer_id, request.producer_epoch),
        request.committed,
        RAISES_EPOCH if asked.api_version >= RAISES_EPOCH_SINCE else 0,
    )
    return of_transaction(request.transactional_id, ask)


def response(request: EndTxnRequest, asked: Asked, answers: list[object]) -> EndTxnResponse:
    (answer,) = answers
    if isinstance(answer, Refusal):
        error = told(answer.error, asked.api_version, fenced_since=FENCED_SINCE)
        return EndTxnResponse(error_code=error)
    assert isinstance(answer, Producer)
    return EndTxnResponse(producer_id=answer.producer_id, producer_epoch=answer.epoch)
