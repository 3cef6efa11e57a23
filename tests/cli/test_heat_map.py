"""Tables of coloured squares as SVG."""

from __future__ import annotations

from xml.etree import ElementTree

from cotidal.cli.heat_map import SIDE_MIN, Square, heat_map, shade

SVG = "{http://www.w3.org/2000/svg}"


def drawn(text: str) -> tuple[list[tuple[str | None, str | None]], list[str | None]]:
    """Squares as colour and words, and all texts."""
    root = ElementTree.fromstring(text)
    squares = [
        (rect.get("fill"), title.text)
        for rect in root.iter(f"{SVG}rect")
        if (title := rect.find(f"{SVG}title")) is not None
    ]
    return squares, [each.text for each in root.iter(f"{SVG}text")]


def test_squares_stand_where_they_belong_and_missing_ones_stay_white() -> None:
    lines = {
        "b <&> c": {"one": Square("#111111", "1"), "two": Square("#222222", "2", "x")},
        "a": {"two": Square(shade(1), '3 "four"')},
    }
    squares, texts = drawn(heat_map(lines, ["one", "two"], title='T "&"', note="N"))
    assert squares == [("#b91c1c", '3 "four"'), ("#111111", "1"), ("#222222", "2")]
    assert texts == ['T "&"', "one", "two", "a", "b <&> c", "x", "N"]


def test_columns_that_are_many_have_fewer_headings_and_no_less_than_a_visible_width() -> None:
    columns = [f"{number:04}" for number in range(500)]
    text = heat_map({"a": {"0499": Square("#000000", "")}}, columns, title="T", note="")
    _, texts = drawn(text)
    assert 50 < len(texts) < 150
    width = int(ElementTree.fromstring(text).get("width") or 0)
    assert width > 500 * SIDE_MIN
