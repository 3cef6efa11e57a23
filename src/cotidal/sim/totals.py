"""What campaigns have run, added up over days: a line for each part of a campaign. Pure.

A line is a JSON object. It says which seeds of which plan ran, of which commit and build, how many
steps they took and what they met. Lines are only ever appended, so files of several machines can
be put together; a seed that ran twice counts as one seed, and its steps twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from cotidal.sim.probes import missed
from cotidal.sim.run import Outcome


class Part(NamedTuple):
    """Some seeds of one plan."""

    plan: str
    commit: str
    build: str
    """plain or compiled."""
    seeds: tuple[tuple[int, int], ...]
    """Ranges, first and last: seeds end in no particular order."""
    steps: int
    events: int
    """Of the protocol; 0 where nobody counted them yet."""
    seconds: float
    """How long they took, however many processes there were."""
    failed: tuple[int, ...]
    met: dict[str, int]
    """Situation -> in how many runs."""

    @property
    def runs(self) -> int:
        return sum(last - first + 1 for first, last in self.seeds)


def part_of(outcomes: Sequence[Outcome], *, commit: str, build: str, seconds: float) -> Part:
    """``outcomes``: of one plan, in any order."""
    met: dict[str, int] = {}
    for outcome in outcomes:
        for situation in outcome.seen:
            met[situation] = met.get(situation, 0) + 1
    return Part(
        outcomes[0].plan,
        commit,
        build,
        tuple(_ranges(outcome.seed for outcome in outcomes)),
        sum(outcome.steps for outcome in outcomes),
        sum(outcome.events for outcome in outcomes),
        round(seconds, 3),
        tuple(sorted(outcome.seed for outcome in outcomes if outcome.broken is not None)),
        dict(sorted(met.items())),
    )


def line_of(part: Part) -> str:
    return json.dumps(part._asdict(), separators=(",", ":"))


def parse_line(line: str) -> Part:
    """ValueError for what is no line of ours."""
    try:
        told = json.loads(line)
        return Part(
            str(told["plan"]),
            str(told["commit"]),
            str(told["build"]),
            tuple((int(first), int(last)) for first, last in told["seeds"]),
            int(told["steps"]),
            int(told.get("events", 0)),
            float(told["seconds"]),
            tuple(int(seed) for seed in told["failed"]),
            {str(situation): int(runs) for situation, runs in told["met"].items()},
        )
    except (KeyError, TypeError, AttributeError) as wrong:
        raise ValueError(f"not a line of a tally: {wrong!r}") from None


class Total(NamedTuple):
    """All that is known of one plan."""

    plan: str
    commits: int
    seeds: int
    """Different ones."""
    runs: int
    steps: int
    events: int
    seconds: float
    failed: tuple[int, ...]
    missing: tuple[str, ...]
    """What too few of its runs have met."""


def add_up(parts: Iterable[Part]) -> list[Total]:
    """Plan by plan, in the order of their names."""
    by_plan: dict[str, list[Part]] = {}
    for part in parts:
        by_plan.setdefault(part.plan, []).append(part)
    return [_total(plan, by_plan[plan]) for plan in sorted(by_plan)]


def _total(plan: str, parts: Sequence[Part]) -> Total:
    met: dict[str, int] = {}
    for part in parts:
        for situation, runs in part.met.items():
            met[situation] = met.get(situation, 0) + runs
    runs = sum(part.runs for part in parts)
    return Total(
        plan,
        len({part.commit for part in parts}),
        _different(each for part in parts for each in part.seeds),
        runs,
        sum(part.steps for part in parts),
        sum(part.events for part in parts),
        sum(part.seconds for part in parts),
        tuple(sorted({seed for part in parts for seed in part.failed})),
        missed(plan, met, runs),
    )


def _ranges(seeds: Iterable[int]) -> Iterator[tuple[int, int]]:
    first = last = None
    for seed in sorted(seeds):
        if first is None or last is None:
            first = last = seed
        elif seed <= last + 1:
            last = seed
        else:
            yield first, last
            first = last = seed
    if first is not None and last is not None:
        yield first, last


def _different(ranges: Iterable[tuple[int, int]]) -> int:
    """How many seeds are in one range at least."""
    count = 0
    reached = -(1 << 63)
    for first, last in sorted(ranges):
        count += max(0, last - max(first - 1, reached))
        reached = max(reached, last)
    return count
