from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cotidal.limits import THROTTLE_MS_MAX
from cotidal.node.metering import Meter
from cotidal.values import Millis


def test_what_is_in_the_bucket_is_had_at_once_and_the_rest_is_owed() -> None:
    meter = Meter(full_ms=10_000, bound=1_000, now=Millis(0))
    assert meter.full == 10_000
    assert meter.take(10_000, Millis(0)) == 0
    assert meter.take(1, Millis(0)) == 1
    assert meter.take(999, Millis(0)) == 1_000
    assert meter.wait(Millis(600)) == 400
    assert meter.wait(Millis(1_000)) == 0


def test_a_pause_fills_it_and_no_more() -> None:
    meter = Meter(full_ms=2_000, bound=10, now=Millis(0))
    meter.take(20, Millis(0))
    assert not meter.is_full(Millis(1_999))
    assert meter.is_full(Millis(60_000))
    assert meter.take(21, Millis(60_000)) == 100


def test_another_bound_keeps_what_is_owed() -> None:
    meter = Meter(full_ms=1_000, bound=100, now=Millis(0))
    assert meter.take(200, Millis(0)) == 1_000
    meter.rebound(10, Millis(0))
    assert meter.wait(Millis(0)) == 10_000
    meter.rebound(1_000, Millis(10_000))
    assert meter.take(1_001, Millis(20_000)) == 1


def test_nobody_waits_for_ever() -> None:
    assert Meter(full_ms=1, bound=1, now=Millis(0)).take(10**9, Millis(0)) == THROTTLE_MS_MAX


@given(
    st.integers(1, 10**6),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 5_000)), max_size=30),
)
def test_whoever_waits_as_told_gets_the_bound_and_one_bucket(
    bound: int, asks: list[tuple[int, int]]
) -> None:
    meter = Meter(full_ms=2_000, bound=bound, now=Millis(0))
    now, taken = 0, 0
    for amount, pause in asks:
        assert taken * 1_000 <= bound * (now + 2_000)
        taken += amount
        wait = meter.take(amount, Millis(now))
        now += wait + pause
        if wait == THROTTLE_MS_MAX:
            return
