"""``cotidal sim explore``: look at every state of a small world, within bounds.

Exit status 1 when a promise was broken; with ``--plant``, when the planted bug was not found.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import click

from cotidal.cli.progress import Progress
from cotidal.cli.verb import Failed, Verb, json_option

if TYPE_CHECKING:
    from cotidal.sim.explore.plants import Plant
    from cotidal.sim.explore.quorum_world import QuorumWorld
    from cotidal.sim.explore.replica_world import ReplicaWorld
    from cotidal.sim.explore.search import Limits, Outcome
    from cotidal.sim.explore.worlds import Named


@click.command(
    cls=Verb,
    examples=(
        ("every world, one after the other", "cotidal sim explore"),
        ("one world", "cotidal sim explore replicas"),
        ("a smaller one, in seconds", "cotidal sim explore quorum --bound epochs=1"),
        ("what there is to choose from", "cotidal sim explore --list"),
        ("a bug planted on purpose", "cotidal sim explore --plant joins-early"),
    ),
)
@click.argument("names", metavar="[WORLD]...", nargs=-1)
@click.option(
    "--bound", "given", multiple=True, metavar="NAME=N", help="Another bound; repeatable."
)
@click.option("--plant", "plant_name", metavar="NAME", help="Break the code first; see --list.")
@click.option("--states", type=click.IntRange(min=1), help="End after so many states.")
@click.option(
    "--seconds", type=float, default=600, show_default=True, help="End each after so long."
)
@click.option("--sleep-sets", is_flag=True, help="Leave out orders of moves that do not meet.")
@click.option("--list", "lists", is_flag=True, help="List worlds, their bounds, and plants.")
@json_option
def explore(
    names: tuple[str, ...],
    given: tuple[str, ...],
    plant_name: str | None,
    states: int | None,
    seconds: float,
    sleep_sets: bool,
    lists: bool,
    as_json: bool,
) -> None:
    """Search small worlds of the real machines completely.

    A state is met once, however many ways lead to it; nearer ones are met first, so that the first
    broken promise comes with a shortest story.
    """
    from cotidal.cli.tally import build
    from cotidal.sim.explore.search import Limits

    if lists:
        _list()
        return
    if build() != "plain":  # compiled objects cannot be taken apart and put together again
        raise Failed("sim explore runs on the plain build of cotidal, not on the compiled one")
    plant = None if plant_name is None else _plant(plant_name)
    limits = Limits(seconds=seconds) if states is None else Limits(states, seconds)
    failed = False
    for world in _chosen(names, given, plant):
        failed |= _explore(world, plant, limits, sleep_sets, as_json)
    if failed and plant is None:
        raise Failed("a promise was broken")
    if failed:
        raise Failed(f"the plant {plant_name} was not found")


def _explore(
    named: Named, plant: Plant | None, limits: Limits, sleep_sets: bool, as_json: bool
) -> bool:
    """True if it came out as it should not."""
    from contextlib import nullcontext

    from cotidal.sim.explore import report
    from cotidal.sim.explore.plants import planted
    from cotidal.sim.explore.search import search
    from cotidal.sim.explore.worlds import story

    if not as_json:
        click.echo(f"{named.name}: {named.words()}" + (f", {plant.about}" if plant else ""))
    with planted(plant) if plant else nullcontext(), Progress("states") as progress:
        world = named.made()
        seen = 0

        def advance(states: int, depth: int) -> None:
            nonlocal seen
            progress.advance(states - seen)
            seen = states

        outcome = search(
            world,
            clock=time.monotonic,
            limits=limits,
            sleeping=sleep_sets,
            on_progress=advance,
        )
        if as_json:
            click.echo(json.dumps(_as_json(named, plant, world, outcome)))
        else:
            click.echo(f"  {report.summary(outcome)}")
            for found in outcome.found:
                for line in report.counterexample(story(world, found.path), found):
                    click.echo(f"  {line}")
    return bool(outcome.found) == (plant is None)


def _as_json(
    named: Named, plant: Plant | None, world: ReplicaWorld | QuorumWorld, outcome: Outcome
) -> dict[str, object]:
    from cotidal.sim.explore.worlds import story

    broken = [
        {
            "promise": found.violation.name,
            "moves": len(found.path) - 1,
            "story": story(world, found.path),
        }
        for found in outcome.found
    ]
    return {
        "world": named.name,
        "bounds": named.bounds._asdict(),
        "plant": None if plant is None else plant.name,
        "states": outcome.states,
        "transitions": outcome.transitions,
        "depth": outcome.depth,
        "seconds": round(outcome.seconds, 3),
        "complete": outcome.complete,
        "ended_by": outcome.bound,
        "broken": broken,
    }


def _list() -> None:
    from cotidal.sim.explore.plants import PLANTS
    from cotidal.sim.explore.worlds import WORLDS

    click.echo("Worlds:")
    for world in WORLDS.values():
        click.echo(f"  {world.name:24} {world.about}")
        click.echo(f"  {'':24} {world.words()}")
    click.echo("Plants:")
    for plant in PLANTS.values():
        click.echo(f"  {plant.name:24} {plant.world}: {plant.about}")


def _chosen(names: tuple[str, ...], given: tuple[str, ...], plant: Plant | None) -> list[Named]:
    from cotidal.sim.explore.worlds import WORLDS

    if plant is not None and names not in ((), (plant.world,)):
        raise Failed(f"the plant {plant.name} grows in the world '{plant.world}'", status=2)
    wanted = names or ((plant.world,) if plant else tuple(WORLDS))
    chosen = []
    for name in wanted:
        if name not in WORLDS:
            raise Failed(f"there is no world '{name}'; there are {', '.join(WORLDS)}", status=2)
        world = WORLDS[name]
        try:
            world = world.bounded(plant.bounds) if plant else world
            chosen.append(world.bounded(_bounds(given)))
        except KeyError as unknown:
            fields = ", ".join(field.replace("_", "-") for field in world.bounds._fields)
            sentence = f"'{name}' has no bound {unknown}; it has {fields}"
            raise Failed(sentence, status=2) from None
    return chosen


def _bounds(given: tuple[str, ...]) -> dict[str, int]:
    bounds: dict[str, int] = {}
    for each in given:
        name, _, number = each.partition("=")
        if not number.isdigit():
            raise Failed(f"'{each}' is no bound: NAME=N, a whole number", status=2)
        bounds[name.replace("-", "_")] = int(number)
    return bounds


def _plant(name: str) -> Plant:
    from cotidal.sim.explore.plants import PLANTS

    if name not in PLANTS:
        raise Failed(f"there is no plant '{name}'; there are {', '.join(PLANTS)}", status=2)
    return PLANTS[name]
