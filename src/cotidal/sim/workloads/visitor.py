"""Whoever asks coordinators one thing after another, and is not always right.

REFUSED_BY_NAME  whoever is refused is told why: never UNKNOWN_SERVER_ERROR
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final, NamedTuple

from cotidal.errors import ErrorCode
from cotidal.invariants import REFUSED_BY_NAME
from cotidal.messages.rpc.apis import ApiKey
from cotidal.sim.agenda import MS, SECOND
from cotidal.sim.network import Address
from cotidal.sim.probes import Probes
from cotidal.sim.violation import Violation
from cotidal.sim.workloads.client import Client
from cotidal.sim.workloads.find import GROUP_KEY, find_coordinator
from cotidal.sim.world import World
from cotidal.values import TopicPartition

GAP_US: Final = 40 * MS
WAIT_US: Final = 6 * SECOND


class Question(NamedTuple):
    key: ApiKey
    version: int
    request: Any
    then: Callable[[Any], None] | None = None
    """Told of every answer, also of a refusal."""
    to_leader: TopicPartition | None = None
    """To the leader of this partition, and not to the coordinator."""


class Visitor(Client):
    KIND: ClassVar[int] = GROUP_KEY
    """Of the coordinator that it asks."""

    def __init__(self, world: World, name: str, topics: tuple[str, ...], probes: Probes) -> None:
        super().__init__(world, name, topics)
        self._probes = probes
        self._coordinators: dict[str, Address] = {}

    def question(self) -> tuple[str, Question]:
        """What is asked next, and of whose coordinator."""
        raise NotImplementedError

    def begin(self) -> None:
        self.refresh()
        self.after(self.draw(GAP_US), self._act)

    def stop(self) -> None:
        self.stopped = True

    def pick(self, choices: Any) -> Any:
        return choices[self.draw(len(choices))]

    def _act(self) -> None:
        if self.stopped:
            return
        whose, question = self.question()
        if question.to_leader is not None:
            leader = self.leaders.get(question.to_leader)
            if leader is None:
                self.refresh()
                self._again()
            else:
                self._ask(whose, leader.address, question)
        elif whose in self._coordinators:
            self._ask(whose, self._coordinators[whose], question)
        else:
            find_coordinator(self, whose, lambda found: self._found(whose, found), kind=self.KIND)

    def _found(self, whose: str, address: Address | None) -> None:
        if address is not None:
            self._coordinators[whose] = address
        self._again()

    def _ask(self, whose: str, address: Address, question: Question) -> None:
        def told(reply: Any) -> None:
            errors = [] if reply is None else list(errors_in(reply))
            if ErrorCode.UNKNOWN_SERVER_ERROR in errors:
                raise Violation(
                    REFUSED_BY_NAME,
                    f"{self.name} is told UNKNOWN_SERVER_ERROR by {question.key.name}",
                )
            for error in errors:
                self._probes.see(f"a visitor refused with {ErrorCode(error).name}")
            if reply is None or ErrorCode.NOT_COORDINATOR in errors:
                self._coordinators.pop(whose, None)
            if ErrorCode.NOT_LEADER_OR_FOLLOWER in errors:
                self.refresh()
            if reply is not None and question.then is not None:
                question.then(reply)
            self._again()

        self.ask(address, question.key, question.version, question.request, told, WAIT_US)

    def _again(self) -> None:
        self.after(1 + self.draw(2 * GAP_US), self._act)


def errors_in(reply: Any) -> Iterator[int]:
    """All error codes of an answer that are not 0."""
    if hasattr(reply, "_fields"):
        for name, value in zip(reply._fields, reply, strict=True):
            if not name.endswith("error_code"):
                yield from errors_in(value)
            elif value:
                yield value
    elif isinstance(reply, tuple):
        for each in reply:
            yield from errors_in(each)
