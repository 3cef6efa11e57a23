"""DeleteRecords, and the start of a log. Pure.

Begun -> AdvanceStart of the own log -> StartMoved -> followers hear of it with their fetch,
let go of the same records, and say so with the next one -> answered. The low watermark, the least
start among the replicas whose brokers are active, is how far all of them have got. What takes
longer than the request allows is answered with REQUEST_TIMED_OUT, and goes on.
Owns of the state: parked_deletes; of a hosted partition: deletions.
"""

from __future__ import annotations

from typing import NamedTuple

from cotidal.api import delete_records as api
from cotidal.core.partition.leader import admit_delete, low_watermark
from cotidal.core.partition.replica import on_start_moved
from cotidal.errors import ErrorCode, Refusal
from cotidal.limits import FETCH_WAIT_MAX_MS
from cotidal.messages.rpc.delete_records import DeleteRecordsPartitionResult, DeleteRecordsRequest
from cotidal.node.connections import Slot
from cotidal.node.effects import AdvanceStart, SaveEpochs
from cotidal.node.events import StartMoved
from cotidal.node.hosting import Hosted
from cotidal.node.redirects import not_here
from cotidal.node.resting import disturb
from cotidal.node.state import NodeState
from cotidal.values import Millis, Offset, TopicPartition


class PendingDeletes:
    """A DeleteRecords some of whose partitions wait for their replicas."""

    __slots__ = ("deadline", "missing", "request", "results", "slot")

    def __init__(self, slot: Slot, request: DeleteRecordsRequest, deadline: Millis) -> None:
        self.slot = slot
        self.request = request
        self.deadline = deadline
        self.missing = 0
        self.results: list[list[DeleteRecordsPartitionResult | None]] = []


class PendingDelete(NamedTuple):
    """One partition of a DeleteRecords: answered when all start at ``offset`` or later."""

    offset: Offset
    pending: PendingDeletes
    topic_position: int
    partition_position: int


def begin(state: NodeState, slot: Slot, request: DeleteRecordsRequest) -> None:
    waits_ms = min(max(0, request.timeout_ms), FETCH_WAIT_MAX_MS)
    pending = PendingDeletes(slot, request, Millis(state.now + waits_ms))
    for topic_position, topic in enumerate(request.topics):
        results: list[DeleteRecordsPartitionResult | None] = []
        pending.results.append(results)
        for position, asked in enumerate(topic.partitions):
            index = asked.partition_index
            place = TopicPartition(topic.name, index)
            hosted = state.hosted.get(place)
            if hosted is None:
                results.append(api.partition_refused(index, not_here(state, place)))
                continue
            state.tally.partition_events += 1
            start = admit_delete(hosted.replica, Offset(asked.offset))
            if isinstance(start, Refusal):
                results.append(api.partition_refused(index, start))
            elif start <= low_watermark(hosted.replica):
                results.append(api.partition_deleted(index, low_watermark(hosted.replica)))
            else:
                results.append(None)
                pending.missing += 1
                hosted.deletions.append(PendingDelete(start, pending, topic_position, position))
                if start > hosted.replica.start_offset:
                    state.out.append(AdvanceStart(hosted.replica.partition, start))
                else:
                    _hurry_followers(state, hosted)
    if pending.missing:
        state.parked_deletes[pending] = None
    else:
        _answer(state, pending)


def on_log_start_moved(state: NodeState, event: StartMoved) -> None:
    """By retention, by DeleteRecords, or after the leader's."""
    hosted = state.hosted_of(event.partition, event.topic_id)
    if hosted is None or not hosted.replica.opened:
        return
    state.tally.partition_events += 1
    try:
        epochs_changed = on_start_moved(hosted.replica, event.start_offset)
    except AssertionError as fault:
        state.faulted.setdefault(event.partition, fault)
        return
    if epochs_changed:
        state.out.append(SaveEpochs(event.partition, tuple(hosted.replica.epochs.entries)))
    if hosted.deletions:
        settle(state, hosted)
        _hurry_followers(state, hosted)


def settle(state: NodeState, hosted: Hosted) -> None:
    """Answer what all replicas have let go of."""
    low = low_watermark(hosted.replica)
    done = [waiting for waiting in hosted.deletions if waiting.offset <= low]
    if done:
        hosted.deletions = [waiting for waiting in hosted.deletions if waiting.offset > low]
    index = hosted.replica.partition.partition
    for waiting in done:
        _fill(state, waiting, api.partition_deleted(index, low))


def on_unserved(state: NodeState, hosted: Hosted) -> None:
    waits, hosted.deletions = hosted.deletions, []
    gone = Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if hosted.replica.offline_reason is not None:
        gone = Refusal(ErrorCode.KAFKA_STORAGE_ERROR, hosted.replica.offline_reason)
    for waiting in waits:
        index = hosted.replica.partition.partition
        _fill(state, waiting, api.partition_refused(index, gone))


def on_ticked(state: NodeState) -> None:
    """Answer what has waited for too long."""
    late = [pending for pending in state.parked_deletes if pending.deadline <= state.now]
    if not late:
        return
    for hosted in state.hosted.values():
        if hosted.deletions:
            hosted.deletions = [each for each in hosted.deletions if each.pending not in late]
    time_out = Refusal(ErrorCode.REQUEST_TIMED_OUT)
    for pending in late:
        for topic, results in zip(pending.request.topics, pending.results, strict=True):
            for position, (asked, told) in enumerate(zip(topic.partitions, results, strict=True)):
                if told is None:
                    results[position] = api.partition_refused(asked.partition_index, time_out)
        _answer(state, pending)


def next_deadline(state: NodeState) -> Millis | None:
    return min((pending.deadline for pending in state.parked_deletes), default=None)


def _hurry_followers(state: NodeState, hosted: Hosted) -> None:
    """They hear where the log begins now, not when their wait for records ends."""
    for fetch in (*hosted.replica_fetches, *disturb(hosted)):
        fetch.deadline = state.now
        state.dirty_fetches[fetch] = None


def _fill(state: NodeState, waiting: PendingDelete, result: DeleteRecordsPartitionResult) -> None:
    pending = waiting.pending
    pending.results[waiting.topic_position][waiting.partition_position] = result
    pending.missing -= 1
    if not pending.missing:
        _answer(state, pending)


def _answer(state: NodeState, pending: PendingDeletes) -> None:
    state.parked_deletes.pop(pending, None)
    slot = pending.slot
    slot.connection.answer(slot, api.response(pending.request, pending.results), state.out)
