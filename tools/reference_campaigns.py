"""The campaigns that were written down, plan by plan, for docs/simulation.md.

docs/campaigns.jsonl is data: `cotidal sim tally --gather` adds to it what was run, and nothing
checks that a run gives it again.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

from cotidal.sim.totals import Part, Total, add_up, parse_line
from reference_table import table

FILE: Final = Path(__file__).resolve().parent.parent / "docs" / "campaigns.jsonl"
HEAD: Final = ("plan", "seeds", "runs", "steps", "protocol events", "seeds that failed")


def campaigns(_: tuple[str, ...]) -> str:
    totals = add_up(_kept())
    together = ("all", *(f"{sum(column):,}" for column in zip(*map(_counts, totals), strict=True)))
    return table(HEAD, [*((each.plan, *_told(each)) for each in totals), (*together,)])


def corners(_: tuple[str, ...]) -> str:
    """In how many runs of each plan each of them was met; rare ones first."""
    met: dict[str, Counter[str]] = {}
    for part in _kept():
        met.setdefault(part.plan, Counter()).update(part.met)
    plans = sorted(met)
    every = sum(met.values(), Counter[str]())
    rare_first = sorted(every, key=lambda corner: (every[corner], corner))
    rows = [(corner, *(f"{met[plan][corner]:,}" for plan in plans)) for corner in rare_first]
    return table(("corner", *plans), rows)


def _kept() -> list[Part]:
    return [parse_line(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def _counts(total: Total) -> tuple[int, ...]:
    return total.seeds, total.runs, total.steps, total.events, len(total.failed)


def _told(total: Total) -> tuple[str, ...]:
    return tuple(f"{count:,}" for count in _counts(total))
