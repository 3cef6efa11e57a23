"""TxnOffsetCommit (key 28), versions 0-5. KIP-98. T20.

KIP-320 leader epochs from 2 on, KIP-447 the member and its generation from 3, KIP-890 from 4: a
transaction that must be aborted has an error of its own; from 5 on the partition of the group is
added to the transaction here, without AddOffsetsToTxn.
"""

from __future__ import annotations

from typing import Final

from cotidal.api.asked import Asked
from cotidal.api.coordination import Answered, AnyPart, InTransactionPart, of_group
from cotidal.api.offset_commit import commits, errors
from cotidal.api.view import View
from cotidal.core.coordinator import InTransaction
from cotidal.core.groups.asks import CommitOffsets
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from cotidal.values import ProducerEpoch, ProducerId

ABORTABLE_SINCE: Final = 4
ADDS_SINCE: Final = 5


def parts(request: TxnOffsetCommitRequest, asked: Asked, view: View) -> tuple[AnyPart, ...]:
    names = [topic.name if topic.name in view.image.topics else None for topic in request.topics]
    ask = CommitOffsets(
        group_id=request.group_id,
        generation=request.generation_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        commits=commits(names, request.topics, view),
        without_group=ErrorCode.ILLEGAL_GENERATION,
        transaction=InTransaction(
            ProducerId(request.producer_id), ProducerEpoch(request.producer_epoch)
        ),
    )
    known = Answered([name is not None for name in names])
    if not request.group_id:
        return (known, *of_group("", ask))
    version = asked.api_version
    part = InTransactionPart(
        request.group_id,
        ask,
        request.transactional_id,
        adds=version >= ADDS_SINCE,
        may_abort=version >= ABORTABLE_SINCE,
    )
    return (known, part)


def response(
    request: TxnOffsetCommitRequest, asked: Asked, answers: list[object]
) -> TxnOffsetCommitResponse:
    known, answer = answers
    assert isinstance(known, list)
    if isinstance(answer, Refusal) and answer.error is ErrorCode.STALE_MEMBER_EPOCH:
        answer = Refusal(ErrorCode.ILLEGAL_GENERATION)  # which producers know
    found = errors(known, request.topics, answer, missing=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return TxnOffsetCommitResponse(
        topics=tuple(
            TxnOffsetCommitResponseTopic(
                topic.name,
                tuple(
                    TxnOffsetCommitResponsePartition(each.partition_index, next(found))
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )
