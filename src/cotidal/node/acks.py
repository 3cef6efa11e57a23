"""Acknowledgements: a Produce is answered when every one of its partitions is. Pure.

What was admitted waits in its partition's line, for acks=1 until it is written and for acks=all
until it is committed. A Produce that waits longer than it asked for gets REQUEST_TIMED_OUT for what
is missing, and its records may still commit.
Owns of the state: parked_produces, produce_due.
"""

from __future__ import annotations

from typing import Final

from cotidal.api import produce as api
from cotidal.api.leaders import Leader
from cotidal.core.partition.effects import CompleteAcks, EndMoved, LeadershipLost
from cotidal.core.partition.leader import acks_outcome
from cotidal.errors import ErrorCode, Refusal
from cotidal.limits import RECORD_FAULTS_MAX
from cotidal.messages.rpc.produce import PartitionProduceResponse
from cotidal.node.connections import Slot
from cotidal.node.hosting import Hosted, Waiting
from cotidal.node.redirects import leader_instead
from cotidal.node.state import NodeState
from cotidal.values import NO_TIMESTAMP, Millis, NodeId, TopicPartition, Uuid

SWEEP_INTERVAL_MS: Final = 100
"""How late a Produce may time out: one sweep over the parked ones instead of a timer for each."""
NEVER: Final = Millis(1 << 62)


class PendingProduce:
    """A Produce with partitions that are not answered yet. Its records are not kept with it."""

    __slots__ = (
        "_parked",
        "came",
        "deadline",
        "faults",
        "leaders",
        "missing",
        "slot",
        "timeout_ms",
        "topics",
    )

    def __init__(
        self,
        slot: Slot,
        *,
        came: Millis,
        deadline: Millis,
        timeout_ms: int,
        parked: dict[PendingProduce, None],
    ) -> None:
        self._parked = parked
        self.slot = slot
        self.came = came
        self.deadline = deadline
        self.timeout_ms = timeout_ms
        self.missing = 0
        self.topics: list[tuple[str, Uuid, list[int | PartitionProduceResponse]]] = []
        """In the shape of the request: each partition's number, or its answer."""
        self.leaders: dict[NodeId, Leader] = {}
        """Whom the answer names."""
        self.faults = 0
        """Records that it names."""

    def forget(self) -> None:
        """Its records are written all the same; nobody waits for the answer."""
        self.missing = 0
        self._parked.pop(self, None)


def on_progress(state: NodeState, hosted: Hosted, effect: EndMoved | CompleteAcks) -> None:
    """Answer whoever waited for what has now been written or committed."""
    if hosted.coordinated:
        state.coordinators_due[hosted.replica.partition] = None
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
            if isinstance(effect, CompleteAcks):
                state.tally.acknowledged(state.now - waiting.pending.came)
    while hosted.marking and isinstance(effect, CompleteAcks):
        if hosted.marking[0].required > effect.below:
            break
        hosted.marking.pop(0).done(ErrorCode.NONE)
    if hosted.stamps and isinstance(effect, CompleteAcks):
        hosted.stamps = [stamp for stamp in hosted.stamps if stamp[0] > effect.below]


def on_unserved(state: NodeState, hosted: Hosted, lost: LeadershipLost) -> None:
    """The partition is no longer led here: everything that waits for it fails."""
    if hosted.coordinated:
        state.coordinators_due[hosted.replica.partition] = None
    refusal = Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, lost.reason)
    if hosted.replica.offline_reason is not None:
        refusal = Refusal(ErrorCode.KAFKA_STORAGE_ERROR, hosted.replica.offline_reason)
    for waiting in (*hosted.until_written.take_all(), *hosted.until_committed.take_all()):
        refused = refuse(state, waiting.pending, hosted.replica.partition, refusal)
        _fill(state, waiting, refused)
    marking, hosted.marking = hosted.marking, []
    for each in marking:
        each.done(refusal.error)
    if hosted.replica.offline_reason is not None:
        # Otherwise what was admitted is written all the same: it has its offsets.
        hosted.entries = []
        state.touched.pop(hosted.replica.partition, None)


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
        answer(state, pending)
    earliest = min((pending.deadline for pending in state.parked_produces), default=NEVER)
    state.produce_due = max(earliest, Millis(state.now + SWEEP_INTERVAL_MS))


def next_deadline(state: NodeState) -> Millis | None:
    """Not exact: what was the earliest may have been answered since; then a tick finds nothing."""
    return state.produce_due if state.parked_produces else None


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
        answer(state, pending)


def refuse(
    state: NodeState, pending: PendingProduce, partition: TopicPartition, refusal: Refusal
) -> PartitionProduceResponse:
    """What is told of one partition; all together name so many records and no more."""
    since = api.LEADERS_TOLD_SINCE
    leader = leader_instead(state, pending.slot, partition, refusal.error, since=since)
    if leader is not None:
        pending.leaders[leader.node_id] = leader
    faults = refusal.records[: RECORD_FAULTS_MAX - pending.faults]
    pending.faults += len(faults)
    return api.partition_refused(partition.partition, refusal, faults, leader)


def answer(state: NodeState, pending: PendingProduce) -> None:
    state.parked_produces.pop(pending, None)
    slot = pending.slot
    slot.connection.answer(slot, api.response(pending.topics, pending.leaders.values()), state.out)
