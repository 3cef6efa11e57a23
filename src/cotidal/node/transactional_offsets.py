"""Offsets that a group commits in a transaction: TxnOffsetCommit. Pure. T6, T20.

The partition of the group must be part of the transaction, as that of any record: its coordinator
is asked first, then the group's. A guard is taken before the question, as for a Produce
(verification.py): if the transaction ends meanwhile, the answer is worth nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from cotidal.api import add_partitions_to_txn as api
from cotidal.api.coordination import InTransactionPart
from cotidal.core.coordinator import InTransaction
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.add_partitions_to_txn import AddPartitionsToTxnResponse
from cotidal.node import coordinators, verification
from cotidal.node.coordinators import LOADING, NOT_COORDINATOR, Asker
from cotidal.node.state import NodeState
from cotidal.node.verification import NOT_NOW, Question
from cotidal.values import Sequence, TopicPartition


class Confirming(NamedTuple):
    """A commit whose transaction's coordinator is being asked."""

    partition: TopicPartition
    part: InTransactionPart
    transaction: InTransaction
    asker: Asker
    question: Question


def begin(
    state: NodeState, partition: TopicPartition, part: InTransactionPart, asker: Asker
) -> None:
    transaction = part.ask.transaction
    assert transaction is not None
    hosted = state.hosted.get(partition)
    if hosted is None or hosted.replica.leadership is None:
        opening = coordinators.is_opening(state, partition)
        asker.answer(LOADING if opening else NOT_COORDINATOR)
        return
    producer_id, epoch, _ = transaction
    producers = hosted.replica.producers
    if producers.has_open(producer_id, epoch):
        coordinators.ask(state, partition, part.ask, asker)
        return
    guard = producers.transactions.guard(producer_id, epoch, Sequence(0))
    question = Question(part.transactional_id, producer_id, epoch, (partition,), part.adds)
    guarded = transaction._replace(guard=guard)
    confirming = Confirming(partition, part, guarded, asker, question)
    if not verification.must_ask(state, question):
        _go_on(state, confirming, None)
    elif not verification.ask(state, confirming):
        on_failed(state, confirming)


def on_answered(
    state: NodeState, confirming: Confirming, response: AddPartitionsToTxnResponse
) -> None:
    again = confirming._replace(question=confirming.question.again())
    if verification.again_later(state, again, response):
        return
    error = api.errors_in(response).get(confirming.partition, ErrorCode.NOT_COORDINATOR)
    refused = None
    if error is not ErrorCode.NONE:
        refused = verification.refusal_of(error, may_abort=confirming.part.may_abort)
    _go_on(state, confirming, refused)


def on_failed(state: NodeState, confirming: Confirming) -> None:
    _go_on(state, confirming, NOT_NOW)


def _go_on(state: NodeState, confirming: Confirming, refused: Refusal | None) -> None:
    partition, part, transaction, asker, _ = confirming
    if refused is None:
        ask = part.ask._replace(transaction=transaction)
        coordinators.ask(state, partition, ask, asker)
        return
    hosted = state.hosted.get(partition)
    if hosted is not None and transaction.guard is not None:
        hosted.replica.producers.transactions.release(transaction.producer_id, transaction.guard)
    # Every client asks again when it is told that the coordinator loads, and asks the same one.
    asker.answer(LOADING if refused is NOT_NOW else refused)
