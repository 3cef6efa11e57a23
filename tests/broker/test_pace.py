"""How fast work goes that can wait."""

from __future__ import annotations

import os
import threading
import time

import pytest

from cotidal.broker.pace import REST_RATIO, Pace, Stopped


def test_pace_rests_and_ends_when_it_is_told() -> None:
    pace = Pace(1e12)
    pace.breathe(1)
    begun, used = time.perf_counter(), time.thread_time()
    while time.thread_time() - used < 0.02:
        pace.breathe(1)
    assert time.perf_counter() - begun > 0.02 * REST_RATIO
    pace.stop()
    with pytest.raises(Stopped):
        pace.breathe(1)


def test_pace_keeps_to_a_speed_that_may_change_and_saves_nothing_up() -> None:
    pace = Pace(1_000_000)
    time.sleep(0.05)  # nothing was done in it, and nothing is saved for later but one piece
    begun = time.perf_counter()
    for _ in range(6):
        pace.breathe(20_000)
    assert time.perf_counter() - begun > 0.09
    pace.bytes_per_second = 1e308
    begun = time.perf_counter()
    pace.breathe(1 << 40)
    assert time.perf_counter() - begun < 5


def test_a_speed_is_raised_for_one_who_sleeps() -> None:
    pace = Pace(1)
    sleeper = threading.Thread(target=pace.breathe, args=(1 << 40,))
    sleeper.start()
    pace.bytes_per_second = 1e308
    sleeper.join(20)
    assert not sleeper.is_alive()


def test_a_pace_with_no_loop_beside_it_offers_its_core_and_does_not_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pace, naps, offers = Pace(1e12, rests=False), list[float](), list[None]()
    monkeypatch.setattr(time, "sleep", naps.append)
    monkeypatch.setattr(os, "sched_yield", lambda: offers.append(None))
    used = time.thread_time()
    breaths = 0
    while time.thread_time() - used < 0.01:
        pace.breathe(1)
        breaths += 1
    assert naps == []
    assert len(offers) == breaths
