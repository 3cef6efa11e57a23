from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cotidal.node.rate import Rate, Throttle
from cotidal.values import Millis


def test_a_single_batch_counts_over_one_window_not_over_an_instant() -> None:
    rate = Rate(windows=11, window_ms=1_000)
    rate.record(500, Millis(0))
    assert rate.per_second(Millis(0)) == 500
    assert rate.per_second(Millis(2_000)) == 250


def test_what_is_older_than_all_windows_is_forgotten() -> None:
    rate = Rate(windows=3, window_ms=1_000)
    rate.record(900, Millis(0))
    rate.record(100, Millis(2_500))
    assert rate.per_second(Millis(2_999)) == 1_000 * 1_000 // 2_999
    assert rate.per_second(Millis(3_000)) == 100


def test_a_rate_at_its_bound_does_not_exceed_it() -> None:
    throttle = Throttle(bound=100, windows=11, window_ms=1_000)
    throttle.rate.record(100, Millis(0))
    assert not throttle.is_exceeded(Millis(0))
    throttle.rate.record(1, Millis(0))
    assert throttle.is_exceeded(Millis(0))
    assert throttle.is_exceeded(Millis(1_009))
    assert not throttle.is_exceeded(Millis(1_010))


def test_a_bound_of_nothing_lets_through_again_when_all_is_forgotten() -> None:
    throttle = Throttle(bound=0, windows=4, window_ms=1_000)
    throttle.rate.record(1, Millis(100))
    assert throttle.is_exceeded(Millis(4_099))
    assert throttle.within_at(Millis(200)) == 4_100
    assert not throttle.is_exceeded(Millis(4_100))


@given(
    st.lists(st.tuples(st.integers(0, 3_000), st.integers(1, 10_000)), min_size=1, max_size=20),
    st.integers(0, 5_000),
)
def test_asking_again_when_told_to_ends_within_the_bound(
    recorded: list[tuple[int, int]], bound: int
) -> None:
    throttle = Throttle(bound=bound, windows=5, window_ms=1_000)
    now = 0
    for gap, amount in recorded:
        now += gap
        throttle.rate.record(amount, Millis(now))
    for _ in range(2 * len(recorded) + 1):
        if not throttle.is_exceeded(Millis(now)):
            break
        later = throttle.within_at(Millis(now))
        assert later > now
        assert throttle.is_exceeded(Millis(later - 1)), "it could have gone on earlier"
        now = later
    assert not throttle.is_exceeded(Millis(now))
