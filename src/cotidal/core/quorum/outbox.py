"""The one queue between a quorum node and the world. Pure.

  DURABLE_BEFORE_TOLD  what is told waits until every write asked for before it is durable.

Writes are numbered. Those asked for while a Persist is under way gather and share the next one. An
effect carries the number of the write it waits for; ``tell`` takes the last one, which is always
right. Two kinds need less: what reveals nothing but what is durable already (``tell_now``), and a
leader's answer to a fetch, which holds only durable records and so waits for the epoch and the vote
but not for records proposed meanwhile (``tell_after_state``): otherwise a busy leader's followers
would wait two fsyncs for every record.
"""

from __future__ import annotations

from cotidal.core.quorum.effects import (
    AppendControl,
    AppendFetched,
    AppendOwn,
    Effect,
    Persist,
    Write,
    WriteState,
)
from cotidal.core.quorum.events import PersistToken
from cotidal.invariants import DURABLE_BEFORE_TOLD
from cotidal.values import Offset


class InFlight:
    """The Persist under way."""

    __slots__ = ("end_offset", "number", "token")

    def __init__(self, token: PersistToken, *, number: int, end_offset: Offset) -> None:
        self.token = token
        self.number = number
        self.end_offset = end_offset
        """The log's durable end once this is done."""


class Outbox:
    __slots__ = (
        "asked",
        "durable",
        "durable_end",
        "gathering",
        "in_flight",
        "ready",
        "state_number",
        "waiting",
    )

    def __init__(self) -> None:
        self.asked = 0
        """The number of the last write asked for."""
        self.durable = 0
        """The number of the last durable write. Invariant: durable <= asked."""
        self.state_number = 0
        """The number of the last write that was more than an append."""
        self.durable_end = Offset(0)
        """Everything in the log below it is durable."""
        self.gathering: list[Write] = []
        self.in_flight: InFlight | None = None
        self.waiting: list[tuple[int, Effect]] = []
        self.ready: list[Effect] = []

    def write(self, write: Write) -> None:
        self.asked += 1
        if not isinstance(write, AppendOwn | AppendControl | AppendFetched):
            self.state_number = self.asked
        last = self.gathering[-1] if self.gathering else None
        if isinstance(write, WriteState) and isinstance(last, WriteState):
            self.gathering.pop()  # nobody has been told of the state it replaces
        self.gathering.append(write)

    def tell(self, effect: Effect) -> None:
        self._tell(effect, self.asked)

    def tell_after_state(self, effect: Effect) -> None:
        self._tell(effect, self.state_number)

    def tell_now(self, effect: Effect) -> None:
        self.ready.append(effect)

    def cut_from(self, offset: Offset) -> None:
        """The log is cut: what lay above is durable no more."""
        self.durable_end = min(self.durable_end, offset)
        if self.in_flight is not None:
            self.in_flight.end_offset = min(self.in_flight.end_offset, offset)

    def on_persisted(self, token: PersistToken) -> None:
        done = self.in_flight
        assert done is not None, "a Persisted without Persist"
        assert done.token == token, "Persisted comes in order"
        self.in_flight = None
        self.durable = done.number
        self.durable_end = done.end_offset
        still: list[tuple[int, Effect]] = []
        for number, effect in self.waiting:
            if number <= self.durable:
                self.ready.append(effect)
            else:
                still.append((number, effect))
        self.waiting = still

    def drain(self, log_end: Offset) -> tuple[Effect, ...]:
        """What may be done now, and the next Persist if there is one."""
        effects, self.ready = self.ready, []
        if self.gathering and self.in_flight is None:
            token = PersistToken(self.asked)
            self.in_flight = InFlight(token, number=self.asked, end_offset=log_end)
            effects.append(Persist(token, tuple(self.gathering)))
            self.gathering = []
        return tuple(effects)

    def check(self) -> None:
        assert self.durable <= self.asked
        assert not self.waiting or self.in_flight is not None, DURABLE_BEFORE_TOLD
        assert self.in_flight is not None or self.durable == self.asked, DURABLE_BEFORE_TOLD
        for number, _ in self.waiting:
            assert self.durable < number <= self.asked, DURABLE_BEFORE_TOLD

    def _tell(self, effect: Effect, number: int) -> None:
        if number <= self.durable:
            self.ready.append(effect)
        else:
            self.waiting.append((number, effect))
