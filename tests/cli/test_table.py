from __future__ import annotations

import sys

import pytest

from cotidal.cli.table import bytes_text, has_colour, table_lines


def test_numbers_stand_right_words_left_and_nothing_is_a_dash() -> None:
    assert table_lines(("NAME", "N"), [("a", 5), ("long", 1000), ("", None)]) == [
        "NAME     N",
        "a        5",
        "long  1000",
        "-        -",
    ]


def test_no_rows_make_no_table() -> None:
    assert table_lines(("A",), []) == []


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1024**2 - 1, "1.0 MiB"),
        (3 * 1024**4, "3.0 TiB"),
        (5000 * 1024**4, "5000.0 TiB"),
    ],
)
def test_sizes_are_told_in_units_that_fit(size: int, text: str) -> None:
    assert bytes_text(size) == text


@pytest.mark.parametrize(
    ("variables", "colour"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colour_is_for_terminals_that_want_it(
    variables: dict[str, str], colour: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert has_colour(sys.stdout) is colour
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    assert not has_colour(sys.stdout)
