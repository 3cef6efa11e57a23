"""Fetch: from a request to what may be read, to the disk, to a reply or into the park. Pure.

    begin -> evaluate -> (nothing to read yet) -> parked -> woken or deadline -> evaluate
                      -> Read -> ReadDone -> enough bytes -> reply
                                          -> too few      -> parked, until as many have come

A leader sends a consumer that names its rack to a replica there (replica.selector.class); such an
answer, like an error, does not wait.

A follower that is throttled gets nothing of the partition until it may (throttles.py): its fetch
waits like one that has nothing to read, and is looked at again when that moment has come.

A parked fetch counts the bytes it still lacks and is read again only when they are there: a
consumer with a large fetch.min.bytes does not make the disk work for every small batch.
Owns of the state: sessions, dirty_fetches, deadlines.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection
from typing import Final, NamedTuple, TypeAlias

from cotidal.api import fetch as api
from cotidal.api.leaders import Leader
from cotidal.core.machine import ripens
from cotidal.core.partition.leader import FollowerFetched, on_follower_fetched
from cotidal.core.partition.nearest import select_read_replica
from cotidal.core.partition.reading import (
    READ_COMMITTED,
    Diverged,
    Granted,
    admit_fetch,
    admit_replica_fetch,
)
from cotidal.errors import ErrorCode, Refusal
from cotidal.limits import FETCH_WAIT_MAX_MS
from cotidal.messages.batch import Stretch
from cotidal.messages.producers import AbortedTransaction
from cotidal.messages.rpc.fetch import FetchRequest, PartitionData
from cotidal.node import quotas, throttles
from cotidal.node.connections import Slot
from cotidal.node.effects import Read, Want
from cotidal.node.events import ReadDone
from cotidal.node.hosting import Hosted
from cotidal.node.partition_effects import move
from cotidal.node.redirects import leader_instead, not_here
from cotidal.node.resting import lie_down, restless
from cotidal.node.sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchedPartition,
    FetchSession,
    PartitionKey,
    TopicRef,
)
from cotidal.node.state import NodeState
from cotidal.values import BrokerEpoch, LeaderEpoch, Millis, NodeId, Offset, TopicPartition, Uuid

_new: Final = tuple.__new__
"""Makes a NamedTuple in half the time that calling its class takes."""


class Marks(NamedTuple):
    """What an answer says of a partition besides its records."""

    high_watermark: Offset
    last_stable_offset: Offset
    start_offset: Offset


NO_MARKS: Final = Marks(Offset(-1), Offset(-1), Offset(-1))


def _marks(hosted: Hosted) -> Marks:
    replica = hosted.replica
    return _new(Marks, (replica.high_watermark, replica.last_stable_offset, replica.start_offset))


class Nearer(NamedTuple):
    """A replica in the consumer's rack serves it as well (KIP-392)."""

    node_id: NodeId


Verdict: TypeAlias = Granted | Diverged | Nearer | Refusal


class Asked(NamedTuple):
    """One partition of a fetch as it was last evaluated."""

    fetched: FetchedPartition
    hosted: Hosted | None
    verdict: Verdict
    marks: Marks


class FetchingReplica(NamedTuple):
    """A follower that fetches: its offset says what it holds."""

    node_id: NodeId
    broker_epoch: BrokerEpoch
    is_news: bool
    """Not yet told to the leader; a fetch that is evaluated again says nothing new."""


class PendingFetch:
    """A fetch that is not answered yet."""

    __slots__ = (
        "answered",
        "asked",
        "deadline",
        "disturbed",
        "held_back",
        "incremental",
        "is_level",
        "isolation_level",
        "leaders",
        "max_bytes",
        "min_bytes",
        "missing_bytes",
        "partitions",
        "rack",
        "reading",
        "replica",
        "ripe_at",
        "session",
        "slot",
        "urgent",
    )

    def __init__(self, slot: Slot, request: FetchRequest, deadline: Millis, bytes_max: int) -> None:
        self.slot = slot
        self.session: FetchSession | None = None
        self.incremental = False
        self.partitions: Collection[FetchedPartition] = ()
        """To be looked at; of a follower's session only those that do not rest (resting.py)."""
        self.disturbed: list[FetchedPartition] = []
        """Those that rested when this was last looked at, and do so no more."""
        self.replica: FetchingReplica | None = None
        self.rack = ""
        """Of a consumer that may be sent to a replica near it."""
        self.isolation_level = request.isolation_level
        self.max_bytes = min(max(request.max_bytes, 0), bytes_max)
        self.min_bytes = min(request.min_bytes, self.max_bytes)
        self.deadline = deadline
        self.ripe_at = deadline
        """From then on it may end early (a follower's)."""
        self.missing_bytes = 0
        self.asked: list[Asked] = []
        self.urgent = False
        """Something must be told now: an error or a divergence."""
        self.held_back = False
        """A partition has records that its follower may not have yet."""
        self.is_level = False
        """Of a follower that had everything when this was last looked at."""
        self.reading: list[int] = []
        """Positions in ``asked`` of the wants that the disk is reading."""
        self.leaders: dict[NodeId, Leader] = {}
        """Whom the answer names, as the ones to ask."""
        self.answered = False

    def forget(self) -> None:
        self.end()
        _unpark(self)

    def end(self) -> None:
        """It has its answer, or nobody waits for one any more."""
        self.answered = True
        if self.session is not None and self.session.waiting is self:
            self.session.waiting = None


def begin(state: NodeState, slot: Slot, request: FetchRequest) -> None:
    version = slot.request.api_version
    wait = min(max(request.max_wait_ms, 0), FETCH_WAIT_MAX_MS)
    pending = PendingFetch(slot, request, Millis(state.now + wait), state.fetch_bytes_max)
    slot.parked = pending
    error = _join_session(state, pending, request, version)
    if error is not None:
        _reply_error(state, slot, error)
        return
    follower = api.fetcher_id(request, version)
    if follower >= 0:
        epoch = api.fetcher_epoch(request, version)
        pending.replica = _new(FetchingReplica, (NodeId(follower), epoch, True))
        pending.ripe_at = ripens(state.now, wait)
        if pending.session is not None and pending.incremental:
            pending.partitions = restless(state, pending.session, NodeId(follower), epoch)
    else:
        # A follower's fetch is counted as what it tells its leader.
        state.tally.partition_events += len(pending.partitions)
        if state.quotas.active:
            largest = quotas.fetch_bytes_max(state, slot.connection)
            pending.max_bytes = min(pending.max_bytes, largest)
            pending.min_bytes = min(pending.min_bytes, pending.max_bytes)
        if state.selects_by_rack and version >= api.FOLLOWERS_SERVE_SINCE:
            pending.rack = request.rack_id
    _evaluate(state, pending)


def on_read_done(state: NodeState, pending: PendingFetch, event: ReadDone) -> None:
    if pending.answered:  # its connection is gone
        return
    total = 0
    data: dict[int, bytes | memoryview | Stretch | str] = {}
    read, pending.reading = pending.reading, []
    aborted = dict(zip(read, event.aborted, strict=False))
    for position, result in zip(read, event.results, strict=True):
        if isinstance(result, str):
            pending.urgent = True
            if _gone_since(state, pending, position):
                continue
        data[position] = result
        total += len(result)
    if total >= pending.min_bytes or pending.urgent or state.now >= pending.deadline:
        _answer(state, pending, data, aborted)
    else:
        _park(state, pending, missing_bytes=pending.min_bytes - total)
        if pending.disturbed:
            state.dirty_fetches[pending] = None


def _gone_since(state: NodeState, pending: PendingFetch, position: int) -> bool:
    """The disk could not read this: was it deleted, or the role lost, while it was asked?"""
    asked = pending.asked[position]
    uses_topic_ids = api.uses_topic_ids(pending.slot.request.api_version)
    hosted, verdict = _admit(state, pending, asked.fetched, uses_topic_ids)
    if isinstance(verdict, Granted):
        return False
    marks = NO_MARKS if hosted is None else _marks(hosted)
    pending.asked[position] = Asked(asked.fetched, hosted, verdict, marks)
    return True


def evaluate_dirty(state: NodeState) -> None:
    """At the end of a step: look again at every fetch that was woken in it, once."""
    while state.dirty_fetches:
        woken, state.dirty_fetches = state.dirty_fetches, {}
        for pending in woken:
            if not pending.answered:
                _unpark(pending)
                if pending.replica is not None and pending.incremental:
                    looked_at = [asked.fetched for asked in pending.asked]
                    pending.partitions = [*looked_at, *pending.disturbed]
                    pending.disturbed = []
                _evaluate(state, pending)


def on_ticked(state: NodeState) -> None:
    deadlines, now = state.deadlines, state.now
    while deadlines:
        wake, _, pending = deadlines[0]
        is_level = pending.is_level and pending not in state.dirty_fetches
        may_expire = is_level and now >= pending.ripe_at
        if wake > now and not may_expire and not pending.answered:
            return
        heapq.heappop(deadlines)
        if pending.answered or pending.reading:  # the disk's answer ends it
            continue
        if may_expire:
            _expire(state, pending)
        else:
            state.dirty_fetches[pending] = None


def _expire(state: NodeState, pending: PendingFetch) -> None:
    """The poll of a follower that has everything ends, and nothing has woken it: it is told the
    marks as they are now, and no partition is looked at again for it."""
    _unpark(pending)
    pending.asked = [
        asked
        if asked.hosted is None
        else _new(Asked, (asked.fetched, asked.hosted, asked.verdict, _marks(asked.hosted)))
        for asked in pending.asked
    ]
    _answer(state, pending, {}, {})


def next_deadline(state: NodeState) -> Millis | None:
    deadlines = state.deadlines
    while deadlines and deadlines[0][2].answered:
        heapq.heappop(deadlines)
    return deadlines[0][0] if deadlines else None


def _join_session(
    state: NodeState, pending: PendingFetch, request: FetchRequest, version: int
) -> ErrorCode | None:
    uses_topic_ids = api.uses_topic_ids(version)
    if request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
        if request.session_id:
            state.sessions.end(request.session_id)
        partitions: dict[PartitionKey, FetchedPartition] = {}
        _take_partitions(partitions, request)
        if request.session_epoch == INITIAL_EPOCH:
            pending.session = state.sessions.begin(
                partitions, uses_topic_ids=uses_topic_ids, now=state.now
            )
            if pending.session is not None:
                pending.session.waiting = pending
        pending.partitions = partitions.values()
        return None
    session = state.sessions.resume(
        request.session_id,
        epoch=request.session_epoch,
        uses_topic_ids=uses_topic_ids,
        now=state.now,
    )
    if isinstance(session, ErrorCode):
        return session
    _take_partitions(session.partitions, request)
    for forgotten in request.forgotten_topics_data:
        topic = TopicRef(forgotten.topic, forgotten.topic_id)
        for partition in forgotten.partitions:
            session.forget((topic, partition))
    session.waiting = pending
    pending.session = session
    pending.incremental = True
    pending.partitions = session.partitions.values()
    return None


def _take_partitions(
    partitions: dict[PartitionKey, FetchedPartition], request: FetchRequest
) -> None:
    for topic in request.topics:
        ref = _new(TopicRef, (topic.topic, topic.topic_id))
        for asked in topic.partitions:
            key = (ref, asked.partition)
            fetched = partitions.get(key)
            if fetched is None:
                fetched = partitions[key] = FetchedPartition(ref, asked.partition)
            fetched.ask(
                offset=Offset(asked.fetch_offset),
                max_bytes=asked.partition_max_bytes,
                current_epoch=LeaderEpoch(asked.current_leader_epoch),
                last_fetched_epoch=LeaderEpoch(asked.last_fetched_epoch),
                start_offset=Offset(asked.log_start_offset),
            )


def _evaluate(state: NodeState, pending: PendingFetch) -> None:
    """Look at every partition; read, reply or park."""
    uses_topic_ids = api.uses_topic_ids(pending.slot.request.api_version)
    pending.asked = []
    pending.reading = []
    pending.urgent = False
    pending.held_back = False
    replica = pending.replica
    wants: list[Want] = []
    for fetched in pending.partitions:
        hosted, verdict = _admit(state, pending, fetched, uses_topic_ids)
        marks = NO_MARKS if hosted is None else _marks(hosted)
        if hosted is None or not isinstance(verdict, Granted):
            if not (pending.incremental and isinstance(verdict, Refusal) and fetched.told_error):
                pending.urgent = True
        elif fetched.offset < verdict.below:
            if replica is not None and throttles.holds_back(state, hosted, replica.node_id):
                pending.held_back = True
                state.leader_throttle.held_back += 1
            else:
                pending.reading.append(len(pending.asked))
                place = hosted.replica.partition
                want = (place, fetched.offset, fetched.max_bytes, verdict.below)
                wants.append(_new(Want, want))
        if (
            replica is not None
            and replica.is_news
            and hosted is not None
            and isinstance(verdict, Granted)
            and _tell_leader(state, pending, replica, hosted, fetched)
        ):
            continue
        pending.asked.append(_new(Asked, (fetched, hosted, verdict, marks)))
    pending.is_level = replica is not None and not wants and not pending.held_back
    if replica is not None and replica.is_news:
        pending.replica = _new(FetchingReplica, (replica.node_id, replica.broker_epoch, False))
    if wants:
        token = state.next_read_token(pending)
        committed = pending.isolation_level == READ_COMMITTED and replica is None
        read = (token, tuple(wants), pending.max_bytes, committed, True)
        state.out.append(_new(Read, read))
    elif pending.urgent or pending.min_bytes <= 0 or state.now >= pending.deadline:
        _answer(state, pending, {}, {})
    else:
        _park(state, pending, missing_bytes=pending.min_bytes)


def _tell_leader(
    state: NodeState,
    pending: PendingFetch,
    replica: FetchingReplica,
    hosted: Hosted,
    fetched: FetchedPartition,
) -> bool:
    """What a follower asks for tells how far it has got. The answer carries the marks as they were
    before that: a follower's high watermark is a round trip behind. True if it rests now."""
    told = _new(
        FollowerFetched,
        (replica.node_id, fetched.offset, fetched.start_offset, replica.broker_epoch),
    )
    move(state, hosted, on_follower_fetched, told, state.now)
    session = pending.session
    return session is not None and pending.incremental and lie_down(hosted, session, fetched, told)


def _admit(
    state: NodeState, pending: PendingFetch, fetched: FetchedPartition, uses_topic_ids: bool
) -> tuple[Hosted | None, Verdict]:
    name = fetched.topic.name
    if uses_topic_ids:
        known = state.controller.committed.topic_names.get(fetched.topic.topic_id)
        if known is None:
            return None, Refusal(ErrorCode.UNKNOWN_TOPIC_ID)
        name = known
    place = _new(TopicPartition, (name, fetched.partition))
    hosted = state.hosted.get(place)
    if hosted is None:
        return None, not_here(state, place)
    if pending.replica is not None:
        return hosted, admit_replica_fetch(
            hosted.replica,
            node_id=pending.replica.node_id,
            broker_epoch=pending.replica.broker_epoch,
            offset=fetched.offset,
            current_epoch=fetched.current_epoch,
            last_fetched_epoch=fetched.last_fetched_epoch,
        )
    verdict = admit_fetch(
        hosted.replica,
        offset=fetched.offset,
        current_epoch=fetched.current_epoch,
        last_fetched_epoch=fetched.last_fetched_epoch,
        isolation_level=pending.isolation_level,
        followers_serve=pending.slot.request.api_version >= api.FOLLOWERS_SERVE_SINCE,
    )
    if pending.rack and hosted.replica.leadership is not None and isinstance(verdict, Granted):
        nearest = select_read_replica(
            hosted.replica,
            client_rack=pending.rack,
            racks=_racks(state),
            offset=fetched.offset,
        )
        if nearest != state.config.node_id:
            return hosted, Nearer(nearest)
    return hosted, verdict


def _racks(state: NodeState) -> dict[NodeId, str]:
    brokers = state.controller.committed.brokers.values()
    return {broker.node_id: broker.rack or "" for broker in brokers if broker.active}


def _park(state: NodeState, pending: PendingFetch, *, missing_bytes: int) -> None:
    pending.missing_bytes = missing_bytes
    for asked in pending.asked:
        if asked.hosted is not None:
            if pending.replica is None:
                asked.hosted.fetches[pending] = None
            else:
                asked.hosted.replica_fetches[pending] = None
    wake = pending.deadline
    if pending.held_back:
        wake = min(wake, state.leader_throttle.within_at(state.now))
    state.wake_at(wake, pending)


def _unpark(pending: PendingFetch) -> None:
    for asked in pending.asked:
        if asked.hosted is not None:
            asked.hosted.fetches.pop(pending, None)
            asked.hosted.replica_fetches.pop(pending, None)


def _answer(
    state: NodeState,
    pending: PendingFetch,
    data: dict[int, bytes | memoryview | Stretch | str],
    aborted: dict[int, tuple[AbortedTransaction, ...]],
) -> None:
    pending.end()
    topics: list[tuple[str, Uuid, list[PartitionData]]] = []
    last: TopicRef | None = None
    served: list[FetchedPartition] = []
    for position, asked in enumerate(pending.asked):
        fetched = asked.fetched
        has_data = bool(data.get(position))
        if pending.incremental and not has_data and _is_old(asked):
            continue
        told = _partition_data(
            state, pending, asked, data.get(position, b""), aborted.get(position)
        )
        fetched.told_high_watermark = Offset(told.high_watermark)
        fetched.told_start = Offset(told.log_start_offset)
        fetched.told_error = told.error_code != 0
        if has_data:
            served.append(fetched)
            if pending.replica is not None and asked.hosted is not None and told.records:
                size_bytes = len(told.records.data)
                throttles.on_sent(state, asked.hosted, pending.replica.node_id, size_bytes)
            _count(state, pending, asked, data[position])
        if last != fetched.topic:
            last = fetched.topic
            topics.append((last.name, last.topic_id, []))
        topics[-1][2].append(told)
    session = pending.session
    if session is not None:
        for fetched in served:
            key = (fetched.topic, fetched.partition)
            if session.partitions.pop(key, None) is not None:
                session.partitions[key] = fetched
    if state.quotas.active and pending.replica is None:
        quotas.on_fetched(state, pending.slot.connection, sum(map(len, data.values())))
    pending.slot.connection.answer(
        pending.slot,
        api.response(topics, 0 if session is None else session.id, pending.leaders.values()),
        state.out,
    )


def _count(
    state: NodeState, pending: PendingFetch, asked: Asked, data: bytes | memoryview | Stretch | str
) -> None:
    """Who took how much, and from whom."""
    tally = state.tally
    size = 0 if isinstance(data, str) else len(data)
    if pending.replica is not None:
        tally.replicated_out_bytes += size
    elif asked.hosted is not None and asked.hosted.replica.leadership is not None:
        tally.fetched_from_leader_bytes += size
    else:
        tally.fetched_from_follower_bytes += size


def _is_old(asked: Asked) -> bool:
    """All that can be told of this partition, besides records, was told in this session."""
    fetched, marks = asked.fetched, asked.marks
    return (
        isinstance(asked.verdict, Granted)
        and not fetched.told_error
        and marks.high_watermark == fetched.told_high_watermark
        and marks.start_offset == fetched.told_start
    )


def _partition_data(
    state: NodeState,
    pending: PendingFetch,
    asked: Asked,
    data: bytes | memoryview | Stretch | str,
    aborted: tuple[AbortedTransaction, ...] | None,
) -> PartitionData:
    partition = asked.fetched.partition
    verdict = asked.verdict
    if isinstance(data, str):
        return api.partition_refused(partition, ErrorCode.KAFKA_STORAGE_ERROR)
    if isinstance(verdict, Refusal):
        return _refused(state, pending, asked.fetched, verdict.error)
    marks = asked.marks
    if isinstance(verdict, Diverged):
        return api.partition_diverged(
            partition,
            end=verdict.end,
            high_watermark=marks.high_watermark,
            last_stable_offset=marks.last_stable_offset,
            log_start_offset=marks.start_offset,
        )
    if isinstance(verdict, Nearer):
        return api.partition_nearer(
            partition,
            node_id=verdict.node_id,
            high_watermark=marks.high_watermark,
            last_stable_offset=marks.last_stable_offset,
            log_start_offset=marks.start_offset,
        )
    return api.partition_read(
        partition,
        high_watermark=marks.high_watermark,
        last_stable_offset=marks.last_stable_offset,
        log_start_offset=marks.start_offset,
        data=data,
        aborted=aborted,
    )


def _refused(
    state: NodeState, pending: PendingFetch, asked: FetchedPartition, error: ErrorCode
) -> PartitionData:
    name = state.controller.committed.topic_names.get(asked.topic.topic_id, asked.topic.name)
    place = TopicPartition(name, asked.partition)
    since = api.LEADERS_TOLD_SINCE
    leader = leader_instead(state, pending.slot, place, error, since=since)
    if leader is not None:
        pending.leaders[leader.node_id] = leader
    return api.partition_refused(asked.partition, error, leader)


def _reply_error(state: NodeState, slot: Slot, error: ErrorCode) -> None:
    slot.connection.answer(slot, api.refused(error), state.out)
