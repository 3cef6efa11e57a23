"""``cotidal sim``: run simulated clusters, and see a failing run again.

Exit status 1 when a promise was broken. The same seed and plan give the same run, on every machine.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

import click

from cotidal.cli.engine import engine_named, engine_options
from cotidal.cli.explore import explore
from cotidal.cli.lab import command as lab
from cotidal.cli.parquet import write_parquet
from cotidal.cli.progress import Progress
from cotidal.cli.serve import serve
from cotidal.cli.tally import Tally, tally
from cotidal.cli.verb import Failed, Verb, VerbGroup, json_option
from cotidal.words import counted

if TYPE_CHECKING:
    from cotidal.sim.campaign import Summary
    from cotidal.sim.plan import Plan
    from cotidal.sim.run import Outcome
    from cotidal.sim.script import Script
    from cotidal.sim.shrink import Shrunk

FAILURES_TOLD = 5
TRIES_BY_ITSELF = 60
"""Runs that `sim run` spends on shrinking unasked: a minute or two."""


@click.group(
    cls=VerbGroup,
    examples=(
        ("the simulator as a page", "cotidal sim serve"),
        ("a hundred runs of the plan 'mild'", "cotidal sim run --plan mild --seeds 100"),
        ("one of them again, with its trace", "cotidal sim replay --plan mild --seed 17"),
        ("what it takes to make it fail", "cotidal sim shrink --plan mild --seed 17"),
        ("what there is to choose from", "cotidal sim plans"),
        ("the corners that runs must get into", "cotidal sim probes"),
        ("every state of a small world", "cotidal sim explore quorum"),
        ("what has been run over days", "cotidal sim tally runs.jsonl"),
    ),
)
def command() -> None:
    """Simulate clusters under faults and look for broken promises."""


command.add_command(serve)
command.add_command(explore)
command.add_command(tally)


@command.command(
    cls=Verb,
    examples=(
        ("a single seed", "cotidal sim run --plan harsh --seed 4711"),
        ("many, over all cores", "cotidal sim run --plan harsh --seeds 1000"),
        ("the first failure as it is", "cotidal sim run --plan harsh --seeds 1000 --no-shrink"),
        (
            "exactly-once processing under the same faults",
            "cotidal sim run --workload eos --plan harsh --seeds 500",
        ),
        ("to be added up", "cotidal sim run --plan harsh --seeds 1000 --tally runs.jsonl"),
        (
            "on the executors of a Spark cluster",
            "cotidal sim run --seeds 100000 --engine spark --master spark://host:7077",
        ),
    ),
)
@click.option("--plan", "plan_name", default="mild", show_default=True, help="See `sim plans`.")
@click.option(
    "--workload",
    type=click.Choice(["eos"]),
    help="Done besides: read-process-write in transactions, exactly once. Also: --plan PLAN+eos.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="The first seed.")
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="How many.")
@click.option("--jobs", type=click.IntRange(min=1), default=None, help="Processes; default: cores.")
@engine_options
@click.option(
    "--shrink/--no-shrink",
    "shrinks",
    default=True,
    show_default=True,
    help="Make a small script of the first failure of each promise.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, exists=True),
    default=".",
    show_default=True,
    help="Where scripts are written.",
)
@click.option(
    "--parquet", type=click.Path(dir_okay=False), help="Every run as a row; needs pyarrow."
)
@click.option(
    "--tally",
    "tally_path",
    type=click.Path(dir_okay=False),
    help="Append what was run to this file; see `sim tally`.",
)
@click.option("--commit", default="", help="What to call this version of the code in the tally.")
@json_option
def run(
    plan_name: str,
    workload: str | None,
    seed: int,
    seeds: int,
    jobs: int | None,
    engine_name: str,
    master: str,
    shrinks: bool,
    out: str,
    parquet: str | None,
    tally_path: str | None,
    commit: str,
    as_json: bool,
) -> None:
    """Run seeds of a plan; make a small script of each promise's first failure."""
    from cotidal.sim import report
    from cotidal.sim.campaign import campaign, shrunk

    plan = plan_named(plan_name if workload is None else f"{plan_name}+{workload}")
    with engine_named(engine_name, jobs, master) as engine:
        begun = time.monotonic()
        rows: list[dict[str, Any]] = []
        with Progress("runs", total=seeds) as progress, Tally(tally_path, commit) as written:

            def on_outcome(outcome: Outcome) -> None:
                written.add(outcome)
                if parquet is not None:
                    rows.append(report.flat(outcome))
                progress.advance(1)

            found = campaign(range(seed, seed + seeds), plan, engine=engine, on_outcome=on_outcome)
        if parquet is not None:
            write_parquet(sorted(rows, key=lambda row: row["seed"]), parquet)
        if as_json:
            told = found._asdict() | {"failures": [each._asdict() for each in found.failures]}
            click.echo(json.dumps(told))
        else:
            for outcome in found.failures[:FAILURES_TOLD]:
                for line in report.failure(outcome):
                    click.echo(line)
            for line in report.summary(found, time.monotonic() - begun):
                click.echo(line)
        if not found.failures:
            return
        again = f"--plan {plan.name} --seed {found.failures[0].seed}"
        if shrinks:
            small = shrunk(found.failures, engine=engine, tries=TRIES_BY_ITSELF)
            scripts = [_keep(each, out, quiet=as_json) for each in small]
            again = scripts[0]
    raise Failed(
        f"{len(found.failures):,} of {counted(found.runs, 'run')} broke a promise; see the first"
        f" again with `cotidal sim replay {again}`"
    )


@command.command(
    cls=Verb,
    examples=(
        ("the end of the story", "cotidal sim replay --plan harsh --seed 22"),
        ("all of it", "cotidal sim replay --plan harsh --seed 22 --trace run.txt"),
        ("what a script says", "cotidal sim replay harsh-22.script"),
        (
            "the life of a real node, as `up --trace` recorded it",
            "cotidal sim replay node-2-1.trace",
        ),
    ),
)
@click.argument("file", type=click.Path(dir_okay=False, exists=True), required=False)
@click.option("--plan", "plan_name", default="mild", show_default=True, help="See `sim plans`.")
@click.option("--seed", type=int, help="Needed where no FILE is given.")
@click.option("--lines", type=int, default=40, show_default=True, help="Last lines to print.")
@click.option("--trace", "path", type=click.Path(dir_okay=False), help="Write every line here.")
def replay(
    file: str | None, plan_name: str, seed: int | None, lines: int, path: str | None
) -> None:
    """Run a script, or one seed of a plan, again and tell its story.

    FILE may also be the recording of a real node: a new one is taken through the same events, and
    must want the same effects.
    """
    if file is not None and _is_recording(file):
        _replay_node(file)
        return
    from cotidal.sim import report
    from cotidal.sim.lab.measures import LOST, measured
    from cotidal.sim.trace import Trace

    script = _script(file, plan_name, seed)
    seed, plan, schedule, expected = script
    if path is None:
        measures, outcome = measured(seed, plan, schedule)
    else:
        with open(path, "w", encoding="utf-8") as told:
            trace = Trace(lambda line: told.write(line + "\n"))
            measures, outcome = measured(seed, plan, schedule, trace)
    for line in report.story(outcome, lines):
        click.echo(line)
    if measures.lost and outcome.broken is None:
        click.echo(f"{measures.lost} of {measures.believed} acknowledged records are lost")
        if expected == LOST:
            raise Failed(f"{file} loses acknowledged records, which its settings allow")
    if outcome.broken is None:
        click.echo(
            f"every promise held: {outcome.steps:,} steps of nodes in"
            f" {outcome.moment_us / 1e6:.1f} simulated seconds"
        )
        if expected:
            click.echo(f"{expected}, which the script says was broken, held too")
        return
    for line in report.failure(outcome, file):
        click.echo(line)
    raise Failed(f"{file or f'seed {seed} of plan {plan.name}'} breaks {outcome.broken}")


def _is_recording(file: str) -> bool:
    from cotidal.node.recording import is_recording

    with open(file, encoding="utf-8") as text:
        return is_recording(text.readline())


def _replay_node(file: str) -> None:
    from cotidal.node.recording import RecordingError, replay

    try:
        with open(file, encoding="ascii") as lines:
            found = replay(lines)
    except RecordingError as wrong:
        raise Failed(f"{file}: {wrong}", status=2) from None
    end = "; its last line is cut short" if found.cut else ""
    told = f"node {found.config.node_id}: {found.steps:,} events"
    if found.difference is None:
        click.echo(f"{told}, {found.effects:,} effects: identical{end}")
        return
    step, event, recorded, wanted = found.difference
    click.echo(f"event {step:,}: {event}")
    for name, effects in (("recorded", recorded), ("replayed", wanted)):
        for effect in effects or ("nothing",):
            click.echo(f"  {name}: {effect}")
    raise Failed(f"{file}: the replayed node differs from event {step:,} on")


@command.command(
    cls=Verb,
    examples=(
        ("a seed that failed", "cotidal sim shrink --plan harsh --seed 22"),
        ("a script, once more", "cotidal sim shrink harsh-22.script --tries 500"),
    ),
)
@click.argument("file", type=click.Path(dir_okay=False, exists=True), required=False)
@click.option("--plan", "plan_name", default="mild", show_default=True, help="See `sim plans`.")
@click.option("--seed", type=int, help="Needed where no FILE is given.")
@click.option(
    "--tries", type=click.IntRange(min=1), default=200, show_default=True, help="Runs at most."
)
@click.option(
    "--out", type=click.Path(dir_okay=False), help="The script to write; default: PLAN-SEED.script."
)
def shrink(file: str | None, plan_name: str, seed: int | None, tries: int, out: str | None) -> None:
    """Leave out of a failing run all that it does not take to fail.

    What is left breaks the same promise. It is printed, and written to a script that
    `cotidal sim replay` runs.
    """
    script = _script(file, plan_name, seed)
    out = out or file or f"{script.plan.name}-{script.seed}.script"
    if not _shrink(script, tries, out):
        raise Failed("every promise held: there is nothing to shrink")


def _shrink(script: Script, tries: int, out: str) -> bool:
    """False if nothing is wrong with it."""
    from cotidal.sim.shrink import shrink as shrink_once

    with Progress("runs tried") as progress:
        found = shrink_once(script, tries=tries, on_try=lambda: progress.advance(1))
    if found is None:
        return False
    _write(found, out, quiet=False)
    return True


def _keep(found: Shrunk, directory: str, *, quiet: bool) -> str:
    """In a file named after its run."""
    name = f"{found.script.plan.name}-{found.script.seed}.script"
    path = os.path.join(directory, name)
    _write(found, path, quiet=quiet)
    return path


def _write(found: Shrunk, out: str, *, quiet: bool) -> None:
    from cotidal.sim import report
    from cotidal.sim.script import write_script

    text = write_script(found.script, tuple(report.finding(found.outcome)))
    with open(out, "w", encoding="utf-8") as file:
        file.write(text)
    if not quiet:
        click.echo(text, nl=False)
        click.echo(
            f"{counted(found.commands_before, 'command')} became {len(found.script.schedule)} in"
            f" {counted(found.tries, 'run')}; written to {out}"
        )


command.add_command(lab, "lab")


@command.command(cls=Verb, examples=(("all plans", "cotidal sim plans"),))
def plans() -> None:
    """List the plans."""
    from cotidal.sim.plans import PLANS

    for plan in PLANS.values():
        click.echo(f"{plan.name:16} {plan.nodes} nodes, {plan.seconds} s: {plan.about}")


@command.command(
    cls=Verb,
    examples=(
        ("the rare situations, and the plan that must meet each", "cotidal sim probes"),
        ("how many of 200 runs of each plan meet them", "cotidal sim probes --seeds 200"),
        ("of one plan", "cotidal sim probes --seeds 1000 --plan harsh"),
    ),
)
@click.option("--plan", "plan_name", default=None, help="Only what this plan must meet.")
@click.option("--seeds", type=click.IntRange(min=1), default=None, help="Run so many, and count.")
@click.option("--seed", type=int, default=1, show_default=True, help="The first seed.")
@click.option("--jobs", type=click.IntRange(min=1), default=None, help="Processes; default: cores.")
@json_option
def probes(
    plan_name: str | None, seeds: int | None, seed: int, jobs: int | None, as_json: bool
) -> None:
    """List the rare situations that runs must meet; with --seeds, how many do."""
    from cotidal.cli.table import print_table
    from cotidal.sim.report import probes as rows_of

    plan = None if plan_name is None else plan_named(plan_name)
    found = {} if seeds is None else _tallied(plan, range(seed, seed + seeds), jobs)
    rows = [row for row in rows_of(found) if plan is None or row.plan == plan.name]
    if as_json:
        click.echo(json.dumps([row._asdict() for row in rows]))
    else:
        print_table(
            ("situation", "plan", "met in", "of"),
            [(row.situation, row.plan, row.met_in, row.runs) for row in rows],
        )
    broken = [outcome for each in found.values() for outcome in each.failures]
    few = sum(len(each.missing) for each in found.values())
    if broken:
        first = broken[0]
        raise Failed(
            f"{counted(len(broken), 'run')} broke a promise; see one with"
            f" `cotidal sim replay --plan {first.plan} --seed {first.seed}`"
        )
    if few:
        raise Failed(f"{few} situations were met in fewer than one run of a hundred")


def _tallied(plan: Plan | None, seeds: range, jobs: int | None) -> dict[str, Summary]:
    from cotidal.sim.campaign import campaign
    from cotidal.sim.engine import Here
    from cotidal.sim.plans import PLANS
    from cotidal.sim.probes import SITUATIONS

    names = dict.fromkeys(situation.plan for situation in SITUATIONS)
    with Progress("runs") as progress:
        return {
            each.name: campaign(
                seeds,
                each,
                engine=Here(jobs or os.cpu_count() or 1),
                on_outcome=lambda _: progress.advance(1),
            )
            for each in ([PLANS[name] for name in names] if plan is None else [plan])
        }


def plan_named(name: str) -> Plan:
    from cotidal.sim import plans

    try:
        found = plans.plan_named(name)
    except ValueError as wrong:
        raise Failed(str(wrong), status=2) from None
    if found is None:
        from cotidal.client.failures import nearest

        close = nearest(name, list(plans.PLANS))
        hint = f"; did you mean '{close}'?" if close else "."
        raise Failed(f"there is no plan '{name}'{hint} Plans: `cotidal sim plans`", status=2)
    return found


def _script(file: str | None, plan_name: str, seed: int | None) -> Script:
    """What is to be run: a script's file, or a seed of a plan."""
    from cotidal.sim.script import of_seed, parse_script

    if file is None:
        if seed is None:
            raise Failed("which run? Give a script's FILE, or --plan and --seed", status=2)
        return of_seed(seed, plan_named(plan_name))
    with open(file, encoding="utf-8") as text:
        try:
            return parse_script(text.read())
        except ValueError as wrong:
            raise Failed(f"{file} is no script of a run: {wrong}", status=2) from None
