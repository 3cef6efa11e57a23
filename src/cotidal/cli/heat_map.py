"""A table of coloured squares as a picture. Pure; an SVG written by hand.

Whoever draws says the colour of each square and the words that appear over it; ``shade`` makes
colours of numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from xml.sax.saxutils import escape, quoteattr

NAME_WIDTH: Final = 300
SIDE_MIN, SIDE_MAX = 6, 90
WIDTH: Final = 980
LINE: Final = 26
TOP: Final = 92
BOTTOM: Final = 44
LETTER: Final = 7
"""About the width of one, in the size of the headings."""

_STYLE: Final = """
  text { font-family: system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1e293b; }
  .title { font-size: 17px; font-weight: 600; }
  .name { font-size: 13px; }
  .small { font-size: 11px; fill: #64748b; }
"""


class Square(NamedTuple):
    colour: str
    told: str
    """Shown over it."""
    label: str = ""
    """Written into it."""


def shade(part: float) -> str:
    """From white, for 0, to a dark red, for 1.

    >>> shade(0), shade(1), shade(2)
    ('#ffffff', '#b91c1c', '#b91c1c')
    """
    at = min(1.0, max(0.0, part))
    return "#" + "".join(f"{round(255 + (end - 255) * at):02x}" for end in (0xB9, 0x1C, 0x1C))


def heat_map(
    lines: Mapping[str, Mapping[str, Square]], columns: Sequence[str], *, title: str, note: str
) -> str:
    """``lines``: by name, each with its squares by column; a square that is missing stays white."""
    side = max(SIDE_MIN, min(SIDE_MAX, (WIDTH - NAME_WIDTH - 20) // max(1, len(columns))))
    width = max(WIDTH, NAME_WIDTH + side * len(columns) + 20)
    height = TOP + LINE * len(lines) + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
        f' height="{height}" role="img" aria-label={quoteattr(title)}>',
        f"<style>{_STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text class="title" x="20" y="32">{escape(title)}</text>',
        *_headings(columns, side),
    ]
    for number, name in enumerate(sorted(lines)):
        y = TOP + LINE * number
        parts.append(
            f'<text class="name" x="{NAME_WIDTH - 10}" y="{y + 17}" text-anchor="end">'
            f"{escape(name)}</text>"
        )
        for place, column in enumerate(columns):
            square = lines[name].get(column)
            if square is not None:
                parts += _square(square, NAME_WIDTH + side * place, y, side)
    parts.append(f'<text class="small" x="20" y="{height - 16}">{escape(note)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _headings(columns: Sequence[str], side: int) -> list[str]:
    """As many as there is room for."""
    longest = max((len(column) for column in columns), default=1)
    every = max(1, -(-(longest + 1) * LETTER // side))
    return [
        f'<text class="small" x="{NAME_WIDTH + side * place}" y="{TOP - 10}">{escape(name)}</text>'
        for place, name in enumerate(columns)
        if place % every == 0
    ]


def _square(square: Square, x: int, y: int, side: int) -> list[str]:
    box = (
        f'<rect x="{x}" y="{y + 1}" width="{side - 1}" height="{LINE - 2}" fill="{square.colour}"'
        f' stroke="#e2e8f0"><title>{escape(square.told)}</title></rect>'
    )
    if not square.label:
        return [box]
    middle = x + side // 2
    label = f'<text class="small" x="{middle}" y="{y + 17}" text-anchor="middle">'
    return [box, f"{label}{escape(square.label)}</text>"]
