from __future__ import annotations

import threading

import pytest

from tests.chaos.patience import StoodStill, within


def test_a_call_that_returns_in_time_is_just_called() -> None:
    calls: list[int] = []
    within(20, lambda: calls.append(1))
    assert calls == [1]


def test_what_a_call_raises_is_raised() -> None:
    def refuse() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        within(20, refuse)


def test_a_call_that_does_not_return_is_left_behind() -> None:
    go_on = threading.Event()
    with pytest.raises(StoodStill, match="not returned"):
        within(0.01, lambda: go_on.wait(20))
    go_on.set()
