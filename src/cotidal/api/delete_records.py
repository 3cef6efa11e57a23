"""DeleteRecords (key 21), versions 0-2. KIP-107.

Offset -1 means the high watermark. It is answered when every replica whose broker is active has let
go of the records, or is told REQUEST_TIMED_OUT: then they go on letting go.
"""

from __future__ import annotations

from cotidal.errors import Refusal
from cotidal.messages.rpc.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from cotidal.values import Offset


def partition_refused(partition: int, refusal: Refusal) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition, low_watermark=-1, error_code=refusal.error)


def partition_deleted(partition: int, low_watermark: Offset) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition, low_watermark=low_watermark)


def response(
    request: DeleteRecordsRequest, results: list[list[DeleteRecordsPartitionResult | None]]
) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=tuple(
            DeleteRecordsTopicResult(topic.name, tuple(r for r in partitions if r is not None))
            for topic, partitions in zip(request.topics, results, strict=True)
        )
    )
