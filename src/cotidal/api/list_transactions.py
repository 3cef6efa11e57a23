"""ListTransactions (key 66), versions 0-2. KIP-664; KIP-994 by duration from 1 on; KIP-1152 by a
pattern of the id in 2. Each broker lists those that it coordinates."""

from __future__ import annotations

import re

from cotidal.api.asked import Asked
from cotidal.api.coordination import TRANSACTIONS_TOPIC, Answered, Part
from cotidal.api.view import View
from cotidal.core.transactions.asks import ListTransactions, TransactionsListed
from cotidal.core.transactions.transaction import Status
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from cotidal.values import ProducerId

PATTERN_LENGTH_MAX = 1_000

_STATUSES = {status.word: status for status in Status}


def parts(
    request: ListTransactionsRequest, asked: Asked, view: View
) -> tuple[Part | Answered, ...]:
    if _pattern(request) is None:
        return (Answered(Refusal(ErrorCode.INVALID_REGULAR_EXPRESSION)),)
    statuses = None
    if request.state_filters:
        statuses = tuple(_STATUSES[name] for name in request.state_filters if name in _STATUSES)
    ids = tuple(map(ProducerId, request.producer_id_filters)) or None
    ask = ListTransactions(statuses, ids, request.duration_filter)
    return (Part(None, ask, TRANSACTIONS_TOPIC),)


def response(
    request: ListTransactionsRequest, asked: Asked, answers: list[object]
) -> ListTransactionsResponse:
    found: list[TransactionState] = []
    pattern = _pattern(request)
    for answer in answers:
        if isinstance(answer, Refusal):
            return ListTransactionsResponse(error_code=answer.error)
        assert isinstance(answer, TransactionsListed)
        found += [
            TransactionState(id_, each.producer_id, each.status.word)
            for id_, each in answer.found
            if pattern is not None and pattern.fullmatch(id_)
        ]
    return ListTransactionsResponse(
        unknown_state_filters=tuple(
            name for name in request.state_filters if name not in _STATUSES
        ),
        transaction_states=tuple(found),
    )


def _pattern(request: ListTransactionsRequest) -> re.Pattern[str] | None:
    """None: it is no regular expression, or a very long one."""
    text = request.transactional_id_pattern or ".*"
    if len(text) > PATTERN_LENGTH_MAX:
        return None
    try:
        return re.compile(text, re.DOTALL)
    except (re.error, RecursionError):
        return None
