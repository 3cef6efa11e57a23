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


def number(element: ElementTree.Element, attribute: str) -> int:
    return int(element.get(attribute) or -1)


def test_squares_stand_where_they_belong_and_missing_ones_stay_white() -> None:
    lines = {
        "b <&> c": {"one": Square("#111111", "1"), "two": Square("#222222", "2", "x")},
        "a": {"two": Square(shade(1), '3 "four"')},
    }
    squares, texts = drawn(heat_map(lines, ["one", "two"], title='T "&"', note="N"))
    assert squares == [("#b91c1c", '3 "four"'), ("#111111", "1"), ("#222222", "2")]
    assert texts == ['T "&"', "one", "two", "a", "b <&> c", "x", "N"]


def test_a_square_stands_under_its_heading_and_beside_its_name() -> None:
    columns, names = ["one", "two", "three"], ["a", "b"]
    lines = {
        name: {column: Square("#123456", f"{name} {column}", "label") for column in columns}
        for name in names
    }
    root = ElementTree.fromstring(heat_map(lines, columns, title="T", note="N"))
    height = number(root, "height")
    texts = {each.text: each for each in root.iter(f"{SVG}text")}
    labels = iter([each for each in root.iter(f"{SVG}text") if each.text == "label"])
    squares = [each for each in root.iter(f"{SVG}rect") if each.find(f"{SVG}title") is not None]
    assert len(squares) == len(columns) * len(names)
    for square in squares:
        name, column = str(square.findtext(f"{SVG}title")).split()
        left, top = number(square, "x"), number(square, "y")
        right, bottom = left + number(square, "width"), top + number(square, "height")
        assert left == number(texts[column], "x")
        assert number(texts[column], "y") < top < number(texts[name], "y") < bottom < height
        label = next(labels)
        assert left < number(label, "x") < right
        assert top < number(label, "y") < bottom
        after = columns[columns.index(column) + 1 :]
        assert all(right <= number(texts[each], "x") for each in after)
    assert number(texts["a"], "y") < number(texts["b"], "y") < number(texts["N"], "y") < height


def test_half_is_a_shade_in_the_middle() -> None:
    assert [shade(part) for part in (-1, 0, 0.5, 1, 2)] == [
        "#ffffff", "#ffffff", "#dc8e8e", "#b91c1c", "#b91c1c",
    ]  # fmt: skip


def test_columns_that_are_many_have_fewer_headings_and_no_less_than_a_visible_width() -> None:
    columns = [f"{number:04}" for number in range(500)]
    text = heat_map({"a": {"0499": Square("#000000", "")}}, columns, title="T", note="")
    _, texts = drawn(text)
    assert 50 < len(texts) < 150
    width = int(ElementTree.fromstring(text).get("width") or 0)
    assert width > 500 * SIDE_MIN
