"""DescribeProducers (key 61), version 0. KIP-664.

Answered by every replica of a partition, leader or follower, from what it remembers of producers:
whoever looks for transactions that hang asks one broker for all that it has.

Not there: nothing of the protocol.
"""

from __future__ import annotations

from cotidal.api.asked import Asked
from cotidal.api.view import View
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from cotidal.values import TopicPartition


def answer(
    request: DescribeProducersRequest, asked: Asked, view: View
) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=tuple(
            TopicResponse(
                name=topic.name,
                partitions=tuple(
                    _partition(TopicPartition(topic.name, number), view)
                    for number in topic.partition_indexes
                ),
            )
            for topic in request.topics
        )
    )


def _partition(partition: TopicPartition, view: View) -> PartitionResponse:
    known = view.image.partition(partition.topic, partition.partition)
    if known is None:
        return _refused(
            partition,
            Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {partition}"),
        )
    replica = view.replica(partition)
    if replica is None or not replica.opened:
        return _refused(
            partition,
            Refusal(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {view.node_id} has no replica of {partition}; broker {known.leader} leads"
                if known.leader >= 0
                else f"nobody leads {partition} now",
            ),
        )
    if replica.offline_reason is not None:
        return _refused(partition, Refusal(ErrorCode.KAFKA_STORAGE_ERROR, replica.offline_reason))
    return PartitionResponse(
        partition_index=partition.partition,
        active_producers=tuple(
            ProducerState(
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.transaction_first_offset,
            )
            for producer in replica.producers.describe()
        ),
    )


def _refused(partition: TopicPartition, refusal: Refusal) -> PartitionResponse:
    return PartitionResponse(
        partition_index=partition.partition,
        error_code=refusal.error,
        error_message=refusal.text,
    )
