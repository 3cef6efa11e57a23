"""DescribeTransactions (key 65), version 0. KIP-664."""

from __future__ import annotations

from cotidal.api.asked import Asked
from cotidal.api.coordination import Answered, Part, of_transaction
from cotidal.api.view import View
from cotidal.core.transactions.asks import DescribeTransaction, Listed
from cotidal.errors import Refusal
from cotidal.messages.rpc.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from cotidal.values import by_topic


def parts(
    request: DescribeTransactionsRequest, asked: Asked, view: View
) -> tuple[Part | Answered, ...]:
    return tuple(
        part
        for id_ in request.transactional_ids
        for part in of_transaction(id_, DescribeTransaction(id_))
    )


def response(
    request: DescribeTransactionsRequest, asked: Asked, answers: list[object]
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=tuple(
            _state(id_, answer)
            for id_, answer in zip(request.transactional_ids, answers, strict=True)
        )
    )


def _state(id_: str, answer: object) -> TransactionState:
    if isinstance(answer, Refusal):
        return TransactionState(
            error_code=answer.error, transactional_id=id_, producer_id=-1, producer_epoch=-1
        )
    assert isinstance(answer, Listed)
    found = answer.transaction
    return TransactionState(
        transactional_id=id_,
        transaction_state=found.status.word,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.started_at,
        producer_id=found.producer_id,
        producer_epoch=found.epoch,
        topics=tuple(TopicData(*each) for each in by_topic(found.partitions).items()),
    )
