"""Tables for people, JSON for programs, and quantities that can be read.

Columns are two spaces apart and aligned: numbers to the right, words to the left. Bold and colour
are for terminals only, and never where NO_COLOR is set (https://no-color.org).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TextIO

Cell = str | int | None
"""None is printed as a dash: known to be absent."""

ABSENT = "-"


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    """Print aligned columns under a heading; nothing at all when there are no rows."""
    for line in table_lines(columns, rows, heading=bold):
        print(line)


def table_lines(
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    heading: object = None,
) -> list[str]:
    if not rows:
        return []
    texts = [[cell_text(cell) for cell in row] for row in rows]
    widths = [max(len(title), *(len(row[at]) for row in texts)) for at, title in enumerate(columns)]
    numeric = [
        {type(row[at]) for row in rows} - {type(None)} == {int} for at in range(len(columns))
    ]

    def line(cells: Sequence[str]) -> str:
        aligned = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, numeric, strict=True)
        ]
        return "  ".join(aligned).rstrip()

    first = line(columns)
    return [heading(first) if callable(heading) else first, *(line(row) for row in texts)]


def cell_text(cell: Cell) -> str:
    match cell:
        case None:
            return ABSENT
        case int():
            return str(cell)
        case str():
            return cell if cell else ABSENT


def print_json(value: object) -> None:
    import json  # 4 ms that only --json pays

    print(json.dumps(value, indent=2, ensure_ascii=False))


def bytes_text(size: int) -> str:
    """A size that a person can compare.

    >>> bytes_text(900), bytes_text(1536), bytes_text(5 * 1024 ** 3)
    ('900 B', '1.5 KiB', '5.0 GiB')
    """
    if size < 1024:
        return f"{size} B"
    amount = float(size)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        amount /= 1024
        if amount < 1023.95 or unit == "TiB":
            break
    return f"{amount:.1f} {unit}"


def list_text(values: Sequence[int]) -> str:
    """Node ids as Kafka's tools write them: ``1,2,3``."""
    return ",".join(map(str, values))


def has_colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if has_colour(sys.stdout) else text


def red(text: str) -> str:
    return f"\x1b[31m{text}\x1b[0m" if has_colour(sys.stdout) else text
