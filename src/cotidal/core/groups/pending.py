"""Offsets committed in transactions that have not ended. Pure. T20 of docs/spec/transactions.md.

They are in the log, and nobody's offsets yet: a commit makes them the group's, an abort forgets
them. Of several commits for one partition the one that was written last counts, whichever
transaction ends first; so what a later one has overtaken stays pending, and moves nothing any more.
"""

from __future__ import annotations

from collections.abc import Iterator

from cotidal.messages.records.group import OffsetCommitValue
from cotidal.values import ProducerId, TopicPartition

Offsets = dict[str, dict[TopicPartition, OffsetCommitValue]]
"""By group; a group without any is not in it."""


class PendingOffsets:
    __slots__ = ("_groups", "_producers")

    def __init__(self) -> None:
        self._groups: dict[str, dict[TopicPartition, dict[ProducerId, OffsetCommitValue | None]]]
        self._groups = {}
        """For each partition of a group, in the order of their records; None: overtaken."""
        self._producers: dict[ProducerId, dict[tuple[str, TopicPartition], None]] = {}
        """The same by producer."""

    def __contains__(self, group: str) -> bool:
        return group in self._groups

    def groups(self) -> Iterator[str]:
        return iter(self._groups)

    def partitions(self, group: str) -> dict[TopicPartition, None]:
        """Of this group, those whose next offset is not decided."""
        return dict.fromkeys(self._groups.get(group, ()))

    def holds(self, group: str, partition: TopicPartition) -> bool:
        return partition in self._groups.get(group, ())

    def of_topics(self, topic_ids: tuple[bytes, ...]) -> list[tuple[str, TopicPartition]]:
        return [
            (group, partition)
            for group, partitions in self._groups.items()
            for partition, values in partitions.items()
            if any(value is not None and value.topic_id in topic_ids for value in values.values())
        ]

    def add(
        self,
        group: str,
        partition: TopicPartition,
        producer_id: ProducerId,
        value: OffsetCommitValue,
    ) -> None:
        values = self._groups.setdefault(group, {}).setdefault(partition, {})
        values.pop(producer_id, None)
        values[producer_id] = value
        self._producers.setdefault(producer_id, {})[group, partition] = None

    def overtake(self, group: str, partition: TopicPartition) -> None:
        """Somebody has committed outside of transactions."""
        if group not in self._groups:
            return  # nearly always, and this is asked for every offset of a log
        values = self._groups[group].get(partition, {})
        for producer_id in values:
            values[producer_id] = None

    def forget(self, group: str, partition: TopicPartition) -> None:
        """The partition's offset is deleted, and with it what would have become its offset."""
        for producer_id in tuple(self._groups.get(group, {}).get(partition, ())):
            self._take(group, partition, producer_id)

    def end(self, producer_id: ProducerId, offsets: Offsets, *, committed: bool) -> None:
        """A marker: what the producer has pending becomes an offset, or nothing."""
        for group, partition in tuple(self._producers.get(producer_id, ())):
            if committed:
                self._commit(group, partition, producer_id, offsets)
            self._take(group, partition, producer_id)

    def _commit(
        self, group: str, partition: TopicPartition, producer_id: ProducerId, offsets: Offsets
    ) -> None:
        values = self._groups[group][partition]
        value = values[producer_id]
        if value is None:
            return
        offsets.setdefault(group, {})[partition] = value
        for earlier in values:
            if earlier == producer_id:
                break
            values[earlier] = None

    def _take(self, group: str, partition: TopicPartition, producer_id: ProducerId) -> None:
        places = self._producers[producer_id]
        del places[group, partition]
        if not places:
            del self._producers[producer_id]
        partitions = self._groups[group]
        del partitions[partition][producer_id]
        if not partitions[partition]:
            del partitions[partition]
        if not partitions:
            del self._groups[group]
