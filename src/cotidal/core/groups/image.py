"""What the log of a group coordinator says: groups and committed offsets. Pure.

The image is exactly what has been replayed, in the records' own classes. A group that only commits
offsets and never had a member has no record of its own (a *simple* group).

Not kept: records of consumer, share and streams groups (KIP-848, 932, 1071): they are stepped over.
"""

from __future__ import annotations

from cotidal.core.coordinator import KeyedRecord
from cotidal.messages.records.group import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from cotidal.values import TopicPartition


class GroupsImage:
    __slots__ = ("groups", "offsets")

    def __init__(self) -> None:
        self.groups: dict[str, GroupMetadataValue] = {}
        self.offsets: dict[str, dict[TopicPartition, OffsetCommitValue]] = {}
        """By group; a group without any is not in it."""

    def replay(self, record: KeyedRecord) -> None:
        key, value = record
        match key:
            case OffsetCommitKey() | LegacyOffsetCommitKey():
                self._replay_offset(key.group, TopicPartition(key.topic, key.partition), value)
            case GroupMetadataKey(group):
                if isinstance(value, GroupMetadataValue):
                    self.groups[group] = value
                elif value is None:
                    self.groups.pop(group, None)
            case _:
                pass

    def _replay_offset(self, group: str, partition: TopicPartition, value: object | None) -> None:
        match value:
            case OffsetCommitValue():
                self.offsets.setdefault(group, {})[partition] = value
            case LegacyOffsetCommitValue():
                told = OffsetCommitValue(
                    offset=value.offset,
                    metadata=value.metadata,
                    commit_timestamp=value.commit_timestamp,
                )
                self.offsets.setdefault(group, {})[partition] = told
            case _:
                held = self.offsets.get(group)
                if held is not None:
                    held.pop(partition, None)
                    if not held:
                        del self.offsets[group]


def offset_record(
    group: str, partition: TopicPartition, value: OffsetCommitValue | None
) -> KeyedRecord:
    return KeyedRecord(OffsetCommitKey(group, partition.topic, partition.partition), value)


def group_record(group: str, value: GroupMetadataValue | None) -> KeyedRecord:
    return KeyedRecord(GroupMetadataKey(group), value)
