"""The lab's rows as a picture: what was lost, and what it cost. Pure; an SVG written by hand.

One line for each configuration: on the left the runs that lost records, on the right the time in
which nothing was acknowledged. A bar is the estimate, the whisker its interval of 95 %.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final
from xml.sax.saxutils import escape

from cotidal.sim.lab.comparison import Row
from cotidal.sim.lab.intervals import Estimate

WIDTH: Final = 980
NAMES: Final = 290
GAP: Final = 40
LINE: Final = 34
BAR: Final = 14
TOP: Final = 96
BOTTOM: Final = 44
PANEL: Final = (WIDTH - NAMES - 3 * GAP) // 2
TICKS: Final = (0, 25, 50, 75, 100)
LOSES, KEEPS, SILENT = "#c2410c", "#0f766e", "#475569"

_STYLE: Final = """
  text { font-family: system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1e293b; }
  .title { font-size: 17px; font-weight: 600; }
  .head { font-size: 13px; font-weight: 600; }
  .name, .value { font-size: 13px; }
  .small { font-size: 11px; fill: #64748b; }
  .value { font-variant-numeric: tabular-nums; }
"""


def chart(rows: Sequence[Row], *, title: str, note: str) -> str:
    height = TOP + LINE * len(rows) + BOTTOM
    left, right = NAMES + GAP // 2, NAMES + GAP // 2 + PANEL + GAP * 3 // 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        f' width="{WIDTH}" height="{height}" role="img" aria-label="{escape(title)}">',
        f"<style>{_STYLE}</style>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text class="title" x="20" y="32">{escape(title)}</text>',
        *_panel(left, "runs that lost acknowledged records, %", len(rows)),
        *_panel(right, "time without acknowledgements, %", len(rows)),
    ]
    for number, row in enumerate(rows):
        y = TOP + LINE * number
        name = escape(row.configuration.name)
        parts.append(f'<text class="name" x="{NAMES}" y="{y + 18}" text-anchor="end">{name}</text>')
        parts += _bar(left, y, row.losing_runs, LOSES if row.lost else KEEPS)
        parts += _bar(right, y, row.unavailable_ppm, SILENT)
    parts.append(f'<text class="small" x="20" y="{height - 16}">{escape(note)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _panel(x: int, heading: str, rows: int) -> Iterable[str]:
    bottom = TOP + LINE * rows
    yield f'<text class="head" x="{x}" y="64">{escape(heading)}</text>'
    for tick in TICKS:
        at = x + PANEL * tick // 100
        yield f'<line x1="{at}" y1="{TOP - 8}" x2="{at}" y2="{bottom}" stroke="#e2e8f0"/>'
        yield f'<text class="small" x="{at}" y="{TOP - 14}" text-anchor="middle">{tick}</text>'


def _bar(x: int, y: int, estimate: Estimate | None, colour: str) -> Iterable[str]:
    middle = y + LINE // 2 - 3
    if estimate is None:
        yield f'<text class="small" x="{x + 4}" y="{middle + 4}">nobody is told</text>'
        return
    value, low, high = (PANEL * part // 1_000_000 for part in estimate)
    if value:
        yield (
            f'<rect x="{x}" y="{middle - BAR // 2}" width="{value}" height="{BAR}" rx="2"'
            f' fill="{colour}" fill-opacity="0.85"/>'
        )
    else:
        yield f'<circle cx="{x}" cy="{middle}" r="4" fill="{colour}"/>'
    yield f'<line x1="{x + low}" y1="{middle}" x2="{x + high}" y2="{middle}" stroke="#0f172a"/>'
    for end in (low, high):
        yield (
            f'<line x1="{x + end}" y1="{middle - 4}" x2="{x + end}" y2="{middle + 4}"'
            ' stroke="#0f172a"/>'
        )
    tenths = (estimate.value + 500) // 1_000
    told = f"{tenths // 10}.{tenths % 10}"
    yield f'<text class="value" x="{x + max(value, high) + 8}" y="{middle + 4}">{told}</text>'
