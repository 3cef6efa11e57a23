from __future__ import annotations

import io
import sys
import time

import pytest

from cotidal.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    return clock


def test_what_takes_less_than_a_second_says_nothing(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Progress("records") as progress:
        clock.now += 0.9
        progress.advance(10)
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]


def test_a_long_task_tells_how_far_it_is_and_wipes_the_line(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Progress("records") as progress:
        clock.now += 2
        progress.advance(3000)
        progress.advance(1)  # too soon to be told again
        said = sys.stderr.getvalue()  # type: ignore[attr-defined]
    assert said == "\r\x1b[K3,000 records, 1,500/s"
    assert sys.stderr.getvalue() == said + "\r\x1b[K"  # type: ignore[attr-defined]


def test_nothing_is_said_where_there_is_no_terminal(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Progress("records") as progress:
        clock.now += 5
        progress.advance(3000)
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]
