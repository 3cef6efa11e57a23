"""One replica of one partition: what its log holds, and the role it plays. Pure.

States and what moves where:

    Opening   the log is being opened                   -> Idle on LogOpened
    Idle      the log is open, no role yet              -> Leader, (Follower)
    Leader    takes writes, serves reads                -> Leader of a later epoch, Idle, Offline
    Offline   the disk failed this log: nothing is served until the node restarts

  HIGH_WATERMARK_IN_LOG  log start <= last stable offset <= high watermark <= end offset

``next_offset`` runs ahead of ``end_offset`` by what has been given to the log and not yet been
reported as written; a batch that is only on its way is never readable and never acknowledged.
Following a leader is not here yet: a partition has one replica.
"""

from __future__ import annotations

from cotidal.core.partition.effects import PartitionEffect, RememberProducers
from cotidal.core.partition.epochs import EpochCache
from cotidal.core.partition.high_watermark import clamped
from cotidal.core.partition.producer_state import Producers
from cotidal.invariants import HIGH_WATERMARK_IN_LOG
from cotidal.messages.batch import BatchHeader
from cotidal.messages.producers import ProducerSnapshot
from cotidal.values import NO_EPOCH, EpochEntry, LeaderEpoch, NodeId, Offset, TopicPartition, Uuid


class Leadership:
    """What only a leader has: its epoch, where that began, and whom it must wait for."""

    __slots__ = ("epoch", "epoch_start", "isr", "min_isr", "partition_epoch")

    def __init__(
        self,
        *,
        epoch: LeaderEpoch,
        epoch_start: Offset,
        partition_epoch: int,
        isr: tuple[NodeId, ...],
        min_isr: int,
    ) -> None:
        self.epoch = epoch
        self.epoch_start = epoch_start
        self.partition_epoch = partition_epoch
        self.isr = isr
        self.min_isr = min_isr


class Replica:
    """State of one replica. Offsets are exclusive ends; see the module's text."""

    __slots__ = (
        "end_offset",
        "epochs",
        "high_watermark",
        "leadership",
        "next_offset",
        "offline_reason",
        "opened",
        "partition",
        "producers",
        "start_offset",
        "topic_id",
    )

    def __init__(self, partition: TopicPartition, topic_id: Uuid) -> None:
        self.partition = partition
        self.topic_id = topic_id
        self.opened = False
        self.offline_reason: str | None = None
        self.start_offset = Offset(0)
        self.end_offset = Offset(0)
        self.next_offset = Offset(0)
        self.high_watermark = Offset(0)
        self.epochs = EpochCache()
        self.producers = Producers()
        self.leadership: Leadership | None = None

    @property
    def last_stable_offset(self) -> Offset:
        """Where a read_committed consumer stops: no transaction is ever open here yet."""
        return self.high_watermark

    @property
    def leader_epoch(self) -> LeaderEpoch:
        return NO_EPOCH if self.leadership is None else self.leadership.epoch

    def check(self) -> None:
        assert (
            self.start_offset
            <= self.last_stable_offset
            <= self.high_watermark
            <= self.end_offset
            <= self.next_offset
        ), HIGH_WATERMARK_IN_LOG


def on_log_opened(
    replica: Replica,
    *,
    start_offset: Offset,
    end_offset: Offset,
    high_watermark: Offset,
    epochs: tuple[EpochEntry, ...],
    producers: ProducerSnapshot | None,
    headers_after: tuple[BatchHeader, ...],
) -> None:
    """Rebuild everything that the core knows about a log from what was found on disk."""
    replica.opened = True
    replica.start_offset = start_offset
    replica.end_offset = replica.next_offset = end_offset
    replica.high_watermark = clamped(high_watermark, start=start_offset, end=end_offset)
    replica.epochs = EpochCache(epochs)
    replica.producers = Producers()
    if producers is not None:
        replica.producers.load(producers)
    replica.producers.replay(headers_after)
    replica.check()


def on_log_failed(replica: Replica, reason: str) -> None:
    replica.offline_reason = reason
    replica.leadership = None


def on_start_moved(replica: Replica, start_offset: Offset) -> bool:
    """Records below are deleted; True if the epoch cache changed with them."""
    replica.start_offset = max(replica.start_offset, start_offset)
    changed = replica.epochs.cut_below(replica.start_offset)
    replica.check()
    return changed


def on_rolled(replica: Replica) -> tuple[PartitionEffect, ...]:
    """A new segment has begun: keep what is known of producers up to here."""
    if not len(replica.producers):
        return ()
    return (RememberProducers(replica.producers.snapshot(offset=replica.next_offset)),)
