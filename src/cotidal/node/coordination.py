"""Requests for coordinators: which one, and what becomes of the answers. Pure.

A request becomes one question or several, each for the coordinator of its group or transactional
id; when all are answered, so is the request. The API's module makes the questions and the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import ModuleType

from cotidal.api.asked import Asked
from cotidal.api.coordination import (
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    Answered,
    AnyPart,
    Fresh,
    InTransactionPart,
)
from cotidal.api.registry import handler
from cotidal.api.view import View
from cotidal.core.coordinator import Coordinator
from cotidal.core.transactions.asks import EndTransaction, InitProducer, NeedsProducerId
from cotidal.errors import Refusal
from cotidal.node import coordinators, producer_ids, transactional_offsets, transactions
from cotidal.node.connections import Slot
from cotidal.node.coordinators import Asker, CoordinatorLog, Coordinators, Shard
from cotidal.node.state import NodeState
from cotidal.values import ProducerId, TopicPartition, Uuid


def duty(state: NodeState, log: CoordinatorLog) -> Coordinators:
    return Coordinators(
        log,
        _maker(state),
        partial(_on_active, state),
        partial(transactions.obey, state),
        load_bytes=state.config.number("offsets.load.buffer.size"),
        timeout_ms=state.config.number("offsets.commit.timeout.ms"),
    )


def _maker(state: NodeState) -> Callable[[str], Coordinator]:
    def make(topic: str) -> Coordinator:
        if topic == TRANSACTIONS_TOPIC:
            return transactions.machine(state)
        assert topic == OFFSETS_TOPIC, topic
        made: Coordinator = _groups().machine(state)
        return made

    return make


def _groups() -> ModuleType:
    """Loaded by whoever coordinates, and by nobody else: a start has no time for it."""
    return import_module("cotidal.node.groups")


def _on_active(state: NodeState, shard: Shard) -> None:
    if shard.hosted.replica.partition.topic == OFFSETS_TOPIC:
        _groups().forget_deleted(state, shard)


def on_topic_deleted(state: NodeState, topic_id: Uuid) -> None:
    if state.coordinators.shards:
        _groups().on_topic_deleted(state, topic_id)


class Gathering:
    """A request whose parts are being answered."""

    __slots__ = ("_answers", "_asked", "_missing", "_module", "_slot", "_state")

    def __init__(
        self, state: NodeState, slot: Slot, module: ModuleType, asked: Asked, parts: int
    ) -> None:
        self._state = state
        self._slot = slot
        self._module = module
        self._asked = asked
        self._answers: list[object] = [None] * parts
        self._missing = parts

    def fill(self, position: int, answer: object) -> None:
        self._answers[position] = answer
        self._missing -= 1
        if not self._missing:
            self.respond()

    def respond(self) -> None:
        slot = self._slot
        reply = self._module.response(slot.request.message, self._asked, self._answers)
        slot.connection.answer(slot, reply, self._state.out)


class OnePart:
    """Implements ``coordinators.Asker``."""

    __slots__ = ("_gathering", "_position")

    def __init__(self, gathering: Gathering, position: int) -> None:
        self._gathering = gathering
        self._position = position

    def answer(self, answer: object) -> None:
        self._gathering.fill(self._position, answer)


def begin(state: NodeState, slot: Slot, asked: Asked, view: View) -> None:
    """A request of a coordinator's API."""
    module = handler(slot.request.api_key)
    parts: tuple[AnyPart, ...] = module.parts(slot.request.message, asked, view)
    places = _places(state, parts)
    gathering = Gathering(state, slot, module, asked, len(places))
    if not places:
        gathering.respond()
    for position, (part, partition) in enumerate(places):
        asker = OnePart(gathering, position)
        if isinstance(part, Answered):
            asker.answer(part.answer)
        elif isinstance(part, Fresh):
            producer_ids.take(state, asker)
        elif partition is None:
            asker.answer(coordinators.NOT_COORDINATOR)
        elif isinstance(part, InTransactionPart):
            transactional_offsets.begin(state, partition, part, asker)
        else:
            coordinators.ask(
                state, partition, part.ask, _Renewing(state, partition, part.ask, asker)
            )


class _Renewing:
    """Implements ``coordinators.Asker``: brings a producer id to a coordinator that needs one."""

    __slots__ = ("_ask", "_asker", "_partition", "_state")

    def __init__(
        self, state: NodeState, partition: TopicPartition, ask: object, asker: Asker
    ) -> None:
        self._state = state
        self._partition = partition
        self._ask = ask
        self._asker = asker

    def answer(self, answer: object) -> None:
        if isinstance(answer, NeedsProducerId):
            producer_ids.take(
                self._state, _WithId(self._state, self._partition, self._ask, self._asker)
            )
        else:
            self._asker.answer(answer)


class _WithId(_Renewing):
    """The id has come: ask again, with it."""

    __slots__ = ()

    def answer(self, answer: object) -> None:
        if isinstance(answer, Refusal):
            self._asker.answer(answer)
            return
        assert isinstance(self._ask, InitProducer | EndTransaction)
        assert isinstance(answer, int)
        ask = self._ask._replace(fresh=ProducerId(answer))
        coordinators.ask(self._state, self._partition, ask, self._asker)


def _places(
    state: NodeState, parts: tuple[AnyPart, ...]
) -> list[tuple[AnyPart, TopicPartition | None]]:
    """Each part with the partition that it is for; one for no key goes to all that are here."""
    places: list[tuple[AnyPart, TopicPartition | None]] = []
    for part in parts:
        if isinstance(part, Answered | Fresh):
            places.append((part, None))
        elif isinstance(part, InTransactionPart):
            places.append((part, coordinators.place_of(state, OFFSETS_TOPIC, part.key)))
        elif part.key is None:
            places.extend((part, each) for each in coordinators.led(state, part.topic))
        else:
            places.append((part, coordinators.place_of(state, part.topic, part.key)))
    return places
