"""Ids, epochs, offsets and times: the small values that every room of the house speaks in.

An offset named ``end_offset`` or ``high_watermark`` is exclusive: the next one to be written or
read. ``Millis`` is monotonic time for timers; ``WallMillis`` stands only inside records.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Hashable, Iterable
from typing import Final, NamedTuple, NewType, TypeVar

NodeId = NewType("NodeId", int)
"""A broker or controller. ``NO_NODE`` where there is none (a partition without leader)."""

LeaderEpoch = NewType("LeaderEpoch", int)
PartitionEpoch = NewType("PartitionEpoch", int)
BrokerEpoch = NewType("BrokerEpoch", int)
Offset = NewType("Offset", int)
ProducerId = NewType("ProducerId", int)
ProducerEpoch = NewType("ProducerEpoch", int)
Sequence = NewType("Sequence", int)
Millis = NewType("Millis", int)
WallMillis = NewType("WallMillis", int)

Uuid = NewType("Uuid", bytes)
"""Sixteen bytes. Topic, directory, incarnation and cluster ids; printed as Kafka prints them."""

NO_NODE: Final = NodeId(-1)
NO_EPOCH: Final = LeaderEpoch(-1)
NO_BROKER_EPOCH: Final = BrokerEpoch(-1)
NO_OFFSET: Final = Offset(-1)
NO_PRODUCER_ID: Final = ProducerId(-1)
NO_PRODUCER_EPOCH: Final = ProducerEpoch(-1)
NO_SEQUENCE: Final = Sequence(-1)
NO_TIMESTAMP: Final = WallMillis(-1)
ZERO_UUID: Final = Uuid(bytes(16))


class TopicPartition(NamedTuple):
    """A partition by its topic's name: what clients, file names and log lines use."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


TopicT = TypeVar("TopicT", bound=Hashable)
"""A topic's name, or its id."""


def by_topic(partitions: Iterable[tuple[TopicT, int]]) -> dict[TopicT, tuple[int, ...]]:
    """As most requests name partitions: topic by topic, each in the order in which it first came.

    >>> by_topic([TopicPartition("a", 2), TopicPartition("b", 0), TopicPartition("a", 1)])
    {'a': (2, 1), 'b': (0,)}
    """
    found: dict[TopicT, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return {topic: tuple(numbers) for topic, numbers in found.items()}


class EpochEntry(NamedTuple):
    """The first offset that was written in a leader epoch."""

    epoch: LeaderEpoch
    start_offset: Offset


def uuid_text(uuid: Uuid) -> str:
    """The 22 characters in which Kafka's tools and files write a uuid.

    >>> uuid_text(Uuid(bytes(16)))
    'AAAAAAAAAAAAAAAAAAAAAA'
    """
    return base64.urlsafe_b64encode(uuid).rstrip(b"=").decode()


def uuid_from_text(text: str) -> Uuid:
    """Inverse of uuid_text; ValueError for anything that is not a uuid."""
    try:
        raw = base64.urlsafe_b64decode(text + "==")
    except (binascii.Error, ValueError) as wrong:
        raise ValueError(f"'{text}' is not a uuid of 22 base64 characters") from wrong
    if len(raw) != 16:
        raise ValueError(f"'{text}' is not a uuid of 22 base64 characters")
    return Uuid(raw)
