"""What happens to replication, written to ``__cotidal_events`` by the nodes themselves. Pure.

    told -> queue -> one batch under way at a time -> Produce (acks=1) to whoever leads the topic
                                                   -> refused, lost: again, a few times
    full queue, or too many attempts -> dropped, and counted

It is a producer like any other: its Produce is an ordinary Call, to this very node too. Nothing
waits for it. The topic is created when there is first something to write, once the cluster has had
a moment to gather, for it gets as many replicas as there are brokers, three at most.

A happening is told while it is live: what a node finds in its log when it starts is history. The
active controller tells what it commits; when another one takes over in between, a happening may be
told by both (the record's offset tells), or, if nobody was there to write it, by nobody.
Owns of the state: chronicle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from cotidal.api import to_controller
from cotidal.core.cluster.decide.topics import EVENTS_TOPIC, NewTopic, by_kind
from cotidal.core.cluster.image import LEADER_UNCHANGED, MetadataRecord
from cotidal.core.partition.replica import Replica
from cotidal.core.quorum.states import Leader
from cotidal.errors import ErrorCode
from cotidal.limits import (
    EVENT_WRITE_ATTEMPTS_MAX,
    EVENTS_PER_WRITE_MAX,
    EVENTS_QUEUED_MAX,
)
from cotidal.messages.batch import Batches
from cotidal.messages.records.metadata import PartitionChangeRecord
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from cotidal.node import calls
from cotidal.node.happenings import (
    ControllerChanged,
    Happening,
    HighWatermarkRegressed,
    IsrExpanded,
    IsrShrunk,
    LeaderChanged,
    LogTruncated,
    Told,
    UncleanElection,
    record_value,
)
from cotidal.node.news import happenings_of
from cotidal.node.sampler import Sampler
from cotidal.node.state import NodeState
from cotidal.settings import effective
from cotidal.values import (
    LeaderEpoch,
    Millis,
    NodeId,
    Offset,
    Uuid,
    WallMillis,
    uuid_text,
)

ENABLE: Final = "cotidal.events.enable"
LANE: Final = "events"
PRODUCE_VERSION: Final = 12
"""The last one that names topics: whoever has just created it anew under its name is understood."""
GATHER_MS: Final = 50
"""What happens within so long is written together."""
SAMPLE_MS: Final = 1_000
"""By the wall clock, all brokers at the same moment: then one fetch of a follower brings what
several of them have written."""
SETTLE_MS: Final = 3_000
"""Before the topic is created: the brokers of a new cluster come one after the other."""
TIMEOUT_MS: Final = 2_000
PAUSE_FIRST_MS: Final = 100
PAUSE_MAX_MS: Final = 2_000
REPLICAS_MAX: Final = 3

EventsWriter: TypeAlias = Callable[[list[tuple[WallMillis, bytes]]], Batches]
"""What a node is given to make a batch with, for it encodes none itself: times and values."""


class Writing(NamedTuple):
    """A batch under way to the topic's leader."""


class Creating(NamedTuple):
    """The topic, asked of the active controller."""


class Chronicle:
    __slots__ = (
        "attempts",
        "due",
        "in_flight",
        "incarnation",
        "live_from",
        "next_sample",
        "queue",
        "sampler",
        "sequence",
        "settled_at",
        "under_way",
        "write",
    )

    def __init__(self, write: EventsWriter | None) -> None:
        self.write = write
        """None: nothing is written, whatever happens."""
        self.queue: deque[Told] = deque()
        self.in_flight: list[Told] = []
        """The batch that is being written; it stays until it is, or is given up."""
        self.under_way = False
        self.attempts = 0
        """Of this batch, in vain."""
        self.due: Millis | None = None
        self.next_sample: Millis | None = None
        self.incarnation = ""
        self.sequence = 0
        self.live_from = Offset(0)
        """Metadata below was in our log when we started."""
        self.settled_at: Millis | None = None
        self.sampler = Sampler()


def start(state: NodeState, *, incarnation: Uuid, live_from: Offset) -> None:
    chronicle = state.chronicle
    chronicle.incarnation = uuid_text(incarnation)
    chronicle.live_from = live_from
    if effective(ENABLE, static=state.config.settings).value is not True:
        chronicle.write = None
    if chronicle.write is not None and state.config.is_broker:
        chronicle.next_sample = _next_sample(state)


# What happens ------------------------------------------------------------------------------------


def on_record(state: NodeState, record: MetadataRecord, offset: Offset) -> None:
    """This record is committed, and about to be replayed into the committed image."""
    if offset < state.chronicle.live_from:
        return
    leads_quorum = isinstance(state.quorum.machine.state.role, Leader)
    tally, me = state.tally, state.config.node_id
    if not leads_quorum and not _is_ours(state, record):
        return  # to know what a record means costs as much as to replay it
    for what in happenings_of(state.controller.committed, record, offset):
        match what:
            case IsrShrunk(leader=leader) if leader == me:
                tally.isr_shrinks += 1
            case IsrExpanded(leader=leader) if leader == me:
                tally.isr_expands += 1
            case LeaderChanged(leader=leader) if leads_quorum and leader >= 0:
                tally.elections += 1
            case UncleanElection() if leads_quorum:
                tally.unclean_elections += 1
            case _:
                pass
        if leads_quorum:
            tell(state, what)


def _is_ours(state: NodeState, record: MetadataRecord) -> bool:
    """Does it change the ISR of a partition that this node leads, or shall lead?"""
    if not isinstance(record, PartitionChangeRecord) or record.isr is None:
        return False
    if record.leader != LEADER_UNCHANGED:
        return record.leader == state.config.node_id
    topic = state.controller.committed.topic_by_id(record.topic_id)
    before = None if topic is None else topic.partitions.get(record.partition_id)
    return before is not None and before.leader == state.config.node_id


def on_active(state: NodeState, epoch: LeaderEpoch) -> None:
    """This node is the active controller."""
    tell(state, ControllerChanged(state.config.node_id, epoch))


def on_cut(state: NodeState, replica: Replica, offset: Offset) -> None:
    """A follower is about to drop what it has from ``offset`` on."""
    records = replica.end_offset - offset
    if records <= 0:
        return
    state.tally.truncations += 1
    state.tally.truncated_records += records
    following = replica.following
    tell(
        state,
        LogTruncated(
            *replica.partition,
            NodeId(-1) if following is None else following.leader,
            replica.leader_epoch,
            offset,
            records,
            replica.high_watermark,
        ),
    )


def on_regressed(state: NodeState, replica: Replica, previous: Offset) -> None:
    """The high watermark of a replica is below what it was."""
    state.tally.high_watermark_regressions += 1
    tell(
        state,
        HighWatermarkRegressed(
            *replica.partition, replica.leader_epoch, previous, replica.high_watermark
        ),
    )


def tell(state: NodeState, what: Happening) -> None:
    """Have it written, soon."""
    chronicle = state.chronicle
    if chronicle.write is None or getattr(what, "topic", None) == EVENTS_TOPIC:
        return
    chronicle.sequence += 1
    if len(chronicle.queue) >= EVENTS_QUEUED_MAX:
        state.tally.events_dropped += 1
        return
    told = Told(
        state.config.node_id,
        chronicle.incarnation,
        chronicle.sequence,
        state.wall,
        what,
    )
    chronicle.queue.append(told)
    if chronicle.due is None and not chronicle.under_way:
        chronicle.due = Millis(state.now + GATHER_MS)
        state.control_moved = True


# Writing -----------------------------------------------------------------------------------------


def on_ticked(state: NodeState) -> None:
    chronicle = state.chronicle
    if chronicle.next_sample is not None and state.now >= chronicle.next_sample:
        chronicle.next_sample = _next_sample(state)
        if state.serving:
            tell(state, chronicle.sampler.sample(state))
            if chronicle.due is not None and not chronicle.in_flight:
                chronicle.due = state.now  # with the sample, not a tick later
    if chronicle.due is not None and state.now >= chronicle.due:
        _write(state)


def _next_sample(state: NodeState) -> Millis:
    """The next full second, unless it is too near to be another one than this."""
    left = SAMPLE_MS - state.wall % SAMPLE_MS
    return Millis(state.now + (left if 2 * left > SAMPLE_MS else left + SAMPLE_MS))


def next_deadline(state: NodeState) -> Millis | None:
    due, sample = state.chronicle.due, state.chronicle.next_sample
    if due is None or sample is None:
        return sample if due is None else due
    return min(due, sample)


def on_written(state: NodeState, response: ProduceResponse) -> None:
    chronicle = state.chronicle
    answers = [each for topic in response.responses for each in topic.partition_responses]
    if not answers or answers[0].error_code != ErrorCode.NONE:
        on_failed(state)
        return
    chronicle.under_way = False
    state.tally.events_written += len(chronicle.in_flight)
    chronicle.in_flight = []
    chronicle.attempts = 0
    if chronicle.queue:
        _write(state)


def on_failed(state: NodeState) -> None:
    """It may have been written all the same: then it is there twice."""
    state.chronicle.under_way = False
    _pause(state)


def on_created(state: NodeState) -> None:
    """Or refused, or lost: the metadata will tell, if not yet then soon."""
    state.chronicle.under_way = False
    if EVENTS_TOPIC in state.controller.committed.topics:
        _write(state)
    else:
        _pause(state)


def _write(state: NodeState) -> None:
    """Send the batch under way, or the next one."""
    chronicle = state.chronicle
    chronicle.due = None
    write = chronicle.write
    if chronicle.under_way or write is None:
        return
    if not chronicle.in_flight:
        count = min(len(chronicle.queue), EVENTS_PER_WRITE_MAX)
        chronicle.in_flight = [chronicle.queue.popleft() for _ in range(count)]
        if not count:
            return
    topic = state.controller.committed.topics.get(EVENTS_TOPIC)
    if topic is None:
        _create(state)
        return
    leader = topic.partitions[0].leader
    endpoint = calls.broker_endpoint(state, leader)
    if endpoint is None:
        _pause(state)
        return
    batches = write([(told.time, record_value(told)) for told in chronicle.in_flight])
    data = TopicProduceData(EVENTS_TOPIC, topic.topic_id, (PartitionProduceData(0, batches),))
    chronicle.under_way = True
    calls.call(
        state,
        leader,
        endpoint,
        lane=LANE,
        api=ApiKey.PRODUCE,
        version=PRODUCE_VERSION,
        message=ProduceRequest(None, 1, TIMEOUT_MS, (data,)),
        timeout_ms=TIMEOUT_MS,
        owner=Writing(),
    )


def _pause(state: NodeState) -> None:
    """After an attempt in vain: again in a while, or never."""
    chronicle = state.chronicle
    chronicle.attempts += 1
    pause = min(PAUSE_FIRST_MS << min(chronicle.attempts - 1, 10), PAUSE_MAX_MS)
    if chronicle.attempts >= EVENT_WRITE_ATTEMPTS_MAX:
        state.tally.events_dropped += len(chronicle.in_flight)
        chronicle.in_flight = []
        chronicle.attempts = 0
    chronicle.due = Millis(state.now + pause)
    state.control_moved = True


def _create(state: NodeState) -> None:
    """Ask the active controller for the topic; who comes second is told that it is there."""
    chronicle = state.chronicle
    controller = state.controller.leader
    if chronicle.settled_at is None:
        chronicle.settled_at = Millis(state.now + SETTLE_MS)
    if state.now < chronicle.settled_at:
        chronicle.due = chronicle.settled_at
        state.control_moved = True
        return
    if controller is None or not state.controller.committed.brokers:
        _pause(state)
        return
    chronicle.under_way = True
    calls.call(
        state,
        controller.node_id,
        controller.endpoint,
        lane=calls.FORWARD_LANE,
        api=ApiKey.CREATE_TOPICS,
        version=to_controller.CREATE_VERSION,
        message=to_controller.creation((_topic(state),), timeout_ms=TIMEOUT_MS),
        timeout_ms=TIMEOUT_MS,
        owner=Creating(),
    )


def _topic(state: NodeState) -> NewTopic:
    """With as many replicas as there are brokers or shall be, three at most."""
    wanted = max(
        state.number("default.replication.factor"), len(state.controller.committed.brokers)
    )
    return by_kind(state.number, EVENTS_TOPIC)._replace(
        replication_factor=min(REPLICAS_MAX, wanted)
    )
