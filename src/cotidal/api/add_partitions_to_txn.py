"""AddPartitionsToTxn (key 24), versions 0-5. KIP-98; KIP-890 from 4 on: brokers ask, for several
transactions at once, and may only want to know (``verify_only``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from cotidal.api.asked import Asked
from cotidal.api.coordination import Answered, Part, of_transaction
from cotidal.api.transactions import RAISES_EPOCH, producer, told
from cotidal.api.view import View
from cotidal.core.transactions.asks import AddPartitions, PartitionsAdded
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from cotidal.values import TopicPartition, by_topic

SEVERAL_SINCE: Final = 4
FENCED_SINCE: Final = 2
ASKED_VERSION: Final = 5
"""In which a broker asks a coordinator."""


class Unknown(NamedTuple):
    """Partitions that do not exist: then none is added."""

    partitions: tuple[TopicPartition, ...]


def parts(
    request: AddPartitionsToTxnRequest, asked: Asked, view: View
) -> tuple[Part | Answered, ...]:
    return tuple(
        part
        for each in _transactions(request, asked.api_version)
        for part in _question(each, asked.api_version, view)
    )


def response(
    request: AddPartitionsToTxnRequest, asked: Asked, answers: list[object]
) -> AddPartitionsToTxnResponse:
    results = tuple(
        AddPartitionsToTxnResult(
            each.transactional_id, _results(each.topics, answer, asked.api_version)
        )
        for each, answer in zip(_transactions(request, asked.api_version), answers, strict=True)
    )
    if asked.api_version >= SEVERAL_SINCE:
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0].topic_results)


def question(
    transactional_id: str,
    producer_id: int,
    epoch: int,
    partitions: Iterable[TopicPartition],
    *,
    verify_only: bool,
) -> AddPartitionsToTxnRequest:
    """What a broker asks before a batch opens a transaction (T6)."""
    transaction = AddPartitionsToTxnTransaction(
        transactional_id,
        producer_id,
        epoch,
        verify_only,
        tuple(AddPartitionsToTxnTopic(*each) for each in by_topic(partitions).items()),
    )
    return AddPartitionsToTxnRequest(transactions=(transaction,))


def errors_in(answer: AddPartitionsToTxnResponse) -> dict[TopicPartition, ErrorCode]:
    """Of every partition that was asked for."""
    return {
        TopicPartition(topic.name, each.partition_index): ErrorCode(each.partition_error_code)
        for result in answer.results_by_transaction
        for topic in result.topic_results
        for each in topic.results_by_partition
    }


def _transactions(
    request: AddPartitionsToTxnRequest, version: int
) -> tuple[AddPartitionsToTxnTransaction, ...]:
    if version >= SEVERAL_SINCE:
        return request.transactions
    return (
        AddPartitionsToTxnTransaction(
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            False,
            request.v3_and_below_topics,
        ),
    )


def _question(
    each: AddPartitionsToTxnTransaction, version: int, view: View
) -> tuple[Part | Answered, ...]:
    partitions = tuple(
        TopicPartition(topic.name, number) for topic in each.topics for number in topic.partitions
    )
    unknown = tuple(at for at in partitions if view.image.partition(*at) is None)
    if unknown:
        return (Answered(Unknown(unknown)),)
    ask = AddPartitions(
        each.transactional_id,
        producer(each.producer_id, each.producer_epoch),
        partitions,
        each.verify_only,
        RAISES_EPOCH if version >= SEVERAL_SINCE else 0,
    )
    return of_transaction(each.transactional_id, ask)


def _results(
    topics: tuple[AddPartitionsToTxnTopic, ...], answer: object, version: int
) -> tuple[AddPartitionsToTxnTopicResult, ...]:
    return tuple(
        AddPartitionsToTxnTopicResult(
            topic.name,
            tuple(
                AddPartitionsToTxnPartitionResult(
                    number,
                    told(
                        _error(TopicPartition(topic.name, number), answer),
                        version,
                        fenced_since=FENCED_SINCE,
                    ),
                )
                for number in topic.partitions
            ),
        )
        for topic in topics
    )


def _error(partition: TopicPartition, answer: object) -> ErrorCode:
    match answer:
        case Refusal(error=error):
            return error
        case Unknown(partitions):
            if partition in partitions:
                return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return ErrorCode.OPERATION_NOT_ATTEMPTED
        case PartitionsAdded(missing):
            is_missing = partition in missing
            return ErrorCode.TRANSACTION_ABORTABLE if is_missing else ErrorCode.NONE
        case _:
            raise AssertionError(answer)
