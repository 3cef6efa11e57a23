"""``cotidal sim``: run simulated clusters, and see a failing run again.

Exit status 1 when a promise was broken. The same seed and plan give the same run, on every machine.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

import click

from cotidal.cli.progress import Progress
from cotidal.cli.verb import Failed, Verb, VerbGroup, json_option

if TYPE_CHECKING:
    from cotidal.sim.plan import Plan

FAILURES_TOLD = 5


@click.group(
    cls=VerbGroup,
    examples=(
        ("a hundred runs of the plan 'mild'", "cotidal sim run --plan mild --seeds 100"),
        ("one of them again, with its trace", "cotidal sim replay --plan mild --seed 17"),
        ("what there is to choose from", "cotidal sim plans"),
    ),
)
def command() -> None:
    """Simulate clusters under faults and look for broken promises."""


@command.command(
    cls=Verb,
    examples=(
        ("a single seed", "cotidal sim run --plan harsh --seed 4711"),
        ("many, over all cores", "cotidal sim run --plan harsh --seeds 1000"),
    ),
)
@click.option("--plan", "plan_name", default="mild", show_default=True, help="See `sim plans`.")
@click.option("--seed", type=int, default=1, show_default=True, help="The first seed.")
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="How many.")
@click.option("--jobs", type=click.IntRange(min=1), default=None, help="Processes; default: cores.")
@json_option
def run(plan_name: str, seed: int, seeds: int, jobs: int | None, as_json: bool) -> None:
    """Run seeds of a plan."""
    from cotidal.sim import report
    from cotidal.sim.campaign import campaign

    plan = _plan(plan_name)
    processes = min(seeds, jobs or os.cpu_count() or 1)
    begun = time.monotonic()
    with Progress("runs") as progress:
        found = campaign(
            range(seed, seed + seeds),
            plan,
            processes=processes,
            on_outcome=lambda _: progress.advance(1),
        )
    if as_json:
        told = found._asdict() | {"failures": [each._asdict() for each in found.failures]}
        click.echo(json.dumps(told))
    else:
        for outcome in found.failures[:FAILURES_TOLD]:
            for line in report.failure(outcome):
                click.echo(line)
        for line in report.summary(found, time.monotonic() - begun):
            click.echo(line)
    if found.failures:
        raise Failed(
            f"{len(found.failures)} of {found.runs} runs broke a promise; see the first again with"
            f" `cotidal sim replay --plan {plan.name} --seed {found.failures[0].seed}`"
        )


@command.command(
    cls=Verb,
    examples=(
        ("the end of the story", "cotidal sim replay --plan harsh --seed 22"),
        ("all of it", "cotidal sim replay --plan harsh --seed 22 --trace run.txt"),
    ),
)
@click.option("--plan", "plan_name", default="mild", show_default=True, help="See `sim plans`.")
@click.option("--seed", type=int, required=True)
@click.option("--lines", type=int, default=40, show_default=True, help="Last lines to print.")
@click.option("--trace", "path", type=click.Path(dir_okay=False), help="Write every line here.")
def replay(plan_name: str, seed: int, lines: int, path: str | None) -> None:
    """Run one seed again and tell its story."""
    from cotidal.sim import report
    from cotidal.sim.run import run as run_once
    from cotidal.sim.trace import Trace

    plan = _plan(plan_name)
    if path is None:
        outcome = run_once(seed, plan)
    else:
        with open(path, "w", encoding="utf-8") as file:
            outcome = run_once(seed, plan, Trace(lambda line: file.write(line + "\n")))
    for line in report.story(outcome, lines):
        click.echo(line)
    if outcome.broken is None:
        click.echo(
            f"every promise held: {outcome.steps:,} steps of nodes in"
            f" {outcome.moment_us / 1e6:.1f} simulated seconds"
        )
        return
    for line in report.failure(outcome):
        click.echo(line)
    raise Failed(f"seed {seed} of plan {plan.name} breaks {outcome.broken}")


@command.command(cls=Verb, examples=(("all plans", "cotidal sim plans"),))
def plans() -> None:
    """List the plans."""
    from cotidal.sim.plan import PLANS

    for plan in PLANS.values():
        click.echo(f"{plan.name:16} {plan.nodes} nodes, {plan.seconds} s: {plan.about}")


def _plan(name: str) -> Plan:
    from cotidal.sim.plan import PLANS

    if name not in PLANS:
        from cotidal.client.failures import nearest

        close = nearest(name, list(PLANS))
        hint = f"; did you mean '{close}'?" if close else "."
        raise Failed(f"there is no plan '{name}'{hint} Plans: `cotidal sim plans`", status=2)
    return PLANS[name]
