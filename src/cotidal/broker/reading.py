"""Obeys Read: the wants of one fetch, one log after another.

A read out of the page cache takes 10 us to 0.2 ms and is done on the event loop. After one that
took longer than READ_STALL_MS because it met the disk (stalls.py), that log is read by a thread for
COLD_S, and everybody else goes on. A log that is busy is waited for, and the read goes on from
there; what has been read before is kept, so a read never waits for the same log twice.

``room()`` says how much more may be read for clients at all: those who do not take their answers
hold memory, and the fuller it is, the less an answer brings. A fetch that finds anything brings one
batch all the same, so that everybody goes on.

What is only sent on, and is much, is not read but left where it is (parcel.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter
from typing import TypeVar

from cotidal.broker.lane import Lane
from cotidal.broker.parcel import COLD_S, Parcel
from cotidal.broker.stalls import Readings
from cotidal.broker.worker import Done, Failed, Outcome, Worker
from cotidal.limits import READ_STALL_MS
from cotidal.log.failure import LogError, LogOffline, OutOfRange
from cotidal.log.files import LeftBytes
from cotidal.log.log import Log
from cotidal.messages.batch import Stretch
from cotidal.messages.producers import AbortedTransaction
from cotidal.node.effects import Read, Want
from cotidal.node.events import Event, ReadDone
from cotidal.values import TopicPartition

T = TypeVar("T")

Result = bytes | memoryview | Stretch | str


class _Answer:
    """A Read on its way."""

    __slots__ = ("aborted", "effect", "found", "left", "promised", "results")

    def __init__(self, effect: Read, room: int) -> None:
        self.effect = effect
        self.results: list[Result] = []
        self.aborted: list[tuple[AbortedTransaction, ...]] = []
        """For each result; stays empty if nobody has asked."""
        asked = sum(max(want.max_bytes, 0) for want in effect.wants)
        self.left = self.promised = min(effect.max_bytes, asked, max(room, 0))
        self.found = False
        """Something was read: what follows need not be a whole batch."""

    def add(self, data: Result, log: Log | None = None) -> None:
        want = self.effect.wants[len(self.results)]
        self.results.append(data)
        if self.effect.committed:
            found = () if log is None else log.aborted_beside(want.offset, want.below)
            self.aborted.append(found if data else ())
        if data and not isinstance(data, str):
            self.left -= len(data)
            self.found = True


class Reading:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        lanes: Mapping[TopicPartition, Lane],
        *,
        post: Callable[[Event], None],
        room: Callable[[], int],
        fail: Callable[[Lane, LogError], None],
        on_fault: Callable[[Exception], None],
    ) -> None:
        self._loop = loop
        self._lanes = lanes
        self._post = post
        self._room = room
        self._promised = 0
        """Bytes that reads under way may bring."""
        self._in_hand = 0
        """Bytes read in this turn of the loop: not yet among those that clients have not taken."""
        self._fail = fail
        self._readings = Readings()
        self._worker = Worker(loop, "cotidal-reader", on_fault)

    def read(self, effect: Read) -> None:
        answer = _Answer(effect, self._room() - self._in_hand - self._promised)
        self._promised += answer.promised
        self._go_on(answer)

    def stop(self) -> None:
        self._worker.abandon()

    @property
    def jobs(self) -> int:
        return self._worker.waiting

    def _go_on(self, answer: _Answer) -> None:
        """Read what has no result yet."""
        effect = answer.effect
        for want in effect.wants[len(answer.results) :]:
            lane = self._lanes.get(want.partition)
            if lane is not None and lane.busy:
                lane.wait(partial(self._go_on, answer))
                return
            if lane is None or lane.log is None:
                answer.add(f"{want.partition} has no open log on this node")
            elif answer.left <= 0 and answer.found:
                answer.add(b"")
            elif self._loop.time() < lane.cold_until:
                read = partial(_ask, lane.log.read, want, answer)
                lane.run_in(self._worker, read, partial(self._read_cold, answer, lane))
                return
            else:
                self._read_warm(answer, lane, lane.log, want)
        self._promised -= answer.promised
        if answer.found:
            if not self._in_hand:
                self._loop.call_soon(self._hand_over)
            self._in_hand += sum(map(len, answer.results))
        self._post(ReadDone(effect.token, tuple(answer.results), tuple(answer.aborted)))

    def _hand_over(self) -> None:
        self._in_hand = 0

    def _read_warm(self, answer: _Answer, lane: Lane, log: Log, want: Want) -> None:
        begun = perf_counter()
        try:
            data = _ask(log.leave if answer.effect.to_send else log.read, want, answer)
            if isinstance(data, LeftBytes):
                data = Parcel(self._loop, self._readings, lane, data)
            answer.add(data, log)
        except (LogError, OSError) as error:
            self._refuse(answer, lane, error)
        if self._readings.has_met_the_disk(perf_counter() - begun, READ_STALL_MS):
            lane.cold_until = self._loop.time() + COLD_S

    def _read_cold(self, answer: _Answer, lane: Lane, outcome: Outcome[bytes | memoryview]) -> None:
        match outcome:
            case Done(data):
                answer.add(data, lane.log)
            case Failed(LogError() | OSError() as error):
                self._refuse(answer, lane, error)
            case Failed(error):
                raise error
        self._go_on(answer)

    def _refuse(self, answer: _Answer, lane: Lane, error: LogError | OSError) -> None:
        """An offset out of range is an answer; damage, or a disk that fails, ends the log."""
        if isinstance(error, OSError):
            why = error.strerror or error
            error = LogOffline(f"{lane.partition}: could not be read: {why}")
        if not isinstance(error, OutOfRange):
            self._fail(lane, error)
        answer.add(str(error))


def _ask(read: Callable[..., T], want: Want, answer: _Answer) -> T:
    return read(
        want.offset,
        max_bytes=min(want.max_bytes, answer.left),
        below=want.below,
        whole_first=not answer.found,
    )
