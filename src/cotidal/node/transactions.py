"""Transactions in a node: their coordinators' rules, and the markers that these order. Pure. T15.

    SendMarkers -> missing, by transaction -> one WriteTxnMarkers under way to each leader
                                           -> written: the coordinator is told (MarkersWritten)
                                           -> refused, lost, no leader: again in a moment

A marker is sent until it is there, or until its coordinator is no longer here: whoever has taken
over orders it again.
Owns of the state: markers.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cotidal.api import write_txn_markers as api
from cotidal.core.transactions.asks import MarkersWritten, SendMarkers
from cotidal.core.transactions.coordinator import TransactionCoordinator, TransactionRules
from cotidal.errors import ErrorCode
from cotidal.limits import MARKERS_PER_WRITE_MAX
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.write_txn_markers import WriteTxnMarkersResponse
from cotidal.node import calls, coordinators
from cotidal.node.effects import Note
from cotidal.node.state import NodeState
from cotidal.values import NO_NODE, LeaderEpoch, Millis, NodeId, TopicPartition

LANE: Final = "transactions"
RETRY_MS: Final = 100
TIMEOUT_MS: Final = 5_000

_OVERTAKEN: Final = (
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
)
"""Somebody has decided since: we are not the coordinator any more, and will hear of it."""


class Ending(NamedTuple):
    """Whose end, and of which coordinator."""

    coordinator: TopicPartition
    epoch: LeaderEpoch
    transactional_id: str


class Ordered:
    """An end, and where it is not written yet."""

    __slots__ = ("missing", "order")

    def __init__(self, order: SendMarkers) -> None:
        self.order = order
        self.missing = dict.fromkeys(order.partitions)


class MarkersCall(NamedTuple):
    """A request under way."""

    leader: NodeId
    sent: tuple[tuple[Ending, SendMarkers, tuple[TopicPartition, ...]], ...]


class Markers:
    """What is still to be written, and to whom a request is under way."""

    __slots__ = ("due", "ordered", "retry_at", "under_way")

    def __init__(self) -> None:
        self.ordered: dict[Ending, Ordered] = {}
        self.under_way: dict[NodeId, None] = {}
        self.due = False
        self.retry_at: Millis | None = None


def machine(state: NodeState) -> TransactionCoordinator:
    number = state.config.number
    interval = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
    rules = TransactionRules(
        timeout_max_ms=number("transaction.max.timeout.ms"),
        expiration_ms=number("transactional.id.expiration.ms"),
        timeout_check_ms=number(interval),
    )
    return TransactionCoordinator(rules)


def obey(state: NodeState, coordinator: TopicPartition, order: object) -> None:
    assert isinstance(order, SendMarkers)
    leadership = state.hosted[coordinator].replica.leadership
    assert leadership is not None
    ending = Ending(coordinator, leadership.epoch, order.transactional_id)
    state.markers.ordered[ending] = Ordered(order)
    state.markers.due = True


def on_ticked(state: NodeState) -> None:
    markers = state.markers
    if markers.retry_at is not None and markers.retry_at <= state.now:
        markers.retry_at = None
        markers.due = True


def pump(state: NodeState) -> None:
    """At the end of a step: one request to each leader that has none under way."""
    markers = state.markers
    markers.due = False
    for leader, sent in _by_leader(state).items():
        endpoint = calls.broker_endpoint(state, leader)
        if leader in markers.under_way or endpoint is None:
            continue
        markers.under_way[leader] = None
        calls.call(
            state,
            leader,
            endpoint,
            lane=LANE,
            api=ApiKey.WRITE_TXN_MARKERS,
            version=api.ASKED_VERSION,
            message=api.request_of(
                api.Outgoing(order, partitions, ending.epoch) for ending, order, partitions in sent
            ),
            timeout_ms=TIMEOUT_MS,
            owner=MarkersCall(leader, tuple(sent)),
        )
    if markers.ordered:
        _again_later(state)


def _by_leader(
    state: NodeState,
) -> dict[NodeId, list[tuple[Ending, SendMarkers, tuple[TopicPartition, ...]]]]:
    image = state.controller.committed
    found: dict[NodeId, list[tuple[Ending, SendMarkers, tuple[TopicPartition, ...]]]] = {}
    counts: dict[NodeId, int] = {}
    for ending, ordered in tuple(state.markers.ordered.items()):
        if not _is_ours(state, ending):
            del state.markers.ordered[ending]
            continue
        shares: dict[NodeId, list[TopicPartition]] = {}
        gone: list[TopicPartition] = []
        for partition in ordered.missing:
            told = image.partition(*partition)
            if told is None:
                gone.append(partition)  # deleted, and with it what was written to it
            elif told.leader != NO_NODE and counts.get(told.leader, 0) < MARKERS_PER_WRITE_MAX:
                counts[told.leader] = counts.get(told.leader, 0) + 1
                shares.setdefault(told.leader, []).append(partition)
        for leader, partitions in shares.items():
            found.setdefault(leader, []).append((ending, ordered.order, tuple(partitions)))
        if gone:
            _written(state, ending, ordered.order, gone)
    return found


def _is_ours(state: NodeState, ending: Ending) -> bool:
    hosted = state.hosted.get(ending.coordinator)
    leadership = None if hosted is None else hosted.replica.leadership
    return leadership is not None and leadership.epoch == ending.epoch


def on_answered(state: NodeState, call: MarkersCall, response: WriteTxnMarkersResponse) -> None:
    state.markers.under_way.pop(call.leader, None)
    moved = False
    for (ending, order, partitions), errors in zip(
        call.sent, api.errors_in(response), strict=False
    ):
        done = [each for each in partitions if errors.get(each) is ErrorCode.NONE]
        overtaken = [each for each in partitions if errors.get(each) in _OVERTAKEN]
        if overtaken:
            told = f"the end of {order.transactional_id} is refused by {overtaken[0]}"
            state.out.append(Note("warning", told))
            state.markers.ordered.pop(ending, None)
        elif done:
            _written(state, ending, order, done)
        moved = moved or bool(done or overtaken)
    if moved:
        state.markers.due = bool(state.markers.ordered)
    else:  # at once it would be refused again: for ever, where the leader is this very node
        _again_later(state)


def on_failed(state: NodeState, call: MarkersCall) -> None:
    state.markers.under_way.pop(call.leader, None)
    _again_later(state)


def _written(
    state: NodeState, ending: Ending, order: SendMarkers, partitions: list[TopicPartition]
) -> None:
    ordered = state.markers.ordered.get(ending)
    if ordered is None or ordered.order != order:
        return
    for partition in partitions:
        ordered.missing.pop(partition, None)
    if not ordered.missing:
        del state.markers.ordered[ending]
    news = MarkersWritten(order.transactional_id, order.producer, tuple(partitions))
    shard = state.coordinators.shards.get(ending.coordinator)
    if shard is not None:
        coordinators.tell(state, shard, news)


def _again_later(state: NodeState) -> None:
    if state.markers.retry_at is None:
        state.markers.retry_at = Millis(state.now + RETRY_MS)
