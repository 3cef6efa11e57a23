"""``cotidal reassign``: move partitions to other brokers, and watch them go (KIP-455)."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from cotidal.cli.partitions_given import find_partitions, parse_rate
from cotidal.cli.table import Cell, bytes_text, list_text, print_json, print_table
from cotidal.cli.verb import (
    Failed,
    Verb,
    VerbGroup,
    bootstrap_option,
    complete_topic,
    json_option,
)

if TYPE_CHECKING:
    from collections.abc import Container

    from cotidal.client.cluster import Cluster
    from cotidal.client.moving import Outcome
    from cotidal.client.reassignment import Moving, Step
    from cotidal.values import TopicPartition

LOOK_EVERY_S = 0.5


@click.group(
    cls=VerbGroup,
    examples=(
        ("what spreading a topic over four brokers would move",
         "cotidal reassign plan orders --brokers 1,2,3,4"),
        ("do it, gently, and wait", "cotidal reassign plan orders --brokers 1,2,3,4 --json |"
         " cotidal reassign start - --throttle 10MB --wait"),
        ("how far it has got", "cotidal reassign progress"),
        ("back to where it was", "cotidal reassign cancel orders"),
    ),
)  # fmt: skip
def command() -> None:
    """Move partitions to other brokers, or give them more or fewer replicas."""


@command.command(
    cls=Verb,
    examples=(
        ("empty broker 3", "cotidal reassign plan --without 3"),
        ("three replicas of each partition", "cotidal reassign plan orders --replicas 3"),
        ("as kafka-reassign-partitions reads it", "cotidal reassign plan orders --json"),
    ),
)
@click.argument("topics", metavar="[TOPIC]...", nargs=-1, shell_complete=complete_topic)
@click.option("--brokers", metavar="ID,...", help="Who shall have them.  [default: all that serve]")
@click.option("--without", metavar="ID,...", help="Who shall have nothing.")
@click.option("--replicas", type=click.IntRange(min=1), metavar="N", help="Of each partition.")
@json_option
@bootstrap_option
def plan(
    topics: tuple[str, ...],
    brokers: str | None,
    without: str | None,
    replicas: int | None,
    as_json: bool,
    bootstrap: str,
) -> None:
    """Plan where the partitions of TOPICs (or of all) shall be; changes nothing.

    As little moves as can: replicas stay where they are allowed to, are kept in different racks,
    and are spread evenly.
    """
    from cotidal.client.assignment import Impossible
    from cotidal.client.assignment import as_json as plan_json
    from cotidal.client.cluster import Cluster
    from cotidal.client.reassignment import plan_steps

    allowed = None if brokers is None else parse_ids(brokers)
    gone = set() if without is None else parse_ids(without)
    with Cluster(bootstrap) as cluster:
        try:
            steps = plan_steps(cluster, topics, brokers=allowed, without=gone, replicas=replicas)
        except Impossible as wrong:
            raise Failed(f"{wrong}; see the brokers with `cotidal status`") from None
    if as_json:
        print_json(plan_json({step.at: step.planned for step in steps}))
    elif not steps:
        click.echo("everything is where it should be: nothing would move")
    else:
        print_plan(steps)


@command.command(
    cls=Verb,
    examples=(
        ("a plan from a file", "cotidal reassign start plan.json"),
        ("at most 10 MB a second into and out of each broker, and wait until it is done",
         "cotidal reassign start plan.json --throttle 10MB --wait"),
    ),
)  # fmt: skip
@click.argument("plan_file", metavar="PLAN", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--throttle", metavar="RATE", callback=parse_rate, help="500KB, 10MB, ... a second.")
@click.option("--wait", is_flag=True, help="Until it is done; then lift the throttle.")
@json_option
@bootstrap_option
def start(plan_file: str, throttle: int | None, wait: bool, as_json: bool, bootstrap: str) -> None:
    """Begin to move partitions as the file PLAN says ('-': stdin).

    It is JSON as `cotidal reassign plan --json` prints it and kafka-reassign-partitions reads it.
    With --throttle, whoever catches up takes so much and no more; `cotidal throttle clear` lifts
    it, and so does --wait at the end.
    """
    from cotidal.client.assignment import Impossible, from_json
    from cotidal.client.cluster import Cluster
    from cotidal.client.reassignment import begin, lift_throttles

    with click.open_file(plan_file) as read:
        text = read.read()
    try:
        targets = from_json(text)
    except Impossible as wrong:
        raise Failed(f"{plan_file}: {wrong}", status=2) from None
    with Cluster(bootstrap) as cluster:
        outcomes = begin(cluster, targets, throttle=throttle)
        tell_outcomes(outcomes, "moves", as_json=as_json)
        if wait:
            wait_for(cluster, targets)
            if throttle is not None:
                lift_throttles(cluster, targets)
            if not as_json:
                click.echo("done")


@command.command(
    cls=Verb,
    examples=(
        ("how much is left", "cotidal reassign progress"),
        ("until all is done", "cotidal reassign progress --wait"),
    ),
)
@click.option("--wait", is_flag=True, help="Until nothing moves any more.")
@json_option
@bootstrap_option
def progress(wait: bool, as_json: bool, bootstrap: str) -> None:
    """Show the reassignments under way: who gets what, and how many bytes are left."""
    from cotidal.client.cluster import Cluster
    from cotidal.client.reassignment import look, moving_json

    with Cluster(bootstrap) as cluster:
        if wait:
            wait_for(cluster, None)
        moving = look(cluster)
    if as_json:
        print_json([moving_json(each) for each in moving])
    elif not moving:
        click.echo("no partition is being reassigned")
    else:
        print_table(
            ("TOPIC", "PARTITION", "REPLICAS", "ADDING", "REMOVING", "LEFT", "OF"),
            [moving_row(each) for each in moving],
        )


@command.command(
    cls=Verb,
    examples=(
        ("of one topic, of one partition", "cotidal reassign cancel orders payments:2"),
        ("all", "cotidal reassign cancel --all"),
    ),
)
@click.argument("partitions", metavar="[TOPIC[:P,...]]...", nargs=-1, shell_complete=complete_topic)
@click.option("--all", "everything", is_flag=True, help="Whatever is under way.")
@json_option
@bootstrap_option
def cancel(partitions: tuple[str, ...], everything: bool, as_json: bool, bootstrap: str) -> None:
    """Let partitions that are being moved stay where they were."""
    from cotidal.client.cluster import Cluster
    from cotidal.client.moving import ongoing, reassign

    if bool(partitions) == everything:
        raise click.UsageError("name topics or partitions, or say --all")
    with Cluster(bootstrap) as cluster:
        under_way = [each.at for each in ongoing(cluster)]
        named = find_partitions(cluster, partitions)
        chosen = [at for at in under_way if everything or at in named]
        if not chosen:
            raise Failed("none of these is being reassigned; see `cotidal reassign progress`")
        tell_outcomes(
            reassign(cluster, dict.fromkeys(chosen)), "stays where it was", as_json=as_json
        )


def wait_for(cluster: Cluster, partitions: Container[TopicPartition] | None) -> None:
    """Until these (or all) are where they shall be, with a bar of the bytes."""
    from cotidal.cli.progress import Progress
    from cotidal.client.reassignment import look

    def under_way() -> list[Moving]:
        every = look(cluster)
        return [each for each in every if partitions is None or each.ongoing.at in partitions]

    moving = under_way()
    left = sum(each.left_bytes for each in moving)
    with Progress("bytes copied", total=left) as bar:
        while moving:
            time.sleep(LOOK_EVERY_S)
            moving = under_way()
            still = min(left, sum(each.left_bytes for each in moving))
            bar.advance(left - still)
            left = still


def parse_ids(text: str) -> set[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise click.UsageError(f"'{text}' is not a list of broker ids such as 1,2,3")
    return {int(part) for part in parts}


def print_plan(steps: list[Step]) -> None:
    rows: list[list[Cell]] = [
        [
            step.at.topic,
            step.at.partition,
            list_text(step.now),
            list_text(step.planned),
            bytes_text(step.copied_bytes) if set(step.planned) - set(step.now) else None,
        ]
        for step in steps
    ]
    total = sum(step.copied_bytes for step in steps)
    print_table(("TOPIC", "PARTITION", "NOW", "PLANNED", "COPIES"), rows)
    click.echo()
    click.echo(f"{bytes_text(total)} would be copied; begin with `cotidal reassign start`, which")
    click.echo("reads what the same command prints with --json")


def tell_outcomes(outcomes: list[Outcome], done: str, *, as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {
                    "topic": each.at.topic,
                    "partition": each.at.partition,
                    "refused": each.reason or None,
                }
                for each in outcomes
            ]
        )
    else:
        for each in outcomes:
            if not each.error:
                click.echo(f"{each.at} {done}")
    refused = [each for each in outcomes if each.error]
    for each in refused[1:]:
        print(each.reason, file=sys.stderr)
    if refused:
        raise Failed(refused[0].reason)


def moving_row(moving: Moving) -> list[Cell]:
    each = moving.ongoing
    return [
        each.at.topic,
        each.at.partition,
        list_text(each.replicas),
        list_text(each.adding),
        list_text(each.removing),
        bytes_text(moving.left_bytes),
        bytes_text(moving.whole_bytes),
    ]
