"""What the APIs of transactions have in common. Pure. The rules: docs/spec/transactions.md."""

from __future__ import annotations

from typing import Final

from cotidal.core.transactions.asks import Producer
from cotidal.errors import ErrorCode
from cotidal.values import ProducerEpoch, ProducerId

RAISES_EPOCH: Final = 2
"""The version of transactions that newer requests imply."""


def producer(producer_id: int, epoch: int) -> Producer:
    return Producer(ProducerId(producer_id), ProducerEpoch(epoch))


def told(error: ErrorCode, version: int, *, fenced_since: int) -> ErrorCode:
    """Clients of older versions know no PRODUCER_FENCED (KIP-588)."""
    if error is ErrorCode.PRODUCER_FENCED and version < fenced_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error
