"""The partitions that this node hosts, and who waits for each of them. Pure.

Parked requests are indexed by partition, so that a partition that moves wakes just those.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from cotidal.core.partition.leader import WriteRules
from cotidal.core.partition.replica import Following, Replica
from cotidal.errors import ErrorCode
from cotidal.messages.batch import Placed, RecordRules
from cotidal.node.rate import Rate
from cotidal.values import NodeId, Offset, TopicPartition, Uuid, WallMillis

if TYPE_CHECKING:
    from cotidal.node.acks import PendingProduce
    from cotidal.node.deletions import PendingDelete
    from cotidal.node.fetch import PendingFetch
    from cotidal.node.replica_sessions import Put
    from cotidal.node.sessions import FetchedPartition, FetchSession


COORDINATED: Final = ("__consumer_offsets", "__transaction_state")
"""Topics whose leaders are coordinators (node/coordinators.py)."""


class Waiting:
    """One partition of a parked Produce: answered when ``required`` has been reached."""

    __slots__ = (
        "base_offset",
        "partition_position",
        "pending",
        "required",
        "timestamp",
        "topic_position",
    )

    def __init__(
        self,
        required: Offset,
        pending: PendingProduce,
        topic_position: int,
        partition_position: int,
        base_offset: Offset,
        timestamp: WallMillis,
    ) -> None:
        self.required = required
        self.pending = pending
        self.topic_position = topic_position
        self.partition_position = partition_position
        self.base_offset = base_offset
        self.timestamp = timestamp


class Said(NamedTuple):
    """A question, as it was put to the leader of that time."""

    to: Following
    put: Put


class Marking(Protocol):
    """The end of a transaction, written and not committed yet (markers.py)."""

    required: Offset

    def done(self, error: ErrorCode) -> None: ...


class WaitingLine:
    """Waits of one partition, ascending in the offset they wait for."""

    __slots__ = ("_line",)

    def __init__(self) -> None:
        self._line: list[Waiting] = []

    def __len__(self) -> int:
        return len(self._line)

    def add(self, waiting: Waiting) -> None:
        line = self._line
        if line and line[-1].required > waiting.required:
            # A duplicate waits with its original, which later batches have overtaken.
            insort(line, waiting, key=_required)
        else:
            line.append(waiting)

    def take(self, reached: Offset) -> list[Waiting]:
        """Remove and return every wait that ``reached`` satisfies."""
        line = self._line
        if not line or line[0].required > reached:
            return []
        if line[-1].required <= reached:
            self._line = []
            return line
        keep = next(i for i, waiting in enumerate(line) if waiting.required > reached)
        self._line = line[keep:]
        return line[:keep]

    def take_all(self) -> list[Waiting]:
        line, self._line = self._line, []
        return line


def _required(waiting: Waiting) -> Offset:
    return waiting.required


class Hosted:
    """One hosted partition."""

    __slots__ = (
        "coordinated",
        "cutting",
        "damaged_at",
        "deletions",
        "directory",
        "entries",
        "fetches",
        "housed_in",
        "marking",
        "paces",
        "record_rules",
        "replica",
        "replica_fetches",
        "resting",
        "rules",
        "said",
        "settings",
        "stamps",
        "throttled_follower",
        "throttled_leader",
        "unread_bytes",
        "until_committed",
        "until_written",
    )

    def __init__(self, partition: TopicPartition, topic_id: Uuid) -> None:
        self.coordinated = partition.topic in COORDINATED
        self.directory: Uuid | None = None
        """Where its log is, once it is open."""
        self.housed_in: Uuid | None = None
        """Where the controller shall know it to be; None as long as nothing is to be said."""
        self.damaged_at: Offset | None = None
        """While offline: damage begins here, and a cut would mend it."""
        self.replica = Replica(partition, topic_id)
        self.rules = WriteRules(0, 0, 0, False)
        self.record_rules: RecordRules | None = None
        """None for a topic that takes records as they come: then no batch is opened."""
        self.settings: Mapping[str, str] = {}
        self.cutting = False
        """The disk is cutting its log: what it answers next is what is left."""
        self.entries: list[Placed] = []
        """Batches admitted in this step, appended together at its end."""
        self.stamps: list[tuple[Offset, WallMillis]] = []
        """LogAppendTime: the time given to what ends at each offset, until it is acknowledged."""
        self.throttled_leader = False
        self.throttled_follower = False
        self.paces: dict[NodeId, Rate] = {}
        """As leader: how fast those catch up that are not in sync."""
        self.unread_bytes = 0
        """Written since fetches were last woken."""
        self.until_written = WaitingLine()
        """acks=1."""
        self.until_committed = WaitingLine()
        """acks=all."""
        self.marking: list[Marking] = []
        """Ends of transactions, ascending in the offset they wait for."""
        self.fetches: dict[PendingFetch, None] = {}
        self.replica_fetches: dict[PendingFetch, None] = {}
        self.resting: dict[FetchedPartition, FetchSession] = {}
        """Followers that have everything, in the sessions in which they fetch (resting.py)."""
        self.deletions: list[PendingDelete] = []
        self.said: Said | None = None
        """As follower: what it asked last, once its leader has told where its marks are."""
