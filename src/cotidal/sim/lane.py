"""The order and the pace in which a simulated disk does what it is asked.

Each log has a lane: what is asked of it is done in order, each job taking its time; others go on. A
job does its work when it begins, and is told when it ends, so a crash in between finds it done and
not told; one that waits behind it is not done at all. A job that takes no time is done and told
within the turn, as an append to the page cache is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from cotidal.core.machine import Entropy
from cotidal.log.log import Log
from cotidal.node.events import Event
from cotidal.sim.agenda import MS, Agenda
from cotidal.values import TopicPartition, Uuid, WallMillis

NEVER: Final = (1 << 63) - 1

Work = Callable[[], tuple[Event, ...]]


class Speed:
    """How long the disk takes. Changed by faults."""

    __slots__ = ("slow_us", "sync_us")

    def __init__(self) -> None:
        self.slow_us = 2 * MS
        """One job in four takes up to this long; the others no time at all."""
        self.sync_us = 1 * MS
        """What is synced takes up to this long more."""


class Hands:
    """What every lane of a process needs: time that passes, and somebody to tell."""

    __slots__ = ("_agenda", "_entropy", "_run", "_speed", "dead", "post", "wall")

    def __init__(
        self,
        agenda: Agenda,
        entropy: Entropy,
        speed: Speed,
        *,
        post: Callable[[Event], None],
        run: Callable[..., None],
        wall: Callable[[], WallMillis],
    ) -> None:
        """``run(do, *args)``: on the process's loop, which may stand still for a while."""
        self._agenda = agenda
        self._entropy = entropy
        self._speed = speed
        self._run = run
        self.post = post
        self.wall = wall
        self.dead = False
        """Once the process is: then nothing more happens."""

    def later(self, delay_us: int, do: Callable[..., None], *args: Any) -> None:
        self._agenda.after(delay_us, self._while_alive, do, args)

    def _while_alive(self, do: Callable[..., None], args: tuple[Any, ...]) -> None:
        if not self.dead:
            self._run(do, *args)

    def took_within(self, longest_us: int) -> int:
        """How long something takes that has its own bound."""
        return self._entropy.next_u64() % (longest_us + 1)

    def took(self, *, sync: bool = False) -> int:
        """How long the next job takes."""
        drawn = self._entropy.next_u64()
        if sync:
            return drawn % (self._speed.sync_us + self._speed.slow_us + 1)
        return 0 if drawn & 3 else (drawn >> 2) % (self._speed.slow_us + 1)


class Lane:
    """One log and the order of what is done to it."""

    __slots__ = ("_hands", "_waiting", "busy", "compacting", "flush_messages", "log", "partition",
                 "topic_id", "unflushed")  # fmt: skip

    def __init__(self, hands: Hands, partition: TopicPartition, topic_id: Uuid) -> None:
        self._hands = hands
        self.partition = partition
        self.topic_id = topic_id
        self.log: Log | None = None
        self.flush_messages = NEVER
        self.unflushed = 0
        self.compacting = False
        self.busy = False
        self._waiting: deque[Callable[[], None]] = deque()

    def when_free(self, begin: Callable[[], None]) -> None:
        if self.busy or self._waiting:
            self._waiting.append(begin)
        else:
            begin()

    def run(self, work: Work, took_us: int) -> None:
        """Do it now; told after ``took_us``."""
        events = work()
        if took_us == 0:
            for event in events:
                self._hands.post(event)
            return
        self.busy = True
        self._hands.later(took_us, self.end, events)

    def end(self, events: tuple[Event, ...]) -> None:
        self.busy = False
        for event in events:
            self._hands.post(event)
        while self._waiting and not self.busy:
            self._waiting.popleft()()
