"""``cotidal sim lab``: which acknowledged records are lost, with these settings and these faults?

Without a verb: one configuration. ``compare``: the usual ones side by side, under the same faults.
Exit status 1 when a row is not what theory says.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cotidal.cli.engine import engine_named, engine_options
from cotidal.cli.parquet import write_parquet
from cotidal.cli.progress import Progress
from cotidal.cli.table import print_table
from cotidal.cli.verb import Failed, Verb, VerbGroup, json_option

if TYPE_CHECKING:
    from cotidal.sim.lab.comparison import Row
    from cotidal.sim.lab.configuration import Configuration
    from cotidal.sim.lab.intervals import Estimate
    from cotidal.sim.plan import Plan

ACKS = {"0": 0, "1": 1, "all": -1}
MODEL_SLOW_US = 50_000
LOG_KEYS = ("log", "copies", "lost_max", "gone_max", "wait_us", "wait_far_us")
FAILOVER_KEYS = ("partitions", "zookeeper_model_ms", "kraft_power_cut_ms", "kraft_killed_ms")

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def _measuring(function: Decorated) -> Decorated:
    """The options that both verbs share."""
    options = (
        click.option(
            "--plan", "plan_name", default="ebb", show_default=True, help="See `sim plans`."
        ),
        click.option("--seed", type=int, default=1, show_default=True, help="The first seed."),
        click.option("--seeds", type=click.IntRange(min=1), default=20, show_default=True),
        click.option("--jobs", type=click.IntRange(min=1), help="Processes; default: cores."),
        engine_options,
        json_option,
        click.option("--rows", type=click.Path(dir_okay=False), help="Every run, as JSON lines."),
        click.option(
            "--parquet", type=click.Path(dir_okay=False), help="Every run; needs pyarrow."
        ),
        click.option("--plot", type=click.Path(dir_okay=False), help="A picture, as SVG."),
        click.option(
            "--stories",
            type=click.Path(file_okay=False),
            help="Write the shortest story of a loss, for each row that has one, into here.",
        ),
        click.option(
            "--tries",
            type=click.IntRange(min=1),
            default=60,
            show_default=True,
            help="Runs at most to make a story short.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.group(
    cls=VerbGroup,
    invoke_without_command=True,
    examples=(
        ("acks=1, a hundred seeds", "cotidal sim lab --acks 1 --seeds 100"),
        ("what min ISR 1 risks, told in commands", "cotidal sim lab --min-isr 1 --stories ."),
        ("the usual settings side by side", "cotidal sim lab compare --plot lab.svg"),
        ("against several plans of faults, as pictures", "cotidal sim lab grid"),
        ("beside a majority log and ZooKeeper", "cotidal sim lab models"),
    ),
)
@_measuring
@click.option("--acks", type=click.Choice(list(ACKS)), default="all", show_default=True)
@click.option("--replicas", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--min-isr", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("--unclean", is_flag=True, help="unclean.leader.election.enable=true.")
@click.option("--elr/--no-elr", default=True, show_default=True, help="KIP-966.")
@click.option("--idempotence/--no-idempotence", default=True, show_default=True)
@click.option("--flush-messages", type=click.IntRange(min=0), default=0, help="0: never.")
@click.option("--region-ms", type=click.IntRange(min=0), default=0, help="Regions so far apart.")
@click.option("--lag-ms", type=click.IntRange(min=0), default=0, help="replica.lag.time.max.ms.")
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Measure what a configuration loses and costs under a plan's faults.

    Records lost of those acknowledged, time without acknowledgements, and how long they took, each
    with its interval of 95 % (Wilson's for runs that lost something, else a bootstrap over runs).
    """
    if ctx.invoked_subcommand is not None:
        return
    from cotidal.sim.lab.configuration import Configuration

    configuration = Configuration(
        _name(given),
        acks=ACKS[given["acks"]],
        replicas=given["replicas"],
        min_isr=given["min_isr"],
        unclean=given["unclean"],
        elr=given["elr"],
        idempotent=given["idempotence"],
        flush_messages=given["flush_messages"],
        region_ms=given["region_ms"],
        lag_ms=given["lag_ms"],
    )
    _measure((configuration,), given)


@command.command(
    cls=Verb,
    examples=(
        ("all of them", "cotidal sim lab compare --seeds 100"),
        ("with a picture and all runs", "cotidal sim lab compare --plot lab.svg --rows runs.jsonl"),
    ),
)
@_measuring
def compare(**given: Any) -> None:
    """Put the usual configurations side by side under the same faults.

    Every configuration meets the same schedules; nothing is tuned for any of them.
    """
    from cotidal.sim.lab.configuration import COMPARED

    _measure(COMPARED, given)


@command.command(
    cls=Verb,
    examples=(
        ("loss and availability as pictures", "cotidal sim lab grid --plan ebb --plan harsh"),
        (
            "on the executors of a Spark cluster",
            "cotidal sim lab grid --seeds 1000 --engine spark --master spark://host:7077",
        ),
    ),
)
@click.option(
    "--plan", "plan_names", multiple=True, default=("ebb", "mild", "harsh"), show_default=True,
    help="A column; may be given again.",
)  # fmt: skip
@click.option("--seed", type=int, default=1, show_default=True, help="The first seed.")
@click.option("--seeds", type=click.IntRange(min=1), default=20, show_default=True)
@click.option("--jobs", type=click.IntRange(min=1), help="Processes; default: cores.")
@engine_options
@click.option(
    "--out", type=click.Path(file_okay=False), default="grid", show_default=True,
    help="Gets loss.svg, availability.svg and, where pyarrow is, runs.parquet.",
)  # fmt: skip
def grid(
    plan_names: tuple[str, ...],
    seed: int,
    seeds: int,
    jobs: int | None,
    engine_name: str,
    master: str,
    out: str,
) -> None:
    """Draw the usual configurations against several plans of faults.

    Two heat maps: of a hundred runs, how many lose acknowledged records; of the time of faults, how
    much passes without acknowledgements.
    """
    from cotidal.cli.sim import plan_named
    from cotidal.sim.lab import table
    from cotidal.sim.lab.comparison import compare as compare_all
    from cotidal.sim.lab.configuration import COMPARED

    plans = [plan_named(name) for name in plan_names]
    wanted = range(seed, seed + seeds)
    found: dict[str, list[Row]] = {}
    with (
        engine_named(engine_name, jobs, master) as engine,
        Progress("runs", total=len(plans) * len(COMPARED) * seeds) as progress,
    ):
        for plan in plans:
            fit = [each for each in COMPARED if each.replicas <= plan.nodes]
            found[plan.name] = compare_all(
                fit, plan, wanted, engine=engine, on_run=lambda: progress.advance(1)
            )
    os.makedirs(out, exist_ok=True)
    _draw_grid(found, seeds, out)
    runs = [run for plan in plans for row in found[plan.name] for run in table.flat_runs(row, plan)]
    if importlib.util.find_spec("pyarrow") is not None:
        write_parquet(runs, os.path.join(out, "runs.parquet"))
    click.echo(f"{len(runs):,} runs: {', '.join(sorted(os.listdir(out)))} in {out}")
    wrong = [
        sentence
        for plan in plans
        for row in found[plan.name]
        if (sentence := table.contradicts(row, plan))
    ]
    if wrong:
        raise Failed("; ".join(wrong))


def _draw_grid(found: dict[str, list[Row]], seeds: int, out: str) -> None:
    from cotidal.cli.heat_map import Square, heat_map, shade

    note = f"cotidal sim lab grid: {seeds} runs of each, the same faults in every line of a column"
    pictures: dict[str, tuple[str, Callable[[Row], Estimate | None]]] = {
        "loss": ("Runs that lose acknowledged records, %", lambda row: row.losing_runs),
        "availability": ("Time without acknowledgements, %", lambda row: row.unavailable_ppm),
    }
    for name, (title, measure) in pictures.items():
        lines: dict[str, dict[str, Square]] = {}
        for plan, rows in found.items():
            for row in rows:
                estimate = measure(row)
                line = lines.setdefault(row.configuration.name, {})
                if estimate is not None and row.runs:
                    value, low, high = (part / 10_000 for part in estimate)
                    told = f"{value:.1f} % [{low:.1f}..{high:.1f}]"
                    line[plan] = Square(shade(0.7 * value / 100), told, f"{value:.1f}")
        with open(os.path.join(out, f"{name}.svg"), "w", encoding="utf-8") as file:
            file.write(heat_map(lines, list(found), title=title, note=note))


@command.command(
    cls=Verb,
    examples=(
        ("ISR beside majority, KRaft beside ZooKeeper", "cotidal sim lab models"),
        ("with more partitions", "cotidal sim lab models --partitions 10 --partitions 2000"),
    ),
)
@click.option(
    "--partitions", type=click.IntRange(min=1), multiple=True, default=(10, 100, 500),
    show_default=True, help="Of the cluster whose controller dies.",
)  # fmt: skip
@click.option("--seeds", type=click.IntRange(min=1), default=3, show_default=True)
@json_option
def models(partitions: tuple[int, ...], seeds: int, as_json: bool) -> None:
    """Put an ISR beside a majority, and KRaft's failover beside ZooKeeper's.

    The majority log and ZooKeeper's era are models (src/cotidal/sim/models says where each number
    comes from); KRaft's failover is cotidal's own, run in the simulator.
    """
    from cotidal.sim.models.controller_failover import kraft_ms, zookeeper_ms
    from cotidal.sim.models.quorum_log import COMPARED, wait_us

    logs = []
    for log in COMPARED:
        near, far = wait_us(log), wait_us(log, slow_us=MODEL_SLOW_US)
        logs.append((log.name, log.copies, log.lost_max, log.gone_max, near[0], far[0]))
    failovers = []
    with Progress("failovers", total=2 * seeds * len(partitions)) as progress:
        for count in partitions:
            power, killed = [], []
            for seed in range(1, seeds + 1):
                power.append(kraft_ms(count, seed=seed))
                killed.append(kraft_ms(count, seed=seed, killed=True))
                progress.advance(2)
            failovers.append((count, zookeeper_ms(count), max(power), max(killed)))
    if as_json:
        told = {
            "logs": [dict(zip(LOG_KEYS, row, strict=True)) for row in logs],
            "failovers": [dict(zip(FAILOVER_KEYS, row, strict=True)) for row in failovers],
        }
        click.echo(json.dumps(told, indent=2))
        return
    print_table(
        ("log", "copies", "may be lost", "may be gone", "wait us", "wait us, one 50 ms away"), logs
    )
    click.echo()
    print_table(
        ("partitions", "ZooKeeper ms (model)", "KRaft, power cut ms", "KRaft, kill -9 ms"),
        failovers,
    )


def _name(given: dict[str, Any]) -> str:
    told = [f"acks={given['acks']}", f"min ISR {given['min_isr']} of {given['replicas']}"]
    told += ["unclean"] * given["unclean"]
    told += [] if given["elr"] else ["no ELR"]
    told += [] if given["idempotence"] else ["not idempotent"]
    for name in ("flush_messages", "region_ms", "lag_ms"):
        told += [f"{name.replace('_', ' ')} {given[name]}"] if given[name] else []
    return ", ".join(told)


def _measure(configurations: Sequence[Configuration], given: dict[str, Any]) -> None:
    from cotidal.cli.sim import plan_named
    from cotidal.sim.lab import table
    from cotidal.sim.lab.comparison import compare as compare_all

    faults = plan_named(given["plan_name"])
    if max(each.replicas for each in configurations) > faults.nodes:
        raise Failed(f"plan {faults.name} has {faults.nodes} nodes: too few replicas fit", status=2)
    seeds = range(given["seed"], given["seed"] + given["seeds"])
    total = len(seeds) * len(configurations)
    with (
        engine_named(given["engine_name"], given["jobs"], given["master"]) as engine,
        Progress("runs", total=total) as progress,
    ):
        rows = compare_all(
            configurations,
            faults,
            seeds,
            engine=engine,
            on_run=lambda: progress.advance(1),
        )
    if given["as_json"]:
        click.echo(json.dumps([table.flat(row, faults) for row in rows], indent=2))
    else:
        print_table(table.COLUMNS, [table.cells(row) for row in rows])
    _write(rows, faults, given)
    if given["stories"]:
        _tell(rows, faults, given["stories"], given["tries"])
    wrong = [sentence for row in rows if (sentence := table.contradicts(row, faults))]
    if wrong:
        raise Failed("; ".join(wrong))


def _write(rows: Sequence[Row], faults: Plan, given: dict[str, Any]) -> None:
    from cotidal.sim.lab import table
    from cotidal.sim.lab.chart import chart

    flat = [run for row in rows for run in table.flat_runs(row, faults)]
    if given["rows"]:
        with open(given["rows"], "w", encoding="utf-8") as file:
            file.writelines(json.dumps(run) + "\n" for run in flat)
    if given["parquet"]:
        write_parquet(flat, given["parquet"])
    if given["plot"]:
        title = "What settings keep, and what it costs, under the same faults"
        note = (
            f"cotidal sim lab, plan {faults.name} ({faults.about}), {given['seeds']} runs of"
            " each; whiskers: 95 %"
        )
        with open(given["plot"], "w", encoding="utf-8") as file:
            file.write(chart(rows, title=title, note=note))


def _tell(rows: Sequence[Row], faults: Plan, directory: str, tries: int) -> None:
    from cotidal.sim.lab.comparison import story_of
    from cotidal.sim.lab.measures import measured
    from cotidal.sim.script import write_script

    os.makedirs(directory, exist_ok=True)
    for row in rows:
        with Progress("runs tried") as progress:
            found = story_of(row, faults, tries=tries, on_try=lambda: progress.advance(1))
        if found is None:
            continue
        script = found.script
        lost = measured(script.seed, script.plan, script.schedule)[0]
        story = (
            f"{row.configuration.name}: {lost.lost} of {lost.believed} records that were"
            f" {'sent' if row.configuration.acks == 0 else 'acknowledged'} are lost",
        )
        name = "-".join(row.configuration.name.replace("=", "-").replace(",", "").split())
        path = os.path.join(directory, f"{name}.script")
        with open(path, "w", encoding="utf-8") as file:
            file.write(write_script(script, story))
        click.echo(f"\n{path}: {found.commands_before} commands became {len(script.schedule)}")
        click.echo("\n".join(f"  {line}" for line in (*story, *map(str, script.schedule))))
