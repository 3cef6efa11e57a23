"""Rows of the lab as cells for people and as flat objects for programs. Pure.

An estimate is told with its interval of 95 %: ``12.5 % [7.9..19.3]``.
"""

from __future__ import annotations

from typing import Final

from cotidal.sim.lab.comparison import Row
from cotidal.sim.lab.intervals import Estimate
from cotidal.sim.plan import Plan

COLUMNS: Final = (
    "configuration",
    "runs that lost records",
    "lost of a million",
    "doubled",
    "unavailable",
    "ack p50 ms",
    "ack p99 ms",
    "theory",
    "seen",
)

Flat = dict[str, str | int | bool | None]


def cells(row: Row) -> tuple[str, ...]:
    p50, p99, unavailable = row.latency_us(50), row.latency_us(99), row.unavailable_ppm
    losing = sum(run.lost > 0 for run in row.runs)
    return (
        row.configuration.name,
        f"{losing} of {len(row.runs)}, {_percent(row.losing_runs)}",
        _counted(row.lost_ppm),
        str(row.doubled),
        "" if unavailable is None else _percent(unavailable),
        "" if p50 is None else _millis(p50),
        "" if p99 is None else _millis(p99),
        "keeps all" if row.configuration.keeps else "may lose",
        verdict(row),
    )


def verdict(row: Row) -> str:
    if row.broken:
        return f"{len(row.broken)} BROKEN"
    if row.lost == 0:
        return "kept all"
    return "LOST" if row.configuration.keeps else "lost"


def contradicts(row: Row, faults: Plan) -> str | None:
    """Why the row is not what theory says, in a sentence; None if it is.

    Theory speaks of plans that stay within what is promised, one cut until all is whole.
    """
    if row.broken:
        run = row.broken[0]
        return f"{row.configuration.name}: seed {run.seed} broke {run.broken}"
    if row.configuration.keeps and row.lost and not faults.exempt:
        run = next(each for each in row.runs if each.lost)
        return f"{row.configuration.name}: seed {run.seed} lost {run.lost} acknowledged records"
    return None


def flat(row: Row, faults: Plan) -> Flat:
    """One object, one level: a line of JSON, a row of a data frame."""
    found: Flat = {"plan": faults.name, **row.configuration._asdict()}
    found["keeps"] = row.configuration.keeps
    found |= {
        "runs": len(row.runs),
        "runs_broken": len(row.broken),
        "runs_losing": sum(run.lost > 0 for run in row.runs),
        "believed": row.believed,
        "lost": row.lost,
        "doubled": row.doubled,
    }
    estimates = {
        "runs_losing_ppm": row.losing_runs,
        "lost_ppm": row.lost_ppm,
        "unavailable_ppm": row.unavailable_ppm,
        "ack_p50_us": row.latency_us(50),
        "ack_p99_us": row.latency_us(99),
    }
    for name, estimate in estimates.items():
        found[name] = None if estimate is None else estimate.value
        found[f"{name}_low"] = None if estimate is None else estimate.low
        found[f"{name}_high"] = None if estimate is None else estimate.high
    return found


def flat_runs(row: Row, faults: Plan) -> list[Flat]:
    """Every run on its own, for who wants to compute further."""
    common: Flat = {"plan": faults.name, "configuration": row.configuration.name}
    return [common | run._asdict() for run in (*row.runs, *row.broken)]


def _percent(estimate: Estimate) -> str:
    value, low, high = (_tenths(part, 10_000) for part in estimate)
    return f"{value} % [{low}..{high}]"


def _millis(estimate: Estimate) -> str:
    value, low, high = (_tenths(part, 1_000) for part in estimate)
    return f"{value} [{low}..{high}]"


def _counted(estimate: Estimate) -> str:
    return f"{estimate.value:,} [{estimate.low:,}..{estimate.high:,}]"


def _tenths(value: int, unit: int) -> str:
    tenths = (value * 10 + unit // 2) // unit
    return f"{tenths // 10}.{tenths % 10}"
