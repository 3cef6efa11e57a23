"""The table that a run ends with: for people as aligned Markdown, for programs as JSON. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.row import Better, Row, Standing


def as_text(standings: Sequence[Standing], ours: str, theirs: str) -> str:
    """Markdown, aligned so that it also reads in a terminal."""
    head = (
        "what",
        "unit",
        theirs,
        ours,
        "ratio",
        "goal",
        "",
        f"client+server cores {theirs}",
        ours,
    )
    lines = [head, *(_cells(standing, ours, theirs) for standing in standings)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    texts = [_line(line, widths) for line in lines]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join((texts[0], rule, *texts[1:]))


def as_json(standings: Sequence[Standing], ours: str, theirs: str) -> list[dict[str, Any]]:
    return [
        {
            "key": standing.row.key,
            "title": standing.row.title,
            "unit": standing.row.unit,
            "better": standing.row.better.value,
            "goal": standing.row.goal,
            "most": standing.row.most,
            "ratio": standing.ratio(ours, theirs),
            "met": standing.is_met(ours, theirs),
            "contestants": {
                name: {
                    "median": standing.median(name),
                    "samples": [sample._asdict() for sample in samples],
                }
                for name, samples in standing.samples.items()
            },
        }
        for standing in standings
    ]


def _cells(standing: Standing, ours: str, theirs: str) -> tuple[str, ...]:
    row = standing.row
    ratio = standing.ratio(ours, theirs)
    met = {True: "met", False: "missed", None: ""}[standing.is_met(ours, theirs)]
    return (
        row.title,
        row.unit,
        _number(standing.median(theirs)),
        _number(standing.median(ours)),
        "-" if ratio is None else f"{ratio:.3g}x",
        _goal(row),
        met,
        _cores(standing, theirs),
        _cores(standing, ours),
    )


def _goal(row: Row) -> str:
    if row.most is not None:
        return f"<= {row.most:g} {row.unit}"
    sign = ">=" if row.better is Better.HIGHER else "<="
    return "" if row.goal is None else f"{sign} {row.goal:g}x"


def _number(value: float | None) -> str:
    """Three digits that mean something, and no more.

    >>> _number(1234567.8), _number(98.76), _number(0.1234), _number(None)
    ('1,234,568', '98.8', '0.12', '-')
    """
    if value is None:
        return "-"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _cores(standing: Standing, contestant: str) -> str:
    cores = standing.cores(contestant)
    return "" if cores is None else f"{cores[0]:.2f}+{cores[1]:.2f}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        cell.ljust(width) if column < 2 else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "| " + " | ".join(padded) + " |"
