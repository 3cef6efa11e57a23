"""What a replica tells its node. Pure values; the node turns them into wake-ups and writes."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from cotidal.messages.batch import Batches
from cotidal.messages.producers import AbortedTransaction, ProducerSnapshot
from cotidal.values import (
    BrokerEpoch,
    EpochEntry,
    LeaderEpoch,
    NodeId,
    Offset,
    PartitionEpoch,
)


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


class RememberAborted(NamedTuple):
    """Enter these in the index of aborted transactions; their markers are in the log."""

    transactions: tuple[AbortedTransaction, ...]


class AppendFetched(NamedTuple):
    """A follower writes the leader's bytes as they are."""

    batches: Batches


class Truncate(NamedTuple):
    """A follower cuts its log; the disk answers with what is left."""

    offset: Offset


class StartOver(NamedTuple):
    """Nothing of this log is left at the leader: drop it and begin at this offset."""

    offset: Offset


class AdvanceLogStart(NamedTuple):
    """The leader deleted records: so does its follower."""

    offset: Offset


class IsrMember(NamedTuple):
    """A proposed member with the incarnation that fetched: -1 skips the check (KIP-903)."""

    node_id: NodeId
    broker_epoch: BrokerEpoch


class ProposeIsr(NamedTuple):
    """Ask the controller for another ISR (AlterPartition)."""

    isr: tuple[IsrMember, ...]
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch


PartitionEffect: TypeAlias = (
    EndMoved
    | Readable
    | CompleteAcks
    | LeadershipLost
    | RememberEpochs
    | RememberProducers
    | RememberAborted
    | AppendFetched
    | Truncate
    | StartOver
    | AdvanceLogStart
    | ProposeIsr
)
