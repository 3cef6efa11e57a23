"""AddOffsetsToTxn (key 25), versions 0-4. KIP-98. T12.

Adds the partition of __consumer_offsets that keeps a group to a transaction; where that topic is
not created yet, the partition that it will be. Clients of transaction version 2 leave it out
(KIP-890): TxnOffsetCommit adds it for them.
"""

from __future__ import annotations

from typing import Final

from cotidal.api.asked import Asked
from cotidal.api.coordination import OFFSETS_TOPIC, Answered, Part, of_transaction
from cotidal.api.transactions import producer, told
from cotidal.api.view import View
from cotidal.core.coordinator import partition_of
from cotidal.core.transactions.asks import AddPartitions
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from cotidal.settings import effective
from cotidal.values import TopicPartition

FENCED_SINCE: Final = 2


def parts(request: AddOffsetsToTxnRequest, asked: Asked, view: View) -> tuple[Part | Answered, ...]:
    place = TopicPartition(OFFSETS_TOPIC, partition_of(request.group_id, _count(view)))
    ask = AddPartitions(
        request.transactional_id,
        producer(request.producer_id, request.producer_epoch),
        (place,),
    )
    return of_transaction(request.transactional_id, ask)


def _count(view: View) -> int:
    topic = view.image.topics.get(OFFSETS_TOPIC)
    if topic is not None:
        return len(topic.partitions)
    count = effective(
        "offsets.topic.num.partitions", cluster=view.image.cluster_config, static=view.settings
    ).value
    assert isinstance(count, int)
    return count


def response(
    request: AddOffsetsToTxnRequest, asked: Asked, answers: list[object]
) -> AddOffsetsToTxnResponse:
    (answer,) = answers
    error = ErrorCode.NONE
    if isinstance(answer, Refusal):
        error = told(answer.error, asked.api_version, fenced_since=FENCED_SINCE)
    return AddOffsetsToTxnResponse(error_code=error)
