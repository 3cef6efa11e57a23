"""One replica of one partition: what its log holds, and the role it plays. Pure.

States and what moves where:

    Opening    the disk is opening or cutting the log   -> Idle, or the role it had, when it has
    Idle       the log is open, no role                 -> Leader, Follower
    Leader     takes writes, serves reads               -> Leader of a later epoch, Follower, Idle
    Follower   copies a leader's log (follower.py)      -> Follower of another, Leader, Idle
    Offline    the disk failed this log, it is damaged, or a promise about it was found broken:
               nothing is served until it is mended (node/offline.py) or the node restarts

  HIGH_WATERMARK_IN_LOG  log start <= last stable offset <= high watermark <= end offset

``next_offset`` runs ahead of ``end_offset`` by what has been given to the log and not yet been
reported as written; a batch that is only on its way is never readable and never acknowledged.
While the disk cuts the log, where it ends is not known: no role is taken and nothing is served.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from cotidal.core.partition.effects import (
    PartitionEffect,
    ProposeIsr,
    Readable,
    RememberAborted,
    RememberProducers,
)
from cotidal.core.partition.epochs import EpochCache
from cotidal.core.partition.high_watermark import clamped
from cotidal.core.partition.producer_state import Producers
from cotidal.core.partition.progress import Progress
from cotidal.invariants import EPOCHS_ASCEND, HIGH_WATERMARK_IN_LOG, ONE_LEADER_PER_EPOCH
from cotidal.messages.batch import Batches, BatchHeader, Marker
from cotidal.messages.producers import ProducerSnapshot
from cotidal.values import (
    NO_EPOCH,
    NO_OFFSET,
    BrokerEpoch,
    EpochEntry,
    LeaderEpoch,
    Millis,
    NodeId,
    Offset,
    PartitionEpoch,
    TopicPartition,
    Uuid,
)


class Leadership:
    """What only a leader has: its epoch, where that began, its followers, and the ISR."""

    __slots__ = (
        "active",
        "epoch",
        "epoch_start",
        "followers",
        "isr",
        "lag_max_ms",
        "min_isr",
        "node_id",
        "partition_epoch",
        "proposal",
    )

    def __init__(self, told: Appointment, *, epoch_start: Offset) -> None:
        self.node_id = told.node_id
        self.epoch = told.epoch
        self.epoch_start = epoch_start
        """The end of the log when this epoch began: who reaches it has all that was found here."""
        self.partition_epoch = told.partition_epoch
        self.isr = told.isr
        """As the controller has committed it."""
        self.proposal: ProposeIsr | None = None
        """Asked for and not yet answered. One at a time."""
        self.min_isr = told.effective_min_isr
        self.lag_max_ms = told.lag_max_ms
        self.active = told.active
        """Brokers that may be in an ISR, with the epoch of their incarnation."""
        self.followers: dict[NodeId, Progress] = {}

    @property
    def proposed(self) -> tuple[NodeId, ...] | None:
        """The ISR that was asked for."""
        if self.proposal is None:
            return None
        return tuple(member.node_id for member in self.proposal.isr)


class Appointment(NamedTuple):
    """What the controller says of a partition that this node leads."""

    node_id: NodeId
    epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    min_isr: int
    lag_max_ms: int = 10_000
    active: Mapping[NodeId, BrokerEpoch] = MappingProxyType({})

    @property
    def effective_min_isr(self) -> int:
        """No more than there are replicas, or a topic with few could never be written."""
        return min(self.min_isr, len(self.replicas))


class Following:
    """What only a follower has: whom it follows, and what it waits for."""

    __slots__ = (
        "epoch",
        "held",
        "leader",
        "leader_high_watermark",
        "leader_start",
        "lost_range",
        "needs_metadata",
        "not_before",
        "refusals",
    )

    def __init__(self, *, leader: NodeId, epoch: LeaderEpoch) -> None:
        self.leader = leader
        self.epoch = epoch
        self.held: Batches | None = None
        """Fetched, and written as soon as the disk has emptied the log for it."""
        self.needs_metadata = False
        """The leader has been told of a later epoch than we have."""
        self.lost_range = False
        """Our end is outside the leader's log: its ends must be asked for."""
        self.not_before = Millis(0)
        self.refusals = 0
        """In a row: each makes it wait longer."""
        self.leader_high_watermark = NO_OFFSET
        """-1 until this leader has answered: its follower's own stands until then."""
        self.leader_start = NO_OFFSET


class Replica:
    """State of one replica. Offsets are exclusive ends; see the module's text."""

    __slots__ = (
        "end_offset",
        "epochs",
        "following",
        "held_snapshot",
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
        self.held_snapshot: ProducerSnapshot | None = None
        """Of producers; kept once every transaction's end in it is committed."""
        self.leadership: Leadership | None = None
        self.following: Following | None = None

    @property
    def is_steady(self) -> bool:
        """The disk has done all it was asked: where the log ends is known."""
        return self.opened and self.next_offset == self.end_offset

    @property
    def last_stable_offset(self) -> Offset:
        """Where a read_committed consumer stops: no transaction that is open lies below (T2)."""
        unstable = self.producers.transactions.first_unstable
        if unstable is None or unstable >= self.high_watermark:
            return self.high_watermark
        return max(unstable, self.start_offset)

    @property
    def leader_epoch(self) -> LeaderEpoch:
        """Of the role that it plays; -1 without one."""
        if self.leadership is not None:
            return self.leadership.epoch
        return NO_EPOCH if self.following is None else self.following.epoch

    def check(self) -> None:
        assert (
            self.start_offset
            <= self.last_stable_offset
            <= self.high_watermark
            <= self.end_offset
            <= self.next_offset
        ), HIGH_WATERMARK_IN_LOG
        assert self.leadership is None or self.following is None, ONE_LEADER_PER_EPOCH
        if self.epochs.entries:
            assert self.epochs.entries[-1].start_offset <= self.next_offset, EPOCHS_ASCEND


def on_log_opened(
    replica: Replica,
    *,
    start_offset: Offset,
    end_offset: Offset,
    high_watermark: Offset,
    epochs: tuple[EpochEntry, ...],
    producers: ProducerSnapshot | None,
    headers_after: tuple[BatchHeader, ...],
    markers: tuple[Marker, ...] = (),
) -> tuple[PartitionEffect, ...]:
    """Rebuild everything that the core knows about a log from what was found on disk.

    An epoch entered by a leader that then wrote nothing in it is not in the log: it goes, so that
    a follower never asks about it (the entry is cut even where the log needs no cut). What is below
    the log's start goes too: a crash may have come between moving the start and saving epochs.
    """
    replica.opened = True
    replica.start_offset = start_offset
    replica.end_offset = replica.next_offset = end_offset
    replica.high_watermark = clamped(high_watermark, start=start_offset, end=end_offset)
    replica.epochs = EpochCache(epochs)
    replica.epochs.cut_from(end_offset)
    replica.epochs.cut_below(start_offset)
    replica.producers = Producers()
    if producers is not None:
        replica.producers.load(producers)
    replica.producers.replay(headers_after, markers)
    replica.producers.transactions.settle(replica.high_watermark)
    replica.held_snapshot = None
    replica.check()
    return aborted_up_to(replica, end_offset)


def on_log_failed(replica: Replica, reason: str) -> None:
    replica.offline_reason = reason
    replica.leadership = None
    replica.following = None


def on_start_moved(replica: Replica, start_offset: Offset) -> bool:
    """Records below are deleted; True if the epoch cache changed with them.

    Only committed records are: a follower whose leader has told it less since then knows now.
    """
    replica.start_offset = max(replica.start_offset, start_offset)
    replica.high_watermark = max(replica.high_watermark, replica.start_offset)
    changed = replica.epochs.cut_below(replica.start_offset)
    replica.check()
    return changed


def on_rolled(replica: Replica) -> tuple[PartitionEffect, ...]:
    """A new segment has begun: keep what is known of producers up to here.

    Not before every marker below it is committed: a snapshot says that a transaction has ended, and
    not where, so whoever starts from it could not tell that its end may still be cut (T2).
    """
    if not len(replica.producers):
        return ()
    snapshot = replica.producers.snapshot(offset=replica.next_offset)
    if replica.producers.transactions.is_settled:
        replica.held_snapshot = None
        return (RememberProducers(snapshot),)
    replica.held_snapshot = snapshot
    return ()


def move_high_watermark(replica: Replica, reached: Offset) -> tuple[PartitionEffect, ...]:
    """Up, or, for a follower that has a new leader, down."""
    replica.high_watermark = reached
    transactions = replica.producers.transactions
    if transactions.first_unstable is not None:
        transactions.settle(reached)
    readable = tuple.__new__(Readable, (reached, replica.last_stable_offset))
    held = replica.held_snapshot
    if held is None or reached < held.offset:
        return (readable,)
    replica.held_snapshot = None
    return (readable, RememberProducers(held))


def aborted_up_to(replica: Replica, end_offset: Offset) -> tuple[PartitionEffect, ...]:
    """Markers are written: what they have aborted is to be found in the index (T3)."""
    aborted = replica.producers.transactions.take_aborted(end_offset)
    return (RememberAborted(aborted),) if aborted else ()
