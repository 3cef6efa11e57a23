"""The picture of a cluster's health."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree

import pytest

from cotidal.cli.health_map import AILMENTS, WINDOWS_DRAWN, ailment, health_map

types = pytest.importorskip("pyspark.sql", reason="Spark is not here: make test installs it")

SVG = "{http://www.w3.org/2000/svg}"


def row(number: int = 0, partition: int = 0, **fields: int) -> Any:
    start = datetime(2026, 11, 15, 12, tzinfo=UTC) + timedelta(seconds=10 * number)
    window = types.Row(start=start, end=start + timedelta(seconds=10))
    measures = dict.fromkeys((*AILMENTS, "unclean"), 0) | fields
    return types.Row(window=window, topic="orders", partition=partition, **measures)


GREEN, YELLOW, ORANGE, RED = "#15803d", "#facc15", "#ea580c", "#b91c1c"


@pytest.mark.parametrize(
    ("fields", "colour"),
    [
        ({}, GREEN),
        ({"lag_records": 3}, YELLOW),
        ({"lag_records": 3, "under_replicated_s": 1}, ORANGE),
        ({"left": 1}, ORANGE),
        ({"under_replicated_s": 1, "under_min_isr_s": 1}, RED),
        ({"records_cut": 9}, RED),
        ({"unclean": 1, "left": 1}, RED),
    ],
)
def test_the_worst_gives_a_window_its_colour(fields: dict[str, int], colour: str) -> None:
    assert ailment(row(**fields))[0] == colour


def test_a_window_says_what_ailed_it() -> None:
    found = row(**{name: number for number, name in enumerate(AILMENTS, 1)})
    assert ailment(found)[1] == (
        "lag_records 1, lag_ms 2, under_replicated_s 3, under_min_isr_s 4, left 5, records_cut 6"
    )


def test_a_partition_is_a_line_and_a_window_a_column() -> None:
    text = health_map([row(1, partition=1, left=1), row(0, partition=0)])
    root = ElementTree.fromstring(text)
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert texts[1:5] == ["12:00:00", "12:00:10", "orders-0", "orders-1"]
    squares = [each for each in root.iter(f"{SVG}rect") if each.find(f"{SVG}title") is not None]
    assert [each.get("fill") for each in squares] == [GREEN, ORANGE]
    (first, second) = (int(each.get("x") or 0) for each in squares)
    assert first < second


def test_only_the_newest_windows_are_drawn() -> None:
    rows = [row(number, partition=number % 2) for number in range(WINDOWS_DRAWN + 30)]
    text = health_map(rows)
    assert text.count("<title>") == WINDOWS_DRAWN
    oldest = rows[30].window.start
    assert f">{oldest:%H:%M:%S}</text>" in text, "the first that is drawn has a heading"
    assert ">12:00:00</text>" not in text
    assert "orders-0" in text
    assert "orders-1" in text
