"""Turns of a driver around a scripted node, on a loop whose clock the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from cotidal.broker import driver as driver_module
from cotidal.broker.counters import Counters, Histogram
from cotidal.broker.driver import Driver
from cotidal.broker.journal import Journal
from cotidal.node.effects import Effect, MeterTime, Note, Serve
from cotidal.node.events import (
    ConnectionId,
    Event,
    PeerConnected,
    PeerLost,
    Persisted,
    PersistToken,
    Received,
    Request,
    ShutdownRequested,
    Ticked,
    TimeSpent,
)
from cotidal.values import Millis, NodeId, WallMillis


class Loop:
    """The few calls a driver makes, done when the test says so."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []
        self.timers: list[tuple[float, Callable[[], None], asyncio.Future[Any] | Any]] = []

    def call_soon(self, call: Callable[[], None]) -> None:
        self.soon.append(call)

    def call_later(self, delay: float, call: Callable[[], None]) -> Any:
        timer = Timer(delay, call)
        self.timers.append(timer)  # type: ignore[arg-type]
        return timer

    def turn(self) -> None:
        due, self.soon = self.soon, []
        for call in due:
            call()

    def armed(self) -> list[Any]:
        return [timer for timer in self.timers if not timer.cancelled]  # type: ignore[attr-defined]


class Timer:
    def __init__(self, delay: float, call: Callable[[], None]) -> None:
        self.delay = delay
        self.call = call
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Node:
    def __init__(self) -> None:
        self.seen: list[Event] = []
        self.answers: dict[Event, Sequence[Effect]] = {}
        self.deadline: Millis | None = None

    def step(self, event: Event, now: Millis) -> Sequence[Effect]:
        self.seen.append(event)
        return self.answers.get(event, ())

    def next_deadline(self) -> Millis | None:
        return self.deadline


class Bench:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000
        monkeypatch.setattr(driver_module, "now_millis", lambda: self.now)
        self.loop = Loop()
        self.node = Node()
        self.obeyed: list[object] = []
        self.faults = 0
        self.said: list[str] = []
        self.counters = Counters()
        self.driver = Driver(
            self.node,
            self.loop,  # type: ignore[arg-type]
            journal=Journal(self),
            counters=self.counters,
            on_fault=self._fault,
        )
        self.driver.obey_with({Note: self._note, Serve: self.obeyed.append}, self._flush)

    def write(self, level: str, text: str) -> None:
        self.said.append(text)

    def _fault(self) -> None:
        self.faults += 1

    def _flush(self) -> None:
        self.obeyed.append("flush")

    def _note(self, effect: object) -> None:
        """A synchronous result comes back in the same turn."""
        self.obeyed.append(effect)
        self.driver.post(Persisted(PersistToken(1)))


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


def test_events_of_a_turn_are_stepped_in_order_and_flushed_once(bench: Bench) -> None:
    first, second = ShutdownRequested(), Persisted(PersistToken(9))
    bench.driver.post(first)
    bench.driver.post(second)
    assert len(bench.loop.soon) == 1
    bench.loop.turn()
    assert bench.node.seen == [first, second]
    assert bench.obeyed == ["flush"]


def test_news_of_peers_goes_before_the_questions_of_clients(bench: Bench) -> None:
    asked = ShutdownRequested()
    met, lost = PeerConnected(NodeId(2)), PeerLost(NodeId(2), refused=True)
    for event in (asked, met, lost):
        bench.driver.post(event)
    bench.loop.turn()
    assert bench.node.seen == [met, lost, asked]


def test_time_is_told_of_requests_while_a_quota_asks_for_it(bench: Bench) -> None:
    asked = Received(ConnectionId(7), (), WallMillis(0))
    bench.driver.post(asked)
    bench.loop.turn()
    assert bench.node.seen == [asked]
    bench.driver.meter_time(MeterTime(on=True))
    for event in (asked, ShutdownRequested()):
        bench.driver.post(event)
    bench.loop.turn()
    *stepped, spent = bench.node.seen[1:]
    assert stepped == [asked, ShutdownRequested()]
    assert isinstance(spent, TimeSpent)
    assert spent.connection == 7
    assert 0 <= spent.micros < 1_000_000
    bench.driver.meter_time(MeterTime(on=False))
    bench.driver.post(asked)
    bench.loop.turn()
    assert bench.node.seen[-1] == asked


def test_a_result_that_is_there_at_once_is_stepped_in_the_same_turn(bench: Bench) -> None:
    bench.node.answers = {ShutdownRequested(): (Note("info", "x"), Serve())}
    bench.driver.post(ShutdownRequested())
    bench.loop.turn()
    assert bench.node.seen == [ShutdownRequested(), Persisted(PersistToken(1))]
    assert bench.obeyed == [Note("info", "x"), Serve(), "flush"]
    assert bench.loop.soon == []


def test_the_turn_of_a_lone_request_writes_what_there_is_after_each_step(bench: Bench) -> None:
    asked = Received(ConnectionId(7), (Request(0, 9, 1, None, None),), WallMillis(0))
    done = Persisted(PersistToken(1))
    bench.node.answers = {asked: (note := Note("info", "written"),), done: (Serve(),)}
    bench.driver.post(asked)
    bench.loop.turn()
    assert bench.node.seen == [asked, done]
    assert bench.obeyed == [note, "flush", Serve(), "flush"]


def test_the_answers_to_several_requests_are_written_together(bench: Bench) -> None:
    request = Request(0, 9, 1, None, None)
    asked = Received(ConnectionId(7), (request, request), WallMillis(0))
    bench.node.answers = {asked: (note := Note("info", "written"),)}
    bench.driver.post(asked)
    bench.loop.turn()
    assert bench.obeyed == [note, "flush"]


@pytest.mark.plain
def test_the_timer_rings_at_the_deadline(bench: Bench) -> None:
    bench.node.deadline = Millis(1500)
    bench.driver.post(ShutdownRequested())
    bench.loop.turn()
    (timer,) = bench.loop.armed()
    assert timer.delay == 0.5
    bench.now = 1500
    bench.node.deadline = Millis(1500)
    timer.call()
    bench.loop.turn()
    assert isinstance(bench.node.seen[-1], Ticked)


@pytest.mark.plain
def test_an_earlier_deadline_replaces_the_timer_and_a_later_one_does_not(bench: Bench) -> None:
    bench.node.deadline = Millis(1500)
    bench.driver.post(ShutdownRequested())
    bench.loop.turn()
    bench.node.deadline = Millis(1900)
    bench.driver.post(ShutdownRequested())
    bench.loop.turn()
    assert [timer.delay for timer in bench.loop.armed()] == [0.5]
    bench.node.deadline = Millis(1100)
    bench.driver.post(ShutdownRequested())
    bench.loop.turn()
    assert [timer.delay for timer in bench.loop.armed()] == [0.1]


@pytest.mark.plain
def test_a_timer_that_would_soon_ring_in_vain_is_put_off(bench: Bench) -> None:
    bench.node.deadline = Millis(1500)
    for now, delay in ((1000, 0.5), (1449, 0.5), (1450, 0.45)):
        bench.now = now
        bench.driver.post(ShutdownRequested())
        bench.loop.turn()
        assert [timer.delay for timer in bench.loop.armed()] == [delay]
        bench.node.deadline = Millis(1900)


@pytest.mark.plain
def test_a_timer_that_rings_before_the_deadline_is_armed_again(bench: Bench) -> None:
    bench.node.deadline = Millis(1500)
    bench.driver.post(ShutdownRequested())
    bench.loop.turn()
    bench.node.deadline = Millis(1600)
    bench.now = 1500
    bench.loop.timers[0].call()  # type: ignore[attr-defined]
    assert bench.loop.soon == []
    assert bench.loop.timers[-1].delay == 0.1  # type: ignore[attr-defined]


def test_a_fault_is_told_with_what_led_to_it_and_stops_the_node(bench: Bench) -> None:
    def broken(event: Event, now: Millis) -> Sequence[Effect]:
        raise AssertionError("a promise is broken")

    bench.driver.post(Persisted(PersistToken(4)))
    bench.loop.turn()
    bench.node.step = broken  # type: ignore[method-assign]
    bench.driver.post(Persisted(PersistToken(5)))
    bench.loop.turn()
    assert bench.faults == 1
    text = "\n".join(bench.said)
    assert "a promise is broken" in text
    assert "while handling Persisted(token=5," in text
    assert "after Persisted(4,), Persisted(5,)" in text
    bench.driver.post(ShutdownRequested())
    bench.loop.turn()
    assert len(bench.node.seen) == 1


def test_an_effect_that_nobody_obeys_is_a_fault(bench: Bench) -> None:
    bench.driver.obey_with({}, lambda: None)
    bench.node.answers = {ShutdownRequested(): (Serve(),)}
    bench.driver.post(ShutdownRequested())
    bench.loop.turn()
    assert bench.faults == 1
    assert "while obeying Serve()" in "\n".join(bench.said)


def test_a_histogram_counts_each_value_under_its_bound() -> None:
    histogram = Histogram()
    for seconds in (0.00005, 0.0001, 0.0002, 99.0):
        histogram.add(seconds)
    histogram.add(0.002, 10)
    assert histogram.buckets[:4] == [2, 1, 0, 10]
    assert histogram.buckets[-1] == 1
    assert histogram.count == 14
