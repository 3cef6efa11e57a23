"""``cotidal up``: a local cluster, with nothing to configure.

One broker runs in this process, several are processes of their own (broker/family.py). Where they
keep their data and listen is laid out by broker/local.py.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

import click

from cotidal.cli.settings_given import parse_settings
from cotidal.cli.verb import Failed, Verb

if TYPE_CHECKING:
    from cotidal.broker.listeners import Listener

DEFAULT_DATA: Final = "cotidal-data"
DEFAULT_BROKERS: Final = 3
EACH_ITS_OWN: Final = (
    "node.id",
    "listeners",
    "advertised.listeners",
    "log.dir",
    "log.dirs",
    "metadata.log.dir",
    "broker.rack",
    "process.roles",
    "controller.quorum.voters",
)
"""Settings that several brokers cannot share."""


@click.command(
    cls=Verb,
    examples=(
        ("three brokers from localhost:9092 on, with their data in ./cotidal-data", "cotidal up"),
        ("one broker, in one process", "cotidal up --brokers 1"),
        (
            "with controllers of their own, as large clusters have them",
            "cotidal up --controllers 3",
        ),
        ("somewhere else", "cotidal up --port 19092 --data /var/tmp/kafka"),
        ("one that leaves nothing behind", "cotidal up --ephemeral"),
        ("with a setting of your own", "cotidal up --override num.partitions=3"),
        ("to be disturbed by `cotidal chaos`, or from its page", "cotidal up --chaos"),
    ),
)
@click.option(
    "--brokers",
    type=click.IntRange(1, 100),
    metavar="N",
    help=f"How many brokers.  [default: as many as have data there, or {DEFAULT_BROKERS}]",
)
@click.option(
    "--controllers",
    type=click.Choice(["1", "3", "5"]),
    metavar="1|3|5",
    help="So many beside the brokers.  [default: the first brokers are]",
)
@click.option("--data", metavar="DIR", help=f"Where to keep the data.  [default: {DEFAULT_DATA}]")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="Where the first listens, others after it.  [default: 9092, or free ones]",
)
@click.option("--ephemeral", is_flag=True, help="Keep the data nowhere: it goes with the process.")
@click.option("--chaos", is_flag=True, help="Let `cotidal chaos` disturb the links of nodes.")
@click.option("--trace", metavar="DIR", help="Record every step of every node, for `sim replay`.")
@click.option(
    "--console-port",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="Where the cluster is shown as a page.  [default: 8088, or the next free one]",
)
@click.option("--no-console", is_flag=True, help="Show it nowhere.")
@click.option("--override", metavar="NAME=VALUE", multiple=True, help="A broker setting.")
def command(
    brokers: int | None,
    controllers: str | None,
    data: str | None,
    port: int | None,
    ephemeral: bool,
    chaos: bool,
    trace: str | None,
    console_port: int | None,
    no_console: bool,
    override: tuple[str, ...],
) -> int:
    """Start a local cluster in the foreground; Ctrl-C stops it cleanly.

    A new data directory is formatted; one that has data goes on with it.
    """
    if no_console and console_port is not None:
        raise click.UsageError("--no-console has no port: leave --console-port out")
    if ephemeral and data is not None:
        raise click.UsageError("--ephemeral keeps no data: leave --data out")
    asked = os.path.abspath(data or DEFAULT_DATA)
    brokers, beside = how_many(brokers, controllers, None if ephemeral else asked)
    if chaos and brokers + beside == 1:
        raise click.UsageError("one broker has no links to disturb: add --brokers 3")
    overrides = {"cotidal.events.enable": "true"} | parse_settings(override)
    if brokers + beside > 1:
        for name in EACH_ITS_OWN:
            if name in overrides:
                raise click.UsageError(f"each of {brokers + beside} nodes has a {name} of its own")
    check({"node.id": "1"} | overrides)  # a mistake leaves nothing behind
    with ExitStack() as cleanup:
        path = ephemeral_directory(cleanup) if ephemeral else asked
        kept = "no data is kept" if ephemeral else f"data in {path}"
        if ephemeral and chaos:
            kept = f"data in {path} until then"
        listener = None if no_console else console_listener(console_port)
        if listener is not None:
            cleanup.enter_context(listener)
        status = run(
            brokers,
            beside,
            path,
            port,
            overrides,
            kept,
            chaos=chaos,
            trace=trace,
            console=listener,
        )
        if status == 0:
            click.echo("cotidal has stopped" + ("" if ephemeral else f"; its data stays in {path}"))
        return status


def how_many(brokers: int | None, controllers: str | None, path: str | None) -> tuple[int, int]:
    """Brokers, and controllers beside them: as asked, else as in the data that is there."""
    from cotidal.broker.local import held_in

    held = None if path is None else held_in(path)
    if held is None:
        return brokers or DEFAULT_BROKERS, int(controllers or 0)
    if brokers is None and controllers is None:
        return held
    return brokers or held.brokers, int(controllers or 0)


def run(
    brokers: int,
    controllers: int,
    path: str,
    port: int | None,
    overrides: dict[str, str],
    kept: str,
    *,
    chaos: bool,
    trace: str | None,
    console: socket.socket | None,
) -> int:
    from cotidal.broker.family import Family
    from cotidal.broker.local import LayoutError, lay_out
    from cotidal.broker.main import run_broker
    from cotidal.broker.tracing import trace_file

    def say(sentence: str) -> None:
        click.echo(sentence, err=True)

    try:
        configs = lay_out(
            brokers, path, controllers=controllers, port=port, overrides=overrides, say=say
        )
    except LayoutError as wrong:
        raise Failed(str(wrong), status=2 if wrong.asked else 1) from None
    addresses = [address for config in configs for address in config.advertised]
    is_one = len(configs) == 1
    with beside_it(console, addresses, home=None if is_one else path) as page:
        if is_one:
            return run_broker(
                configs[0],
                on_serving=lambda running: say_up(running.addresses, kept, page),
                trace=trace_file(trace, configs[0].node_id, 1),
            )
        family = Family(
            configs,
            home=path,
            chaos=chaos,
            trace=trace,
            on_up=lambda: say_up(addresses, kept, page),
            say=say,
        )
        return family.run()


def console_listener(port: int | None) -> socket.socket | None:
    """Where the console is to be; None, and it is said why, if there can be none."""
    from cotidal.cli.attendant import PORT, PORTS_TRIED, listen, missing_package

    lacks = missing_package()
    if lacks:
        how = f"{lacks} is not installed: `pip install 'cotidal[console]'`"
        click.echo(f"there is no console, because {how}", err=True)
        return None
    listener = listen(port)
    if listener is None:
        tried = f"{PORT} to {PORT + PORTS_TRIED - 1}"
        click.echo(f"there is no console: ports {tried} are taken; see --console-port", err=True)
    return listener


@contextmanager
def beside_it(
    console: socket.socket | None, addresses: Iterable[Listener], *, home: str | None
) -> Iterator[str]:
    """The address of its page; empty if there is none."""
    if console is None:
        yield ""
        return
    from cotidal.cli.attendant import attendant

    port = console.getsockname()[1]
    with attendant(console, bootstrap=listed(addresses), home=home):
        yield f"http://localhost:{port}/"


def check(settings: dict[str, str]) -> None:
    from cotidal.broker.config import ConfigError, make_config

    try:
        make_config(settings)
    except ConfigError as wrong:
        raise Failed(str(wrong), status=2) from None


def listed(addresses: Iterable[Listener]) -> str:
    return ",".join(f"{each.host}:{each.port}" for each in addresses)


def say_up(addresses: Iterable[Listener], kept: str, page: str) -> None:
    click.echo(f"cotidal is up: {listed(addresses)} ({kept}; Ctrl-C stops it)")
    if page:
        click.echo(f"its console is at {page}")


def ephemeral_directory(cleanup: ExitStack) -> str:
    from tempfile import TemporaryDirectory

    return cleanup.enter_context(TemporaryDirectory(prefix="cotidal-", ignore_cleanup_errors=True))
