"""What the log of a group coordinator says: groups and committed offsets. Pure.

The image is exactly what has been replayed, in the records' own classes. A group that only commits
offsets and never had a member has no record of its own (a *simple* group). What is committed in a
transaction that has not ended is apart (pending.py).

Not kept: records of share and streams groups (KIP-932, 1071): they are stepped over.
"""

from __future__ import annotations

from cotidal.core.coordinator import KeyedRecord
from cotidal.core.groups.consumer.group import ConsumerGroup, ConsumerKey
from cotidal.core.groups.pending import Offsets, PendingOffsets
from cotidal.messages.records.group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from cotidal.values import NO_PRODUCER_ID, ProducerId, TopicPartition


class GroupsImage:
    __slots__ = ("consumers", "groups", "offsets", "pending")

    def __init__(self) -> None:
        self.groups: dict[str, GroupMetadataValue] = {}
        """Of the classic protocol."""
        self.consumers: dict[str, ConsumerGroup] = {}
        """Of the consumer protocol."""
        self.offsets: Offsets = {}
        self.pending = PendingOffsets()

    def replay(self, record: KeyedRecord, producer_id: ProducerId = NO_PRODUCER_ID) -> None:
        key, value = record
        match key:
            case OffsetCommitKey() | LegacyOffsetCommitKey():
                partition = TopicPartition(key.topic, key.partition)
                self._replay_offset(key.group, partition, value, producer_id)
            case GroupMetadataKey(group):
                if isinstance(value, GroupMetadataValue):
                    self.groups[group] = value
                elif value is None:
                    self.groups.pop(group, None)
            case (
                ConsumerGroupMetadataKey()
                | ConsumerGroupPartitionMetadataKey()
                | ConsumerGroupMemberMetadataKey()
                | ConsumerGroupTargetAssignmentMetadataKey()
                | ConsumerGroupTargetAssignmentMemberKey()
                | ConsumerGroupCurrentMemberAssignmentKey()
                | ConsumerGroupRegularExpressionKey()
            ):
                self._replay_consumers(key, value)
            case _:
                pass

    def _replay_consumers(self, key: ConsumerKey, value: object | None) -> None:
        """What a group's own record does not yet, or no longer, vouch for may be in any order:
        compaction takes records away one by one."""
        group = self.consumers.get(key.group_id)
        if isinstance(key, ConsumerGroupMetadataKey) and value is None:
            self.consumers.pop(key.group_id, None)
        elif group is not None or value is not None:
            if group is None:
                group = self.consumers[key.group_id] = ConsumerGroup(key.group_id)
            group.replay(key, value)

    def _replay_offset(
        self, group: str, partition: TopicPartition, value: object | None, producer_id: ProducerId
    ) -> None:
        if isinstance(value, LegacyOffsetCommitValue):
            value = OffsetCommitValue(
                offset=value.offset,
                metadata=value.metadata,
                commit_timestamp=value.commit_timestamp,
            )
        match value:
            case OffsetCommitValue() if producer_id != NO_PRODUCER_ID:
                self.pending.add(group, partition, producer_id, value)
            case OffsetCommitValue():
                self.offsets.setdefault(group, {})[partition] = value
                self.pending.overtake(group, partition)
            case _:
                self.pending.forget(group, partition)
                held = self.offsets.get(group)
                if held is not None:
                    held.pop(partition, None)
                    if not held:
                        del self.offsets[group]

    def held(self, group: str) -> dict[TopicPartition, None]:
        """The partitions for which the group has an offset, or may have one."""
        return dict.fromkeys(self.offsets.get(group, ())) | self.pending.partitions(group)


def offset_record(
    group: str, partition: TopicPartition, value: OffsetCommitValue | None
) -> KeyedRecord:
    return KeyedRecord(OffsetCommitKey(group, partition.topic, partition.partition), value)


def group_record(group: str, value: GroupMetadataValue | None) -> KeyedRecord:
    return KeyedRecord(GroupMetadataKey(group), value)
