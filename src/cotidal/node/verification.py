"""Batches that would open a transaction, and the coordinator that must confirm it first. Pure. T6.

A Produce waits here while its coordinator is asked; then it is begun like any other, with what was
confirmed. Each partition takes a guard before the question: if its transaction ends meanwhile, the
answer is worth nothing, and the batch is refused. Without that, a batch that was under way while
its transaction ended would open one that nobody ever ends. Meanwhile nothing more begins on the
connection: the sequences of later batches follow on this one.

A producer of transaction version 2 may be there again before the markers of its last transaction
are written. Its coordinator is then asked again, and again, for some time: it is a matter of
milliseconds, and a client that is refused stays away for longer.
Owns of the state: postponed.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from cotidal.api import add_partitions_to_txn as api
from cotidal.api.coordination import TRANSACTIONS_TOPIC
from cotidal.core.partition.leader import needs_verification
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.batch import BatchHeader
from cotidal.messages.rpc.add_partitions_to_txn import AddPartitionsToTxnResponse
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.produce import ProduceRequest
from cotidal.node import calls, coordinators, produce
from cotidal.node.connections import Slot
from cotidal.node.produce import Verified
from cotidal.node.state import NodeState
from cotidal.node.transactions import LANE
from cotidal.values import NO_NODE, Millis, ProducerEpoch, ProducerId, TopicPartition, WallMillis

ADDS_SINCE: Final = 12
"""From this Produce on the partition is added for the client, which does not do it itself."""
TIMEOUT_MS: Final = 5_000
AGAIN_MS: Final = (2, 4, 8, 16, 32, 64, 128)
"""How long to wait before asking again a coordinator that is not through with the last transaction:
a quarter of a second in all."""

_PASSES: Final = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
NOT_NOW: Final = Refusal(
    ErrorCode.NOT_ENOUGH_REPLICAS, "the transaction's coordinator cannot confirm it now"
)
"""Which every client repeats."""


class Question(NamedTuple):
    """Whether partitions are part of a producer's transaction."""

    transactional_id: str
    producer_id: ProducerId
    epoch: ProducerEpoch
    partitions: tuple[TopicPartition, ...]
    adds: bool
    """If they are not, they shall be."""
    asked_before: int = 0
    """How often."""

    def again(self) -> Question:
        return self._replace(asked_before=self.asked_before + 1)


class Verifying(NamedTuple):
    """A Produce whose coordinator is being asked."""

    slot: Slot
    request: ProduceRequest
    wall: WallMillis
    guards: dict[TopicPartition, tuple[BatchHeader, int]]
    question: Question


class Owner(Protocol):
    """Whoever waits for the answer to a question."""

    @property
    def question(self) -> Question: ...


class Postponed(NamedTuple):
    """A question that is asked again."""

    at: Millis
    owner: Owner


def begin(state: NodeState, slot: Slot, request: ProduceRequest, wall: WallMillis) -> bool:
    """Whether the Produce waits now. False: there is nothing to confirm."""
    version = slot.request.api_version
    guards: dict[TopicPartition, tuple[BatchHeader, int]] = {}
    for topic in request.topic_data:
        name = produce.topic_name(state, topic.name, topic.topic_id, version)
        for written in topic.partition_data:
            hosted = state.hosted.get(TopicPartition(name, written.partition_index))
            if hosted is None or hosted.replica.leadership is None or not written.records:
                continue
            for header in written.records.headers[:1]:
                if needs_verification(hosted.replica, header):
                    transactions = hosted.replica.producers.transactions
                    guard = transactions.guard(
                        header.producer_id, header.producer_epoch, header.base_sequence
                    )
                    guards[hosted.replica.partition] = (header, guard)
    if not guards:
        return False
    slot.connection.hold()
    header, _ = next(iter(guards.values()))
    id_ = request.transactional_id or ""
    question = Question(
        id_, header.producer_id, header.producer_epoch, tuple(guards), version >= ADDS_SINCE
    )
    verifying = Verifying(slot, request, wall, guards, question)
    if not must_ask(state, question):
        _go_on(state, verifying, {})
    elif not ask(state, verifying):
        on_failed(state, verifying)
    return True


def must_ask(state: NodeState, question: Question) -> bool:
    """Looking can be switched off. What nobody has added must be added: it would never end."""
    return state.verifies or question.adds


def ask(state: NodeState, owner: Owner) -> bool:
    """Ask the coordinator of a transaction; ``owner`` is told. False: nobody can be asked now."""
    question = owner.question
    id_ = question.transactional_id
    place = coordinators.place_of(state, TRANSACTIONS_TOPIC, id_) if id_ else None
    told = None if place is None else state.controller.committed.partition(*place)
    leader = NO_NODE if told is None else told.leader
    endpoint = None if leader == NO_NODE else calls.broker_endpoint(state, leader)
    if endpoint is None:
        return False
    calls.call(
        state,
        leader,
        endpoint,
        lane=LANE,
        api=ApiKey.ADD_PARTITIONS_TO_TXN,
        version=api.ASKED_VERSION,
        message=api.question(
            id_,
            question.producer_id,
            question.epoch,
            question.partitions,
            verify_only=not question.adds,
        ),
        timeout_ms=TIMEOUT_MS,
        owner=owner,
    )
    return True


def again_later(state: NodeState, owner: Owner, response: AddPartitionsToTxnResponse) -> bool:
    """Whether the coordinator is asked again in a moment, for ``owner``, rather than refusing."""
    busy = ErrorCode.CONCURRENT_TRANSACTIONS in api.errors_in(response).values()
    times = owner.question.asked_before
    if not (busy and owner.question.adds and times <= len(AGAIN_MS)):
        return False
    state.postponed.append(Postponed(Millis(state.now + AGAIN_MS[times - 1]), owner))
    return True


def due_again(state: NodeState) -> list[Owner]:
    """Those for whom the coordinator is to be asked now."""
    due = [each.owner for each in state.postponed if each.at <= state.now]
    state.postponed = [each for each in state.postponed if each.at > state.now]
    return due


def next_deadline(state: NodeState) -> Millis | None:
    return min((each.at for each in state.postponed), default=None)


def on_answered(
    state: NodeState, verifying: Verifying, response: AddPartitionsToTxnResponse
) -> None:
    again = verifying._replace(question=verifying.question.again())
    if again_later(state, again, response):
        return
    errors = api.errors_in(response)
    may_abort = verifying.slot.request.api_version >= ADDS_SINCE
    refused = {
        partition: refusal_of(errors.get(partition, ErrorCode.NOT_COORDINATOR), may_abort=may_abort)
        for partition in verifying.guards
        if errors.get(partition) is not ErrorCode.NONE
    }
    _go_on(state, verifying, refused)


def on_failed(state: NodeState, verifying: Verifying) -> None:
    _go_on(state, verifying, dict.fromkeys(verifying.guards, NOT_NOW))


def refusal_of(error: ErrorCode, *, may_abort: bool) -> Refusal:
    """``may_abort``: the client knows TRANSACTION_ABORTABLE."""
    if error in _PASSES:
        return NOT_NOW
    if error is ErrorCode.PRODUCER_FENCED:
        return Refusal(ErrorCode.INVALID_PRODUCER_EPOCH)
    if error is ErrorCode.TRANSACTION_ABORTABLE and not may_abort:
        return Refusal(ErrorCode.INVALID_TXN_STATE, "the partition is not in the transaction")
    return Refusal(error)


def _go_on(state: NodeState, verifying: Verifying, refused: dict[TopicPartition, Refusal]) -> None:
    slot, request, wall, guards, _ = verifying
    for partition, refusal in refused.items():
        header, guard = guards[partition]
        hosted = state.hosted.get(partition)
        if hosted is not None and refusal is not NOT_NOW:
            # One that comes again keeps its place: no later one may be written before it.
            hosted.replica.producers.transactions.release(header.producer_id, guard)
    if slot.connection.lost:
        return  # whoever sent it has gone
    slot.connection.let_go()
    verified = Verified({place: guard for place, (_, guard) in guards.items()}, refused)
    produce.begin(state, slot, request, wall, verified)
