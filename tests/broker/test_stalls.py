"""A long call that waited for the disk is told from one that lost its core."""

from __future__ import annotations

import itertools
import subprocess

import pytest

from cotidal.broker import stalls
from cotidal.broker.stalls import Readings, Stopwatch

ALWAYS = -1.0
"""Milliseconds that every call takes longer than."""


def test_a_call_that_computes_has_not_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stalls, "times_waited", lambda: 7)
    assert not Stopwatch().has_waited(ALWAYS)


def test_a_long_call_that_gave_its_core_away_has_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stalls, "times_waited", itertools.count().__next__)
    assert Stopwatch().has_waited(ALWAYS)
    assert not Stopwatch().has_waited(least_ms=60_000)


@pytest.mark.skipif(not stalls.IS_KNOWN, reason="the system does not count")
def test_the_kernel_counts_the_waits_of_this_thread() -> None:
    before = stalls.times_waited()
    subprocess.run(["true"], check=True)  # somebody to wait for
    assert stalls.times_waited() > before


def test_a_read_has_met_the_disk_when_blocks_were_read_since_the_last_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    blocks = iter([100, 100, 108, 108])
    monkeypatch.setattr(stalls, "blocks_read", lambda: next(blocks))
    readings = Readings()
    assert not readings.has_met_the_disk(0.5, least_ms=4)
    assert not readings.has_met_the_disk(0.001, least_ms=4)  # quick: nothing is asked
    assert readings.has_met_the_disk(0.5, least_ms=4)
    assert not readings.has_met_the_disk(0.5, least_ms=4)


def test_where_the_kernel_counts_nothing_every_long_call_has_waited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stalls, "IS_KNOWN", False)
    assert Stopwatch().has_waited(ALWAYS)
    assert Readings().has_met_the_disk(0.5, least_ms=4)
    assert not Readings().has_met_the_disk(0.001, least_ms=4)
