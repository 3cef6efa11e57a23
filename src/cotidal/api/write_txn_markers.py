"""WriteTxnMarkers (key 27), versions 1-2. KIP-98; in 2 with the version of transactions (KIP-1228).

Coordinators send it to the leaders of a transaction's partitions, and operators to end one that
hangs. Version differences end in this file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from cotidal.core.partition.leader import MarkerAsk
from cotidal.core.transactions.asks import SendMarkers
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from cotidal.values import ProducerEpoch, ProducerId, TopicPartition, by_topic

ASKED_VERSION: Final = 2
RAISES_EPOCH: Final = 2


class Outgoing(NamedTuple):
    """One end of a transaction, for some of its partitions."""

    order: SendMarkers
    partitions: tuple[TopicPartition, ...]
    coordinator_epoch: int


def request_of(outgoing: Iterable[Outgoing]) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(
        tuple(
            WritableTxnMarker(
                each.order.producer.producer_id,
                each.order.producer.epoch,
                each.order.commit,
                tuple(
                    WritableTxnMarkerTopic(*named) for named in by_topic(each.partitions).items()
                ),
                each.coordinator_epoch,
                each.order.version,
            )
            for each in outgoing
        )
    )


def errors_in(
    answer: WriteTxnMarkersResponse,
) -> tuple[dict[TopicPartition, ErrorCode], ...]:
    """For each marker, in the order in which they were sent."""
    return tuple(
        {
            TopicPartition(topic.name, each.partition_index): ErrorCode(each.error_code)
            for topic in marker.topics
            for each in topic.partitions
        }
        for marker in answer.markers
    )


def asks(request: WriteTxnMarkersRequest) -> list[tuple[MarkerAsk, tuple[TopicPartition, ...]]]:
    return [
        (
            MarkerAsk(
                ProducerId(marker.producer_id),
                ProducerEpoch(marker.producer_epoch),
                marker.transaction_result,
                marker.coordinator_epoch,
                marker.transaction_version >= RAISES_EPOCH,
            ),
            tuple(
                TopicPartition(topic.name, number)
                for topic in marker.topics
                for number in topic.partition_indexes
            ),
        )
        for marker in request.markers
    ]


def response(
    request: WriteTxnMarkersRequest, errors: list[dict[TopicPartition, ErrorCode]]
) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        tuple(
            WritableTxnMarkerResult(
                marker.producer_id,
                tuple(
                    WritableTxnMarkerTopicResult(
                        topic.name,
                        tuple(
                            WritableTxnMarkerPartitionResult(
                                number, found[TopicPartition(topic.name, number)]
                            )
                            for number in topic.partition_indexes
                        ),
                    )
                    for topic in marker.topics
                ),
            )
            for marker, found in zip(request.markers, errors, strict=True)
        )
    )
