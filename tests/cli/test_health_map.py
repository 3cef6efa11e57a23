"""The picture of a cluster's health."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cotidal.cli.health_map import AILMENTS, WINDOWS_DRAWN, ailment, health_map

types = pytest.importorskip("pyspark.sql", reason="Spark is not here: make test installs it")


def row(number: int = 0, partition: int = 0, **fields: int) -> Any:
    start = datetime(2026, 11, 15, 12, tzinfo=UTC) + timedelta(seconds=10 * number)
    window = types.Row(start=start, end=start + timedelta(seconds=10))
    measures = dict.fromkeys((*AILMENTS, "unclean"), 0) | fields
    return types.Row(window=window, topic="orders", partition=partition, **measures)


def test_the_worst_gives_a_window_its_colour() -> None:
    colours = [
        ailment(row(**fields))[0]
        for fields in (
            {},
            {"lag_records": 3},
            {"lag_records": 3, "under_replicated_s": 1},
            {"under_replicated_s": 1, "under_min_isr_s": 1},
            {"records_cut": 9},
        )
    ]
    assert len(set(colours)) == 4
    assert colours[-1] == colours[-2]
    assert "lag_records 3" in ailment(row(lag_records=3))[1]


def test_only_the_newest_windows_are_drawn() -> None:
    rows = [row(number, partition=number % 2) for number in range(WINDOWS_DRAWN + 30)]
    text = health_map(rows)
    assert text.count("<title>") == WINDOWS_DRAWN
    assert "orders-0" in text
    assert "orders-1" in text
