"""Clocks that are wrong in their own way."""

from __future__ import annotations

import pytest

from cotidal.sim.clock import WALL_START, Clock
from cotidal.values import Millis


@pytest.mark.parametrize("drift_ppm", [-20_000, 0, 333, 20_000])
def test_the_moment_of_a_deadline_is_the_first_at_which_it_has_come(drift_ppm: int) -> None:
    clock = Clock(boot_us=123_456_789, drift_ppm=drift_ppm)
    for ahead in (1, 2, 500, 12_345):
        deadline = Millis(clock.monotonic(1_000_000) + ahead)
        moment = clock.moment_of(deadline)
        assert clock.monotonic(moment) >= deadline
        assert clock.monotonic(moment - 1) < deadline


def test_a_fast_clock_gains() -> None:
    second = 1_000_000
    fast, right = Clock(drift_ppm=10_000), Clock()
    assert fast.monotonic(100 * second) - right.monotonic(100 * second) == 1_000


def test_the_wall_clock_is_off_by_its_skew() -> None:
    assert Clock(wall_skew_ms=-7).wall(5_000_000) == WALL_START + 5_000 - 7
