"""What a replica tells its node. Pure values; the node turns them into wake-ups and writes."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from cotidal.messages.producers import ProducerSnapshot
from cotidal.values import EpochEntry, Offset


class EndMoved(NamedTuple):
    """Records below ``end_offset`` are written here: wakes acks=1 and replica fetches."""

    end_offset: Offset


class Readable(NamedTuple):
    """What consumers may see has moved: wakes their fetches."""

    high_watermark: Offset
    last_stable_offset: Offset


class CompleteAcks(NamedTuple):
    """Records below this offset are committed: wakes acks=all."""

    below: Offset


class LeadershipLost(NamedTuple):
    """Fails everything that is parked here."""

    reason: str


class RememberEpochs(NamedTuple):
    entries: tuple[EpochEntry, ...]


class RememberProducers(NamedTuple):
    snapshot: ProducerSnapshot


PartitionEffect: TypeAlias = (
    EndMoved | Readable | CompleteAcks | LeadershipLost | RememberEpochs | RememberProducers
)
