"""The records of a consumer group, as Kafka 4.3 writes them. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from cotidal.core.coordinator import KeyedRecord
from cotidal.core.groups.consumer.assignors import Partitions, TopicIdPartition
from cotidal.core.groups.consumer.group import ConsumerGroup, Current
from cotidal.messages.records.group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMemberValueTopicPartition,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartitions,
)
from cotidal.values import WallMillis, by_topic


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> KeyedRecord:
    value = ConsumerGroupMetadataValue(epoch, metadata_hash)
    return KeyedRecord(ConsumerGroupMetadataKey(group_id), value)


def member_record(
    group_id: str, member_id: str, value: ConsumerGroupMemberMetadataValue
) -> KeyedRecord:
    return KeyedRecord(ConsumerGroupMemberMetadataKey(group_id, member_id), value)


def target_record(group_id: str, member_id: str, partitions: Partitions) -> KeyedRecord:
    value = ConsumerGroupTargetAssignmentMemberValue(
        tuple(
            ConsumerGroupTargetAssignmentMemberValueTopicPartition(topic, own)
            for topic, own in by_topic(partitions).items()
        )
    )
    return KeyedRecord(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), value)


def target_epoch_record(group_id: str, epoch: int, wall: WallMillis) -> KeyedRecord:
    value = ConsumerGroupTargetAssignmentMetadataValue(epoch, wall)
    return KeyedRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id), value)


def current_record(group_id: str, member_id: str, told: Current) -> KeyedRecord:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        told.epoch,
        told.previous_epoch,
        told.state.value,
        _topics(told.assigned),
        _topics(told.revoking),
    )
    return KeyedRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id), value)


def _topics(held: Mapping[TopicIdPartition, int]) -> tuple[TopicPartitions, ...]:
    return tuple(
        TopicPartitions(topic, own, tuple(held[topic, each] for each in own))
        for topic, own in by_topic(held).items()
    )


def regex_record(
    group_id: str, regex: str, value: ConsumerGroupRegularExpressionValue | None
) -> KeyedRecord:
    return KeyedRecord(ConsumerGroupRegularExpressionKey(group_id, regex), value)


def member_tombstones(group_id: str, member_id: str) -> tuple[KeyedRecord, ...]:
    """A member that is no more, last things first."""
    return (
        KeyedRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id), None),
        KeyedRecord(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), None),
        KeyedRecord(ConsumerGroupMemberMetadataKey(group_id, member_id), None),
    )


def group_tombstones(group: ConsumerGroup) -> list[KeyedRecord]:
    """A group that is no more."""
    records: list[KeyedRecord] = []
    for member_id in group.members:
        records.extend(member_tombstones(group.id, member_id))
    records.append(KeyedRecord(ConsumerGroupTargetAssignmentMetadataKey(group.id), None))
    records.extend(regex_record(group.id, regex, None) for regex in group.regexes)
    records.append(KeyedRecord(ConsumerGroupMetadataKey(group.id), None))
    return records
