"""Where a stream stands: what is written into a query's checkpoint. Pure.

    {"orders": {"0": 17, "1": 4}, "@cotidal": {"orders": {"id": "...", "epochs": {"0": 3, "1": 3}}}}

Offsets by topic and partition, as Spark's ``kafka`` format writes them, and what it takes to notice
that a log has lost records since: which topic it was (a name can be used again), and the epoch of
the leader that named each offset. No record below an offset has a later epoch than that. A topic
cannot be named ``@cotidal``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from cotidal.client.offsets import Position
from cotidal.values import LeaderEpoch, Offset, TopicPartition, Uuid

OURS: Final = "@cotidal"


class StreamOffset(NamedTuple):
    positions: Mapping[TopicPartition, Position]
    topic_ids: Mapping[str, Uuid]

    def offset(self, at: TopicPartition) -> Offset | None:
        position = self.positions.get(at)
        return None if position is None else position.offset


def to_json(offset: StreamOffset) -> dict[str, Any]:
    written: dict[str, Any] = {}
    ours: dict[str, Any] = {}
    for at, position in sorted(offset.positions.items()):
        written.setdefault(at.topic, {})[str(at.partition)] = position.offset
        of_topic = ours.setdefault(
            at.topic, {"id": bytes(offset.topic_ids[at.topic]).hex(), "epochs": {}}
        )
        of_topic["epochs"][str(at.partition)] = position.leader_epoch
    return {**written, OURS: ours}


def from_json(written: Mapping[str, Any]) -> StreamOffset:
    ours = written.get(OURS, {})
    positions: dict[TopicPartition, Position] = {}
    for topic, partitions in written.items():
        if topic != OURS:
            epochs = ours.get(topic, {}).get("epochs", {})
            for partition, offset in partitions.items():
                epoch = LeaderEpoch(epochs.get(partition, -1))
                at = TopicPartition(topic, int(partition))
                positions[at] = Position(Offset(offset), epoch)
    return StreamOffset(
        positions, {topic: Uuid(bytes.fromhex(told["id"])) for topic, told in ours.items()}
    )
