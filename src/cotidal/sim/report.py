"""What a person is told of runs: one line for each that failed, its story, and a summary. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from cotidal import invariants
from cotidal.sim.campaign import Summary
from cotidal.sim.run import Outcome

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
    yield f"  at       {since / 1e6:.3f} s, after {outcome.steps:,} steps of nodes"


def story(outcome: Outcome, lines: int) -> Iterator[str]:
    """The last lines of the trace."""
    yield from outcome.trace[-lines:]


def summary(found: Summary, seconds: float) -> Iterator[str]:
    rate = found.steps / seconds if seconds else 0
    yield (
        f"{found.runs:,} runs of plan {found.plan}: {len(found.failures)} failed;"
        f" {found.steps:,} steps of nodes ({rate:,.0f} a second), {found.acknowledged:,} batches"
        f" acknowledged, {found.read:,} read"
    )
    first: dict[str, list[int]] = {}
    for outcome in found.failures:
        first.setdefault(outcome.broken or "", []).append(outcome.seed)
    for name, seeds in first.items():
        yield f"  {name}: {len(seeds)} of {found.runs}, first with seed {min(seeds)}"
    for situation in found.missing:
        yield f"  never seen, though the plan promises it: {situation}"
