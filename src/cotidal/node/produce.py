"""Produce: admitted by the core, appended together, answered when the acks allow it. Pure.

    begin -> admitted -> Append at the end of the step -> Appended -> acks=1 answered
                                                       -> high watermark -> acks=all answered
          -> refused (that partition only)

Everything that one socket read brought for a partition becomes one Append. A Produce is answered
when every one of its partitions is; one that waits longer than it asked for gets REQUEST_TIMED_OUT
for what is missing, and its records may still commit.
Owns of the state: touched, parked_produces.
"""

from __future__ import annotations

from typing import Final

from cotidal.api import produce as api
from cotidal.core.partition.effects import (
    CompleteAcks,
    EndMoved,
    LeadershipLost,
    Readable,
    RememberProducers,
)
from cotidal.core.partition.leader import (
    ACKS_ALL,
    Admitted,
    acks_outcome,
    admit_batch,
    on_appended,
)
from cotidal.core.partition.replica import on_rolled
from cotidal.errors import ErrorCode, Refusal
from cotidal.limits import FETCH_WAIT_MAX_MS
from cotidal.messages.batch import NO_BATCHES, Placed
from cotidal.messages.rpc.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
)
from cotidal.node import fetch, fetchers
from cotidal.node.connections import Connection, Slot
from cotidal.node.effects import Append, CloseConnection, SaveProducers
from cotidal.node.events import Appended
from cotidal.node.hosting import Hosted, Waiting
from cotidal.node.state import NodeState
from cotidal.values import NO_TIMESTAMP, Millis, TopicPartition, Uuid, WallMillis

SWEEP_INTERVAL_MS: Final = 100
"""How late a Produce may time out: one sweep over the parked ones instead of a timer for each."""
NEVER: Final = Millis(1 << 62)


class PendingProduce:
    """A Produce with partitions that are not answered yet. Its records are not kept with it."""

    __slots__ = ("_parked", "deadline", "missing", "slot", "timeout_ms", "topics")

    def __init__(
        self,
        slot: Slot,
        *,
        deadline: Millis,
        timeout_ms: int,
        parked: dict[PendingProduce, None],
    ) -> None:
        self._parked = parked
        self.slot = slot
        self.deadline = deadline
        self.timeout_ms = timeout_ms
        self.missing = 0
        self.topics: list[tuple[str, Uuid, list[int | PartitionProduceResponse]]] = []
        """In the shape of the request: each partition's number, or its answer."""

    def forget(self) -> None:
        """Its records are written all the same; nobody waits for the answer."""
        self.missing = 0
        self._parked.pop(self, None)


def begin(state: NodeState, slot: Slot, request: ProduceRequest, wall: WallMillis) -> None:
    """Admit every partition's batch; what is admitted waits for its Append."""
    wait = min(max(request.timeout_ms, 0), FETCH_WAIT_MAX_MS)
    deadline = Millis(state.now + wait)
    pending = PendingProduce(
        slot, deadline=deadline, timeout_ms=request.timeout_ms, parked=state.parked_produces
    )
    version = slot.request.api_version
    acks = request.acks
    for topic_position, topic in enumerate(request.topic_data):
        name = _topic_name(state, topic.name, topic.topic_id, version)
        results: list[int | PartitionProduceResponse] = []
        pending.topics.append((topic.name, topic.topic_id, results))
        for position, written in enumerate(topic.partition_data):
            hosted = state.hosted.get(TopicPartition(name, written.partition_index))
            verdict = _admit(state, hosted, written, acks, version, wall)
            if isinstance(verdict, Refusal):
                results.append(api.partition_refused(written.partition_index, verdict))
                continue
            assert hosted is not None
            replica = hosted.replica
            reached = replica.high_watermark if acks == ACKS_ALL else replica.end_offset
            if verdict.next_offset <= reached:  # a duplicate of what is acknowledged already
                results.append(
                    api.partition_written(
                        written.partition_index,
                        base_offset=verdict.base_offset,
                        append_time=verdict.timestamp if hosted.rules.stamps_time else NO_TIMESTAMP,
                        log_start_offset=replica.start_offset,
                    )
                )
                continue
            results.append(written.partition_index)
            pending.missing += 1
            line = hosted.until_committed if acks == ACKS_ALL else hosted.until_written
            line.add(
                Waiting(
                    verdict.next_offset,
                    pending,
                    topic_position,
                    position,
                    verdict.base_offset,
                    verdict.timestamp,
                )
            )
    if pending.missing:
        state.parked_produces[pending] = None
        state.produce_due = min(state.produce_due, deadline)
        slot.parked = pending
    else:
        _answer(state, pending)


def begin_unacknowledged(
    state: NodeState, connection: Connection, request: ProduceRequest, version: int
) -> None:
    """acks=0: no reply. A refusal can only be told by closing the connection, as Kafka does."""
    for topic in request.topic_data:
        name = _topic_name(state, topic.name, topic.topic_id, version)
        for written in topic.partition_data:
            hosted = state.hosted.get(TopicPartition(name, written.partition_index))
            verdict = _admit(state, hosted, written, 0, version, connection.wall)
            if isinstance(verdict, Refusal):
                state.out.append(CloseConnection(connection.id, f"acks=0: {verdict.text}"))
                return


def append_touched(state: NodeState) -> None:
    """At the end of a step: one Append for everything that was admitted for a partition."""
    for partition, hosted in state.touched.items():
        entries, hosted.entries = tuple(hosted.entries), []
        state.out.append(Append(partition, entries, hosted.rules.stamps_time))
    state.touched.clear()


def on_log_appended(state: NodeState, event: Appended) -> None:
    hosted = state.hosted_of(event.partition, event.topic_id)
    if hosted is None or not hosted.replica.opened:  # deleted while the disk was writing
        return
    if hosted.replica.leadership is None:
        fetchers.on_appended(state, hosted, event.end_offset)
        return
    if event.append_time >= 0:
        hosted.stamps.append((event.end_offset, event.append_time))
    for effect in on_appended(hosted.replica, event.end_offset, state.now):
        if isinstance(effect, Readable):
            fetch.on_readable(state, hosted)
        else:
            assert isinstance(effect, EndMoved | CompleteAcks)
            on_progress(state, hosted, effect)
            if hosted.replica_fetches and isinstance(effect, EndMoved):
                fetch.on_end_moved(state, hosted)
    if event.rolled:
        for remember in on_rolled(hosted.replica):
            assert isinstance(remember, RememberProducers)
            state.out.append(SaveProducers(event.partition, remember.snapshot))


def on_progress(state: NodeState, hosted: Hosted, effect: EndMoved | CompleteAcks) -> None:
    """Answer whoever waited for what has now been written or committed."""
    if isinstance(effect, EndMoved):
        reached = hosted.until_written.take(effect.end_offset)
    else:
        reached = hosted.until_committed.take(effect.below)
    for waiting in reached:
        outcome: Refusal | bool = True
        if isinstance(effect, CompleteAcks):
            outcome = acks_outcome(hosted.replica, next_offset=waiting.required)
        if isinstance(outcome, Refusal):
            refused = api.partition_refused(hosted.replica.partition.partition, outcome)
            _fill(state, waiting, refused)
        else:
            _complete(state, hosted, waiting)
    if hosted.stamps and isinstance(effect, CompleteAcks):
        hosted.stamps = [stamp for stamp in hosted.stamps if stamp[0] > effect.below]


def on_unserved(state: NodeState, hosted: Hosted, lost: LeadershipLost) -> None:
    """The partition is no longer led here: everything that waits for it fails."""
    refusal = Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, lost.reason)
    if hosted.replica.offline_reason is not None:
        refusal = Refusal(ErrorCode.KAFKA_STORAGE_ERROR, hosted.replica.offline_reason)
    for waiting in (*hosted.until_written.take_all(), *hosted.until_committed.take_all()):
        _fill(state, waiting, api.partition_refused(hosted.replica.partition.partition, refusal))
    if hosted.replica.offline_reason is not None:
        # Otherwise what was admitted is written all the same: it has its offsets.
        hosted.entries = []
        state.touched.pop(hosted.replica.partition, None)
    fetch.on_unserved(state, hosted)


def on_ticked(state: NodeState) -> None:
    """Answer what has waited for too long."""
    if state.now < state.produce_due:
        return
    late = [pending for pending in state.parked_produces if pending.deadline <= state.now]
    for pending in late:
        time_out = Refusal(
            ErrorCode.REQUEST_TIMED_OUT,
            f"not acknowledged within {pending.timeout_ms} ms; it may still be",
        )
        for _, _, results in pending.topics:
            for position, result in enumerate(results):
                if isinstance(result, int):
                    results[position] = api.partition_refused(result, time_out)
        pending.missing = 0
        _answer(state, pending)
    earliest = min((pending.deadline for pending in state.parked_produces), default=NEVER)
    state.produce_due = max(earliest, Millis(state.now + SWEEP_INTERVAL_MS))


def next_deadline(state: NodeState) -> Millis | None:
    """Not exact: what was the earliest may have been answered since; then a tick finds nothing."""
    return state.produce_due if state.parked_produces else None


def _topic_name(state: NodeState, name: str, topic_id: Uuid, version: int) -> str:
    """The topic's name; an empty one, which no topic has, for an id that is not known."""
    if version < api.TOPIC_IDS_SINCE:
        return name
    return state.controller.committed.topic_names.get(topic_id, "")


def _admit(
    state: NodeState,
    hosted: Hosted | None,
    written: PartitionProduceData,
    acks: int,
    version: int,
    wall: WallMillis,
) -> Admitted | Refusal:
    if acks not in api.ACKS_ALLOWED:
        return Refusal(ErrorCode.INVALID_REQUIRED_ACKS)
    if hosted is None:
        return api.unknown_topic(version)
    batches = written.records or NO_BATCHES
    verdict = admit_batch(hosted.replica, batches, acks=acks, rules=hosted.rules, wall=wall)
    if isinstance(verdict, Admitted) and verdict.write:
        if not hosted.entries:
            state.touched[hosted.replica.partition] = hosted
        leadership = hosted.replica.leadership
        assert leadership is not None
        hosted.entries.append(Placed(verdict.base_offset, leadership.epoch, batches))
        hosted.unread_bytes += len(batches.data)
    return verdict


def _complete(state: NodeState, hosted: Hosted, waiting: Waiting) -> None:
    append_time = NO_TIMESTAMP
    if hosted.rules.stamps_time:
        append_time = waiting.timestamp
        if append_time < 0:
            given = (time for end, time in hosted.stamps if end >= waiting.required)
            append_time = next(given, NO_TIMESTAMP)
    _fill(
        state,
        waiting,
        api.partition_written(
            hosted.replica.partition.partition,
            base_offset=waiting.base_offset,
            append_time=append_time,
            log_start_offset=hosted.replica.start_offset,
        ),
    )


def _fill(state: NodeState, waiting: Waiting, result: PartitionProduceResponse) -> None:
    pending = waiting.pending
    if not pending.missing:  # timed out, or its connection is gone
        return
    pending.topics[waiting.topic_position][2][waiting.partition_position] = result
    pending.missing -= 1
    if not pending.missing:
        _answer(state, pending)


def _answer(state: NodeState, pending: PendingProduce) -> None:
    state.parked_produces.pop(pending, None)
    slot = pending.slot
    slot.connection.answer(slot, api.response(pending.topics), state.out)
