"""The picture is well formed, and says what the rows say."""

from __future__ import annotations

from xml.etree import ElementTree

from cotidal.sim.lab.chart import chart
from cotidal.sim.lab.comparison import Row
from cotidal.sim.lab.configuration import Configuration
from cotidal.sim.lab.measures import Measures


def row(name: str, acks: int, lost: int) -> Row:
    silent = -1 if acks == 0 else 6_000
    runs = tuple(Measures(s, "", 100, lost * (s == 1), 0, 24_000, silent, 1, 2) for s in (1, 2))
    return Row(Configuration(name, acks=acks), runs, ())


def test_every_row_has_its_name_and_its_numbers() -> None:
    rows = [row("acks=0 & more", 0, 5), row("acks=all", -1, 0)]
    found = ElementTree.fromstring(chart(rows, title="A <title>", note="a note"))
    texts = ["".join(each.itertext()) for each in found.iter("{http://www.w3.org/2000/svg}text")]
    assert {"A <title>", "acks=0 & more", "acks=all", "nobody is told", "a note"} <= set(texts)
    assert texts.count("50.0") == 1
    assert texts.count("25.0") == 1
    assert texts.count("0.0") == 1
