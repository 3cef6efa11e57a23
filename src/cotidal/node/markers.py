"""Ends of transactions, written by the leaders of their partitions: WriteTxnMarkers. Pure. T3, T4.

Each marker is a control batch of its own, admitted by the core and acknowledged as acks=all is. The
answer leaves when every one of them is committed or refused.
"""

from __future__ import annotations

from cotidal.api import write_txn_markers as api
from cotidal.core.partition.leader import Admitted, MarkerAsk, admit_marker
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.write_txn_markers import WriteTxnMarkersRequest
from cotidal.node import coordinators, produce
from cotidal.node.connections import Slot
from cotidal.node.partition_effects import on_fault
from cotidal.node.redirects import not_here
from cotidal.node.state import NodeState
from cotidal.values import Offset, TopicPartition


class PendingMarkers:
    """A request with markers that are not committed yet."""

    __slots__ = ("errors", "missing", "request", "slot", "state")

    def __init__(self, state: NodeState, slot: Slot, request: WriteTxnMarkersRequest) -> None:
        self.state = state
        self.slot = slot
        self.request = request
        self.errors: list[dict[TopicPartition, ErrorCode]] = [{} for _ in request.markers]
        self.missing = 1
        """And one more for the request itself, until all of it has been looked at."""

    def settle(self) -> None:
        self.missing -= 1
        if not self.missing:
            reply = api.response(self.request, self.errors)
            self.slot.connection.answer(self.slot, reply, self.state.out)


class Marking:
    """One marker that waits for its commit. Implements ``hosting.Marking``."""

    __slots__ = ("_number", "_partition", "_pending", "required")

    def __init__(
        self, pending: PendingMarkers, number: int, partition: TopicPartition, required: Offset
    ) -> None:
        self._pending = pending
        self._number = number
        self._partition = partition
        self.required = required

    def done(self, error: ErrorCode) -> None:
        self._pending.errors[self._number][self._partition] = error
        self._pending.settle()


def begin(state: NodeState, slot: Slot, request: WriteTxnMarkersRequest) -> None:
    pending = PendingMarkers(state, slot, request)
    for number, (ask, partitions) in enumerate(api.asks(request)):
        for partition in partitions:
            verdict = _admit(state, partition, ask)
            if isinstance(verdict, Refusal):
                pending.errors[number][partition] = verdict.error
                continue
            hosted = state.hosted[partition]
            if verdict.next_offset <= hosted.replica.high_watermark:
                pending.errors[number][partition] = ErrorCode.NONE  # written and committed before
                continue
            pending.missing += 1
            hosted.marking.append(Marking(pending, number, partition, verdict.next_offset))
    pending.settle()


def _admit(state: NodeState, partition: TopicPartition, ask: MarkerAsk) -> Admitted | Refusal:
    hosted = state.hosted.get(partition)
    if hosted is None:
        return not_here(state, partition)
    state.tally.partition_events += 1
    try:
        verdict = admit_marker(hosted.replica, ask, state.wall)
    except AssertionError as fault:
        return on_fault(state, hosted, fault)
    if isinstance(verdict, Admitted) and verdict.write:
        produce.place(
            state, hosted, verdict.base_offset, state.coordinators.log.mark(ask, state.wall)
        )
        if hosted.coordinated:
            coordinators.on_marker(state, partition, ask, verdict.next_offset)
    return verdict
