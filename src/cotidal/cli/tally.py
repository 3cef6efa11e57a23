"""``cotidal sim tally``: what campaigns have run over days, and how ``sim run`` writes it down."""

from __future__ import annotations

import json
import time
from types import TracebackType
from typing import TYPE_CHECKING, Final

import click

from cotidal.cli.table import print_table
from cotidal.cli.verb import Failed, Verb, json_option

if TYPE_CHECKING:
    from cotidal.sim.run import Outcome
    from cotidal.sim.totals import Part

RUNS_PER_LINE: Final = 500
SECONDS_PER_LINE: Final = 60.0
"""A campaign that is killed loses no more than these; one that is broken off, nothing."""


class Tally:
    """Appends what has been run to a file, a minute or some hundred runs to a line. None: to no
    file."""

    __slots__ = ("_begun", "_commit", "_outcomes", "_path")

    def __init__(self, path: str | None, commit: str) -> None:
        self._path = path
        self._commit = commit
        self._outcomes: list[Outcome] = []
        self._begun = time.monotonic()

    def __enter__(self) -> Tally:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._write()

    def add(self, outcome: Outcome) -> None:
        if self._path is not None:
            self._outcomes.append(outcome._replace(trace=()))
            took = time.monotonic() - self._begun
            if len(self._outcomes) >= RUNS_PER_LINE or took >= SECONDS_PER_LINE:
                self._write()

    def _write(self) -> None:
        from cotidal.sim.totals import line_of, part_of

        outcomes, self._outcomes = self._outcomes, []
        begun, self._begun = self._begun, time.monotonic()
        if outcomes and self._path is not None:
            took = self._begun - begun
            part = part_of(outcomes, commit=self._commit, build=build(), seconds=took)
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(line_of(part) + "\n")


def build() -> str:
    """How the simulator that runs here was built."""
    from cotidal.core import machine

    return "plain" if (machine.__file__ or "").endswith(".py") else "compiled"


@click.command(
    cls=Verb,
    examples=(
        ("write it down", "cotidal sim run --plan harsh --seeds 1000 --tally runs.jsonl"),
        ("add it up", "cotidal sim tally runs.jsonl"),
        ("keep it", "cotidal sim tally kept.jsonl runs.jsonl --gather kept.jsonl"),
    ),
)
@click.argument("files", type=click.Path(), nargs=-1, required=True)
@click.option("--gather", metavar="FILE", help="Write all of it there, in few lines.")
@json_option
def tally(files: tuple[str, ...], gather: str | None, as_json: bool) -> None:
    """Add up what `sim run --tally` wrote down: seeds, steps of nodes, protocol events and
    failures of every plan.

    A seed that ran twice, on another commit say, is one seed and two runs. Steps a second are of
    all processes together.
    """
    from cotidal.sim.totals import add_up, gathered, line_of

    parts = _parts(files)
    totals = add_up(parts)
    if gather is not None:
        lines = [line_of(part) + "\n" for part in gathered(parts)]
        try:
            with open(gather, "w", encoding="utf-8") as file:
                file.writelines(lines)
        except OSError as wrong:
            raise Failed(f"{gather}: {wrong.strerror}", status=2) from None
    if as_json:
        click.echo(json.dumps([total._asdict() for total in totals]))
        return
    print_table(
        (
            "plan",
            "commits",
            "seeds",
            "runs",
            "steps",
            "events",
            "steps/s",
            "failed",
            "met too rarely",
        ),
        [
            (
                total.plan,
                total.commits,
                total.seeds,
                total.runs,
                total.steps,
                total.events,
                round(total.steps / total.seconds) if total.seconds else None,
                len(total.failed),
                len(total.missing),
            )
            for total in totals
        ],
    )
    for total in totals:
        for situation in total.missing:
            click.echo(f"{total.plan}: met in fewer than one run of a hundred: {situation}")
        if total.failed:
            shown = ", ".join(map(str, total.failed[:20]))
            click.echo(f"{total.plan}: seeds that broke a promise: {shown}")


def _parts(files: tuple[str, ...]) -> list[Part]:
    from cotidal.sim.totals import parse_line

    parts = []
    for path in files:
        try:
            file = open(path, encoding="utf-8")  # noqa: SIM115 - closed below
        except OSError as wrong:
            raise Failed(f"{path}: {wrong.strerror}", status=2) from None
        with file:
            for number, line in enumerate(file, 1):
                try:
                    parts.append(parse_line(line))
                except ValueError as wrong:
                    raise Failed(f"{path}, line {number}: {wrong}", status=2) from None
    return parts
