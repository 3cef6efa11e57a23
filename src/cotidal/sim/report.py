"""What a person is told of runs: one line for each that failed, its story, and a summary. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cotidal import invariants
from cotidal.sim.campaign import Summary
from cotidal.sim.probes import SITUATIONS
from cotidal.sim.run import Outcome
from cotidal.words import counted

SENTENCE_SHOWN = 400


def failure(outcome: Outcome, again: str | None = None) -> Iterator[str]:
    """The name of the promise, what it says, what was found, and how to see it again."""
    yield from finding(outcome)
    again = again or f"--plan {outcome.plan} --seed {outcome.seed}"
    yield f"  again    cotidal sim replay {again}"


def finding(outcome: Outcome) -> Iterator[str]:
    assert outcome.broken is not None
    promise = getattr(invariants, outcome.broken, "our own code failed")
    since = outcome.moment_us - outcome.faults_us
    yield f"{outcome.broken}: {promise}"
    yield f"  found    {outcome.sentence[:SENTENCE_SHOWN]}"
    yield f"  at       {since / 1e6:.3f} s, after {counted(outcome.steps, 'step')} of nodes"


def flat(outcome: Outcome) -> dict[str, str | int | None]:
    """One object, one level; situations that were seen as JSON."""
    fields = outcome._asdict()
    del fields["trace"]
    return fields | {"seen": json.dumps(outcome.seen, sort_keys=True)}


def story(outcome: Outcome, lines: int) -> Iterator[str]:
    """The last lines of the trace."""
    yield from outcome.trace[-lines:]


def summary(found: Summary, seconds: float) -> Iterator[str]:
    cpu = found.cpu_seconds or 1.0
    yield (
        f"{counted(found.runs, 'run')} of plan {found.plan}: {len(found.failures)} failed;"
        f" {found.acknowledged:,} batches acknowledged, {found.read:,} read"
    )
    yield (
        f"  {found.events:,} protocol events ({found.events / cpu:,.0f} a second of CPU) in"
        f" {counted(found.steps, 'step')} of nodes ({found.steps / cpu:,.0f}), {seconds:,.1f} s"
    )
    first: dict[str, list[int]] = {}
    for outcome in found.failures:
        first.setdefault(outcome.broken or "", []).append(outcome.seed)
    for name, seeds in first.items():
        yield f"  {name}: {len(seeds):,} of {found.runs:,}, first with seed {min(seeds)}"
    for situation in found.missing:
        met = f"{found.seen.get(situation, 0):,} of {counted(found.runs, 'run')}"
        yield f"  met in {met}, too few for this plan: {situation}"


class Met(NamedTuple):
    """A rare situation, and in how many runs of its plan it was met; None where none were run."""

    situation: str
    plan: str
    met_in: int | None
    runs: int | None


def probes(found: Mapping[str, Summary]) -> Iterator[Met]:
    """``found``: plan -> its campaign."""
    for situation in SITUATIONS:
        tally = found.get(situation.plan)
        if tally is None:
            yield Met(situation.name, situation.plan, None, None)
        else:
            runs = tally.seen.get(situation.name, 0)
            yield Met(situation.name, situation.plan, runs, tally.runs)
