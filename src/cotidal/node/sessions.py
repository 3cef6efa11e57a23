"""Fetch sessions: a fetcher names its partitions once and then only what changes. Pure. KIP-227.

    session epoch 0    full fetch; begins a session when there is room
    session epoch n    incremental fetch in session ``session_id``; n counts up by one
    session epoch -1   full fetch without session; ends the named one

An incremental response holds only partitions that have data, an error, or a moved high watermark
or log start. Partitions that had data go to the back of the line, so that none starves behind the
first ones when a response is full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from cotidal.core.machine import Entropy
from cotidal.core.partition.resting import Rest
from cotidal.errors import ErrorCode
from cotidal.limits import FETCH_SESSION_IDLE_MS, FETCH_SESSIONS_MAX
from cotidal.values import NO_EPOCH, BrokerEpoch, LeaderEpoch, Millis, NodeId, Offset, Uuid

if TYPE_CHECKING:
    from cotidal.node.fetch import PendingFetch

FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
EPOCH_MAX: Final = 0x7FFFFFFF


def next_epoch(epoch: int) -> int:
    """Of an incremental fetch; both sides count."""
    return INITIAL_EPOCH + 1 if epoch == EPOCH_MAX else epoch + 1


class TopicRef(NamedTuple):
    """How a fetcher names a topic: by name below version 13, by id from there on."""

    name: str
    topic_id: Uuid


class FetchedPartition:
    """One partition of a fetch, and what the fetcher was last told of it."""

    __slots__ = (
        "current_epoch",
        "last_fetched_epoch",
        "max_bytes",
        "offset",
        "partition",
        "rest",
        "rests_in",
        "start_offset",
        "told_error",
        "told_high_watermark",
        "told_start",
        "topic",
    )

    def __init__(self, topic: TopicRef, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = Offset(0)
        self.max_bytes = 0
        self.current_epoch = NO_EPOCH
        self.last_fetched_epoch = NO_EPOCH
        self.start_offset = Offset(-1)
        """Of a follower's log."""
        self.told_high_watermark = Offset(-1)
        self.told_start = Offset(-1)
        self.told_error = False
        self.rest: Rest | None = None
        """Of a follower that has everything, and knows it (resting.py)."""
        self.rests_in: dict[FetchedPartition, FetchSession] = {}
        """Where its partition finds it, while it rests."""

    def ask(
        self,
        *,
        offset: Offset,
        max_bytes: int,
        current_epoch: LeaderEpoch,
        last_fetched_epoch: LeaderEpoch,
        start_offset: Offset,
    ) -> None:
        self.offset = offset
        self.max_bytes = max_bytes
        self.current_epoch = current_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.start_offset = start_offset
        self.rise()

    def rise(self) -> None:
        """It is to be looked at again."""
        if self.rest is not None:
            self.rest = None
            del self.rests_in[self]


PartitionKey = tuple[TopicRef, int]


class FetchSession:
    __slots__ = (
        "epoch",
        "fetcher",
        "id",
        "last_used",
        "partitions",
        "uses_topic_ids",
        "waiting",
    )

    def __init__(self, id_: int, *, uses_topic_ids: bool) -> None:
        self.id = id_
        self.epoch = INITIAL_EPOCH + 1
        self.uses_topic_ids = uses_topic_ids
        self.partitions: dict[PartitionKey, FetchedPartition] = {}
        self.last_used = Millis(0)
        self.fetcher: tuple[NodeId, BrokerEpoch] | None = None
        """Of a follower: which incarnation of whom fetched last."""
        self.waiting: PendingFetch | None = None
        """Its fetch that is not answered yet."""

    def forget(self, key: PartitionKey) -> None:
        gone = self.partitions.pop(key, None)
        if gone is not None:
            gone.rise()

    def rise(self) -> None:
        """Every partition of it is to be looked at again."""
        for fetched in self.partitions.values():
            fetched.rise()

    def advance(self) -> None:
        self.epoch = next_epoch(self.epoch)


class FetchSessions:
    """At most FETCH_SESSIONS_MAX sessions; an idle one gives way to a new one."""

    __slots__ = ("_by_id", "_entropy")

    def __init__(self, entropy: Entropy) -> None:
        self._by_id: dict[int, FetchSession] = {}
        self._entropy = entropy

    def __len__(self) -> int:
        return len(self._by_id)

    def begin(
        self, partitions: dict[PartitionKey, FetchedPartition], *, uses_topic_ids: bool, now: Millis
    ) -> FetchSession | None:
        """A new session over these partitions; None when every slot is in use."""
        if not partitions or not self._make_room(now):
            return None
        id_ = self._entropy.below(EPOCH_MAX - 1) + 1
        while id_ in self._by_id:
            id_ = self._entropy.below(EPOCH_MAX - 1) + 1
        session = FetchSession(id_, uses_topic_ids=uses_topic_ids)
        session.partitions = partitions
        session.last_used = now
        self._by_id[id_] = session
        return session

    def resume(
        self, id_: int, *, epoch: int, uses_topic_ids: bool, now: Millis
    ) -> FetchSession | ErrorCode:
        session = self._by_id.get(id_)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.uses_topic_ids != uses_topic_ids:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        # Kept in the order of use, so that the first one is the longest unused.
        del self._by_id[id_]
        self._by_id[id_] = session
        session.last_used = now
        session.advance()
        return session

    def end(self, id_: int) -> None:
        session = self._by_id.pop(id_, None)
        if session is not None:
            session.rise()

    def _make_room(self, now: Millis) -> bool:
        if len(self._by_id) < FETCH_SESSIONS_MAX:
            return True
        longest_unused = next(iter(self._by_id.values()))
        if now - longest_unused.last_used < FETCH_SESSION_IDLE_MS:
            return False
        self.end(longest_unused.id)
        return True
