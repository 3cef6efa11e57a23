"""The two shapes of machine. Pure. Read this first.

A **protocol machine** (a partition replica, a quorum node, a whole node) owns mutable state and is
moved by events:

    step(event, now) -> tuple[Effect, ...]      obeyed in order by whoever drives it
    next_deadline() -> Millis | None            when it wants a Tick

A **replicated machine** (the controller; group and transaction coordinators) owns an image that
only committed records change:

    decide(request, ...) -> Decision            looks at the image, changes nothing
    image.replay(record) -> None                the only thing that changes it; cannot fail

Its answer waits until the records of its decision are committed. The active node keeps two images:
the *speculative* one has replayed everything appended, so that decisions see each other; the
*committed* one is what the world may know. Losing leadership copies committed over speculative.

Rules for both: no clock, no randomness, no I/O; time and entropy come in as arguments; events,
effects and records are whole immutable values (NamedTuples: 0.4 us to build where a frozen
dataclass costs 1.2); no iteration over a set; effects are obeyed in order.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, Protocol, TypeVar

from cotidal.values import Millis

EventT = TypeVar("EventT", contravariant=True)
EffectT = TypeVar("EffectT", covariant=True)
RecordT = TypeVar("RecordT")
ReplyT = TypeVar("ReplyT")


class ProtocolMachine(Protocol[EventT, EffectT]):
    """What a driver (the broker's loop, the simulator, a script) needs to know of a machine."""

    def step(self, event: EventT, now: Millis) -> tuple[EffectT, ...]: ...

    def next_deadline(self) -> Millis | None: ...


class Decision(NamedTuple, Generic[RecordT, ReplyT]):
    """What a replicated machine wants to do about one request.

    ``records`` are appended together or not at all. ``reply`` is sent once they are committed; a
    decision without records (a refusal, a validate-only request) is answered after whatever is in
    flight, so that it never reveals state that could still be lost (DURABLE_BEFORE_TOLD).
    """

    records: tuple[RecordT, ...]
    reply: ReplyT


def ripens(now: Millis, wait_ms: int) -> Millis:
    """When a wait that may end early without harm (a poll's, a heartbeat's) does so with whatever
    the node is awake for: halfway. To wake a process costs more than the few words, and soon all
    such waits of nodes that have nothing else to do end in the same moments."""
    return Millis(now + (wait_ms + 1) // 2)


class Entropy:
    """An integer generator of our own: the same numbers on every Python, from one seed.

    SplitMix64. The broker seeds it from the operating system, the simulator from its one seed.
    """

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def next_u64(self) -> int:
        self._state = z = (self._state + 0x9E3779B97F4A7C15) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def below(self, bound: int) -> int:
        """A number in [0, bound)."""
        return self.next_u64() % bound

    def bytes16(self) -> bytes:
        return self.next_u64().to_bytes(8, "big") + self.next_u64().to_bytes(8, "big")


_MASK = (1 << 64) - 1
