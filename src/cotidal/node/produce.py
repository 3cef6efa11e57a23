"""Produce: admitted by the core, appended together, answered when the acks allow it. Pure.

    begin -> admitted -> Append at the end of the step -> Appended -> acks=1 answered
                                                       -> high watermark -> acks=all answered
          -> refused (that partition only)

Everything that one socket read brought for a partition becomes one Append. What waits for its
acknowledgement is in acks.py.
Owns of the state: touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from cotidal.api import produce as api
from cotidal.core.partition.effects import CompleteAcks, EndMoved, Readable, RememberProducers
from cotidal.core.partition.leader import (
    ACKS_ALL,
    Admitted,
    admit_batch,
    on_appended,
)
from cotidal.core.partition.replica import on_rolled
from cotidal.errors import ErrorCode, Refusal
from cotidal.limits import FETCH_WAIT_MAX_MS
from cotidal.messages.batch import NO_BATCHES, Batches, Placed, RecordRules, producer_refusal
from cotidal.messages.rpc.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
)
from cotidal.node import fetchers
from cotidal.node.acks import PendingProduce, answer, on_progress, refuse
from cotidal.node.connections import Connection, Slot
from cotidal.node.effects import Append, CloseConnection, SaveProducers
from cotidal.node.events import Appended
from cotidal.node.hosting import Hosted, Waiting
from cotidal.node.partition_effects import obey, on_fault, wake_fetches, wake_replica_fetches
from cotidal.node.redirects import not_here
from cotidal.node.state import NodeState
from cotidal.values import NO_TIMESTAMP, Millis, Offset, TopicPartition, Uuid, WallMillis

_new: Final = tuple.__new__
"""Makes a NamedTuple in half the time that calling its class takes."""


class Verified(NamedTuple):
    """What a coordinator has said of batches that would open a transaction (verification.py)."""

    guards: Mapping[TopicPartition, int]
    refused: Mapping[TopicPartition, Refusal]


def begin(
    state: NodeState,
    slot: Slot,
    request: ProduceRequest,
    wall: WallMillis,
    verified: Verified | None = None,
) -> None:
    """Admit every partition's batch; what is admitted waits for its Append."""
    wait = min(max(request.timeout_ms, 0), FETCH_WAIT_MAX_MS)
    deadline = Millis(state.now + wait)
    pending = PendingProduce(
        slot,
        came=state.now,
        deadline=deadline,
        timeout_ms=request.timeout_ms,
        parked=state.parked_produces,
    )
    version = slot.request.api_version
    acks = request.acks
    for topic_position, topic in enumerate(request.topic_data):
        name = topic_name(state, topic.name, topic.topic_id, version)
        results: list[int | PartitionProduceResponse] = []
        pending.topics.append((topic.name, topic.topic_id, results))
        for position, written in enumerate(topic.partition_data):
            place = _new(TopicPartition, (name, written.partition_index))
            hosted = state.hosted.get(place)
            verdict = _admit(state, place, hosted, written, acks, version, wall, verified)
            if isinstance(verdict, Refusal):
                explained = _explained(state, hosted, written, verdict, wall)
                results.append(refuse(state, pending, place, explained))
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
        answer(state, pending)


def begin_unacknowledged(
    state: NodeState, connection: Connection, request: ProduceRequest, version: int
) -> None:
    """acks=0: no reply. A refusal can only be told by closing the connection, as Kafka does."""
    for topic in request.topic_data:
        name = topic_name(state, topic.name, topic.topic_id, version)
        for written in topic.partition_data:
            place = _new(TopicPartition, (name, written.partition_index))
            hosted = state.hosted.get(place)
            verdict = _admit(state, place, hosted, written, 0, version, connection.wall)
            if isinstance(verdict, Refusal):
                state.out.append(CloseConnection(connection.id, f"acks=0: {verdict.text}"))
                return


def append_touched(state: NodeState) -> None:
    """At the end of a step: one Append for everything that was admitted for a partition."""
    for partition, hosted in state.touched.items():
        entries, hosted.entries = tuple(hosted.entries), []
        state.out.append(_new(Append, (partition, entries, hosted.rules.stamps_time)))
    state.touched.clear()


def on_log_appended(state: NodeState, event: Appended) -> None:
    hosted = state.hosted_of(event.partition, event.topic_id)
    if hosted is None or not hosted.replica.opened:  # deleted while the disk was writing
        return
    if hosted.replica.leadership is None:
        if hosted.replica.offline_reason is None:
            fetchers.on_appended(state, hosted, event.end_offset)
        return
    state.tally.partition_events += 1
    if event.append_time >= 0:
        hosted.stamps.append((event.end_offset, event.append_time))
    try:
        effects = on_appended(hosted.replica, event.end_offset, state.now)
    except AssertionError as fault:
        on_fault(state, hosted, fault)
        return
    for effect in effects:
        if isinstance(effect, Readable):
            wake_fetches(state, hosted)
        elif isinstance(effect, (EndMoved, CompleteAcks)):  # a union would be made anew each time
            on_progress(state, hosted, effect)
            if isinstance(effect, EndMoved):
                wake_replica_fetches(state, hosted)
        else:
            obey(state, hosted, (effect,))
    if event.rolled:
        for remember in on_rolled(hosted.replica):
            assert isinstance(remember, RememberProducers)
            state.out.append(SaveProducers(event.partition, remember.snapshot))


def topic_name(state: NodeState, name: str, topic_id: Uuid, version: int) -> str:
    """The topic's name; an empty one, which no topic has, for an id that is not known."""
    if version < api.TOPIC_IDS_SINCE:
        return name
    return state.controller.committed.topic_names.get(topic_id, "")


def _admit(
    state: NodeState,
    place: TopicPartition,
    hosted: Hosted | None,
    written: PartitionProduceData,
    acks: int,
    version: int,
    wall: WallMillis,
    verified: Verified | None = None,
) -> Admitted | Refusal:
    if hosted is None:
        return not_here(state, place, by_id=version >= api.TOPIC_IDS_SINCE)
    if acks not in api.ACKS_ALLOWED:
        return Refusal(ErrorCode.INVALID_REQUIRED_ACKS)
    if hosted.coordinated:  # its coordinator would not know of it
        topic = hosted.replica.partition.topic
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"only coordinators write to {topic}")
    batches = written.records or NO_BATCHES
    rules = hosted.record_rules
    if (
        rules is not None
        and hosted.replica.leadership is not None
        and producer_refusal(batches) is None
    ):
        found = state.inspect(batches, rules, wall)
        if isinstance(found, Refusal):
            return found
        batches = found
    if verified is None:
        return admit(state, hosted, batches, acks, wall)
    partition = hosted.replica.partition
    refused = verified.refused.get(partition)
    if refused is not None:
        return refused
    return admit(state, hosted, batches, acks, wall, verified.guards.get(partition))


def _explained(
    state: NodeState,
    hosted: Hosted | None,
    written: PartitionProduceData,
    refusal: Refusal,
    wall: WallMillis,
) -> Refusal:
    """A time in the future shows in a batch's header: which record has it is looked for to tell."""
    if refusal.error is not ErrorCode.INVALID_TIMESTAMP:
        return refusal
    assert hosted is not None
    rules = RecordRules(timestamp_after_max_ms=hosted.rules.timestamp_after_max_ms)
    found = state.inspect(written.records or NO_BATCHES, rules, wall)
    return found if isinstance(found, Refusal) else refusal


def admit(
    state: NodeState,
    hosted: Hosted,
    batches: Batches,
    acks: int,
    wall: WallMillis,
    guard: int | None = None,
    *,
    by_coordinator: bool = False,
) -> Admitted | Refusal:
    """Give these batches their offsets; they are written at the end of the step."""
    state.tally.partition_events += 1
    try:
        verdict = admit_batch(
            hosted.replica,
            batches,
            acks=acks,
            rules=hosted.rules,
            wall=wall,
            guard=guard,
            by_coordinator=by_coordinator,
        )
    except AssertionError as fault:
        return on_fault(state, hosted, fault)
    if isinstance(verdict, Admitted) and verdict.write:
        place(state, hosted, verdict.base_offset, batches)
    return verdict


def place(state: NodeState, hosted: Hosted, base_offset: Offset, batches: Batches) -> None:
    """To be written at the end of the step, at this offset."""
    if not hosted.entries:
        state.touched[hosted.replica.partition] = hosted
    leadership = hosted.replica.leadership
    assert leadership is not None
    hosted.entries.append(_new(Placed, (base_offset, leadership.epoch, batches)))
    hosted.unread_bytes += len(batches.data)
