"""``--engine`` and ``--master``: where simulated runs are done."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from cotidal.sim.engine import Engine

ENGINES: Final = ("local", "spark")


def master_option(function: click.decorators.FC) -> click.decorators.FC:
    return click.option(
        "--master",
        default="local[*]",
        show_default=True,
        help="Where Spark runs: local[N], or a cluster's spark://host:port.",
    )(function)


def engine_options(function: click.decorators.FC) -> click.decorators.FC:
    return click.option(
        "--engine",
        "engine_name",
        type=click.Choice(ENGINES),
        default="local",
        show_default=True,
        help="Processes of this machine, or the executors of Spark.",
    )(master_option(function))


@contextmanager
def engine_named(name: str, jobs: int | None, master: str) -> Iterator[Engine]:
    if name == "local":
        from cotidal.sim.engine import Here

        yield Here(jobs or os.cpu_count() or 1)
        return
    from cotidal.cli.pipeline import spark_session

    with spark_session("sim", master) as spark:
        from cotidal.spark.engine import OnSpark

        yield OnSpark(spark)
