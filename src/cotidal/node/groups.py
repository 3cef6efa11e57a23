"""Requests for the coordinators of groups: which one, and what becomes of the answers. Pure.

A request becomes one question or several, each for the coordinator of its group; when all are
answered, so is the request. The API's module makes the questions and the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Final

from cotidal.api.asked import Asked
from cotidal.api.groups import OFFSETS_TOPIC, Answered, Part
from cotidal.api.registry import handler
from cotidal.api.view import View
from cotidal.core.coordinator import Coordinator, partition_of
from cotidal.core.groups.asks import ForgetTopics
from cotidal.core.groups.coordinator import GroupCoordinator
from cotidal.core.groups.state import GroupRules
from cotidal.node import coordinators
from cotidal.node.connections import Slot
from cotidal.node.coordinators import CoordinatorLog, Coordinators, Shard
from cotidal.node.state import NodeState
from cotidal.settings import effective
from cotidal.values import ZERO_UUID, TopicPartition, Uuid

MINUTE_MS: Final = 60_000


def duty(state: NodeState, log: CoordinatorLog) -> Coordinators:
    return Coordinators(
        log,
        _maker(state),
        partial(_forget_deleted, state),
        load_bytes=_number(state, "offsets.load.buffer.size"),
        timeout_ms=_number(state, "offsets.commit.timeout.ms"),
    )


def _maker(state: NodeState) -> Callable[[str], Coordinator]:
    def make(topic: str) -> Coordinator:
        assert topic == OFFSETS_TOPIC, topic
        return GroupCoordinator(rules(state), state.entropy)

    return make


def rules(state: NodeState) -> GroupRules:
    return GroupRules(
        session_min_ms=_number(state, "group.min.session.timeout.ms"),
        session_max_ms=_number(state, "group.max.session.timeout.ms"),
        initial_delay_ms=_number(state, "group.initial.rebalance.delay.ms"),
        members_max=_number(state, "group.max.size"),
        metadata_length_max=_number(state, "offset.metadata.max.bytes"),
        retention_ms=_number(state, "offsets.retention.minutes") * MINUTE_MS,
        expiry_interval_ms=_number(state, "offsets.retention.check.interval.ms"),
    )


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
    parts: tuple[Part | Answered, ...] = module.parts(slot.request.message, asked, view)
    places = _places(state, parts)
    gathering = Gathering(state, slot, module, asked, len(places))
    if not places:
        gathering.respond()
    for position, (part, partition) in enumerate(places):
        asker = OnePart(gathering, position)
        if isinstance(part, Answered):
            asker.answer(part.answer)
        elif partition is None:
            asker.answer(coordinators.NOT_COORDINATOR)
        else:
            coordinators.ask(state, partition, part.ask, asker)


def _places(
    state: NodeState, parts: tuple[Part | Answered, ...]
) -> list[tuple[Part | Answered, TopicPartition | None]]:
    """Each part with the partition that it is for; one for no group goes to all that are here."""
    topic = state.controller.committed.topics.get(OFFSETS_TOPIC)
    places: list[tuple[Part | Answered, TopicPartition | None]] = []
    for part in parts:
        if isinstance(part, Answered) or topic is None:
            if isinstance(part, Answered) or part.group_id is not None:
                places.append((part, None))
        elif part.group_id is None:
            places.extend((part, each) for each in coordinators.led(state, OFFSETS_TOPIC))
        else:
            number = partition_of(part.group_id, len(topic.partitions))
            places.append((part, TopicPartition(OFFSETS_TOPIC, number)))
    return places


def _forget_deleted(state: NodeState, shard: Shard) -> None:
    """Topics that were deleted while nobody coordinated: a new one of their name has no offsets.

    Whoever took a commit knew its topic, and knew of no later leader. So the metadata that made us
    the leader comes after that topic: if it is not there now, it was deleted.
    """
    assert isinstance(shard.machine, GroupCoordinator)
    known = state.controller.committed.topic_names
    committed = dict.fromkeys(
        value.topic_id
        for held in shard.machine.groups.image.offsets.values()
        for value in held.values()
    )
    gone = tuple(each for each in committed if each != ZERO_UUID and each not in known)
    if gone:
        coordinators.tell(state, shard, ForgetTopics(gone))


def on_topic_deleted(state: NodeState, topic_id: Uuid) -> None:
    coordinators.tell_all(state, OFFSETS_TOPIC, ForgetTopics((topic_id,)))


def _number(state: NodeState, name: str) -> int:
    value = effective(name, static=state.config.settings).value
    assert isinstance(value, int), name
    return value
