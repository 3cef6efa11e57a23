"""The campaigns that were written down, plan by plan, for docs/simulation.md.

docs/campaigns.jsonl is data: `cotidal sim tally --gather` adds to it what was run, and nothing
checks that a run gives it again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cotidal.sim.totals import Total, add_up, parse_line
from reference_table import table

FILE: Final = Path(__file__).resolve().parent.parent / "docs" / "campaigns.jsonl"
HEAD: Final = ("plan", "seeds", "runs", "steps", "protocol events", "seeds that failed")


def campaigns(_: tuple[str, ...]) -> str:
    parts = [parse_line(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
    totals = add_up(parts)
    together = ("all", *(f"{sum(column):,}" for column in zip(*map(_counts, totals), strict=True)))
    return table(HEAD, [*((each.plan, *_told(each)) for each in totals), (*together,)])


def _counts(total: Total) -> tuple[int, ...]:
    return total.seeds, total.runs, total.steps, total.events, len(total.failed)


def _told(total: Total) -> tuple[str, ...]:
    return tuple(f"{count:,}" for count in _counts(total))
