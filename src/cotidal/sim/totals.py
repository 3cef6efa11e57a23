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


def gathered(parts: Iterable[Part]) -> list[Part]:
    """The same in few lines: one for each plan, commit and build, and one more whenever a seed ran
    again."""
    lines: list[Part] = []
    for part in parts:
        for place, line in enumerate(lines):
            if line[:3] == part[:3] and _different((*line.seeds, *part.seeds)) == (
                line.runs + part.runs
            ):
                lines[place] = _together(line, part)
                break
        else:
            lines.append(part)
    return sorted(lines, key=lambda line: line[:4])


def _together(one: Part, other: Part) -> Part:
    """Of the same plan, commit and build, and of different seeds."""
    situations = sorted({*one.met, *other.met})
    return Part(
        *one[:3],
        tuple(_joined((*one.seeds, *other.seeds))),
        one.steps + other.steps,
        one.events + other.events,
        round(one.seconds + other.seconds, 3),
        tuple(sorted({*one.failed, *other.failed})),
        {each: one.met.get(each, 0) + other.met.get(each, 0) for each in situations},
    )


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
    return _joined((seed, seed) for seed in seeds)


def _joined(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The same seeds in as few ranges as possible, ascending."""
    reached: tuple[int, int] | None = None
    for first, last in sorted(ranges):
        if reached is None:
            reached = first, last
        elif first <= reached[1] + 1:
            reached = reached[0], max(reached[1], last)
        else:
            yield reached
            reached = first, last
    if reached is not None:
        yield reached


def _different(ranges: Iterable[tuple[int, int]]) -> int:
    """How many seeds are in one range at least."""
    return sum(last - first + 1 for first, last in _joined(ranges))
