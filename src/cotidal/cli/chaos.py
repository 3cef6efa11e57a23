"""``cotidal chaos``: make trouble in a cluster that ``cotidal up`` runs on this machine.

It is found by its data directory (broker/control.py). Processes are sent signals; links and disks
are disturbed by the nodes themselves, if they were started with ``up --chaos``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from cotidal.cli.up import DEFAULT_DATA
from cotidal.cli.verb import Decorated, Failed, Verb, VerbGroup, json_option

if TYPE_CHECKING:
    from cotidal.broker.control import Handle
    from cotidal.broker.faults import Pair


class Chaos(VerbGroup):
    """Verbs about a cluster that may not be there, or not let itself be disturbed."""

    def invoke(self, ctx: click.Context) -> object:
        from cotidal.broker.control import ControlError

        try:
            return super().invoke(ctx)
        except ControlError as wrong:
            raise Failed(str(wrong)) from None


@click.group(
    cls=Chaos,
    examples=(
        ("a cluster to be disturbed", "cotidal up --brokers 3 --chaos"),
        ("kill -9 of a node", "cotidal chaos kill 2"),
        ("and start it again", "cotidal chaos restart 2"),
        ("nodes 1 and 2 lose each other", "cotidal chaos partition 1 2"),
        ("as it was", "cotidal chaos heal"),
    ),
)
def command() -> None:
    """Kill, pause and part the nodes of a cluster started by `cotidal up`."""


def data_option(function: Decorated) -> Decorated:
    return click.option(
        "--data", metavar="DIR", default=DEFAULT_DATA, show_default=True, help="As given to `up`."
    )(function)


def nodes_argument(*, required: bool = True) -> Callable[[Decorated], Decorated]:
    return click.argument("nodes", metavar="NODE...", type=int, nargs=-1, required=required)


def one_way_option(function: Decorated) -> Decorated:
    return click.option(
        "--one-way", is_flag=True, help="Only from the first node to the others, not back."
    )(function)


def handle(data: str) -> Handle:
    from cotidal.broker.control import Handle

    return Handle(os.path.abspath(data))


# Processes


@command.command(cls=Verb, examples=(("kill -9 of two nodes", "cotidal chaos kill 2 3"),))
@nodes_argument()
@data_option
def kill(nodes: tuple[int, ...], data: str) -> None:
    """Kill nodes with -9."""
    cluster = handle(data)
    for node in nodes:
        cluster.kill(node)
        click.echo(f"node {node} is killed; start it again with `cotidal chaos restart {node}`")


@command.command(cls=Verb, examples=(("a node that hangs", "cotidal chaos pause 2"),))
@nodes_argument()
@data_option
def pause(nodes: tuple[int, ...], data: str) -> None:
    """Stop nodes where they are (SIGSTOP): alive, and silent."""
    cluster = handle(data)
    for node in nodes:
        cluster.pause(node)
        click.echo(f"node {node} is paused; it goes on with `cotidal chaos resume {node}`")


@command.command(cls=Verb, examples=(("it goes on", "cotidal chaos resume 2"),))
@nodes_argument()
@data_option
def resume(nodes: tuple[int, ...], data: str) -> None:
    """Let paused nodes go on (SIGCONT)."""
    cluster = handle(data)
    for node in nodes:
        cluster.resume(node)
        click.echo(f"node {node} goes on")


@command.command(
    cls=Verb,
    examples=(
        ("a node that was killed", "cotidal chaos restart 2"),
        ("all of them, one after the other", "cotidal chaos restart 1 2 3"),
    ),
)
@nodes_argument()
@data_option
def restart(nodes: tuple[int, ...], data: str) -> None:
    """Start nodes again, one after the other; those that run are stopped in order first."""
    cluster = handle(data)
    for node in nodes:
        if cluster.pid(node) is not None:
            cluster.stop(node)
        cluster.start(node)
        click.echo(f"node {node} serves again")


# Links


@command.command(
    cls=Verb,
    examples=(
        ("two nodes lose each other", "cotidal chaos partition 1 2"),
        ("node 1 loses all others; clients still reach it", "cotidal chaos partition 1"),
        ("nothing of what 1 says reaches 2", "cotidal chaos partition 1 2 --one-way"),
    ),
)
@nodes_argument()
@one_way_option
@data_option
def partition(nodes: tuple[int, ...], one_way: bool, data: str) -> None:
    """Let nothing pass between the first node and the others; all others if none is named."""
    cluster = handle(data)
    pairs = _pairs(cluster, nodes, one_way=one_way)
    cluster.disturb(lambda faults: faults.held(pairs))
    click.echo(f"nothing passes {_told(pairs)}; `cotidal chaos heal` undoes it")


@command.command(
    cls=Verb,
    examples=(
        ("200 ms longer, in both directions", "cotidal chaos slow 1 2 --by 0.2"),
        ("a node far away from all others", "cotidal chaos slow 3 --by 0.05"),
    ),
)
@nodes_argument()
@click.option(
    "--by",
    "seconds",
    metavar="SECONDS",
    type=click.FloatRange(0.0, 600.0, min_open=True),
    required=True,
    help="How much longer everything takes, in each direction.",
)
@one_way_option
@data_option
def slow(nodes: tuple[int, ...], seconds: float, one_way: bool, data: str) -> None:
    """Slow down what passes between the first node and the others."""
    cluster = handle(data)
    pairs = _pairs(cluster, nodes, one_way=one_way)
    cluster.disturb(lambda faults: faults.slowed(pairs, seconds))
    click.echo(f"everything takes {seconds:g} s longer {_told(pairs)}")


@command.command(
    cls=Verb,
    examples=(
        ("every link", "cotidal chaos heal"),
        ("those between two nodes", "cotidal chaos heal 1 2"),
    ),
)
@nodes_argument(required=False)
@data_option
def heal(nodes: tuple[int, ...], data: str) -> None:
    """Let everything pass again: all links, those of one node, or those between the first and
    the others."""
    cluster = handle(data)
    pairs = _pairs(cluster, nodes, one_way=False) if nodes else []
    cluster.disturb(lambda faults: faults.healed(pairs or faults.delays))
    click.echo("every link is open" if not nodes else f"everything passes {_told(pairs)}")


@command.command(cls=Verb, examples=(("who runs, and which links are bad", "cotidal chaos show"),))
@data_option
@json_option
def show(data: str, as_json: bool) -> None:
    """Show which nodes run and what is done to links."""
    import json

    from cotidal.broker.faults import HELD
    from cotidal.cli.table import print_table

    cluster = handle(data)
    rows = [(f"node {node}", cluster.state(node)) for node in cluster.nodes]
    if cluster.up.chaos:
        for (source, target), delay in sorted(cluster.faults.delays.items()):
            how = "nothing passes" if delay == HELD else f"{delay:g} s longer"
            rows.append((f"from {source} to {target}", how))
    if as_json:
        click.echo(json.dumps(dict(rows)))
    else:
        print_table(("what", "how it is"), rows)


def _pairs(cluster: Handle, nodes: tuple[int, ...], *, one_way: bool) -> list[Pair]:
    from cotidal.broker.faults import both_ways

    for node in nodes:
        cluster.pid(node)  # is there such a node?
    first, *others = nodes
    others = others or [node for node in cluster.nodes if node != first]
    if first in others:
        raise Failed(f"node {first} cannot be parted from itself", status=2)
    return [(first, other) for other in others] if one_way else both_ways(first, others)


def _told(pairs: list[Pair]) -> str:
    return ", ".join(f"from {source} to {target}" for source, target in sorted(pairs))
