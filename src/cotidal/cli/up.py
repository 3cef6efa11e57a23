"""``cotidal up``: a local cluster, with nothing to configure."""

from __future__ import annotations

import os
from contextlib import ExitStack
from errno import EADDRINUSE
from typing import TYPE_CHECKING, Final

import click

from cotidal.cli.settings_given import parse_settings
from cotidal.cli.verb import Failed, Verb

if TYPE_CHECKING:
    from cotidal.broker.main import Running

DEFAULT_DATA: Final = "cotidal-data"
DEFAULT_PORT: Final = 9092
PORTS_TRIED: Final = 100
NODE_ID: Final = 1

ONE_BROKER: Final = {
    "process.roles": "broker,controller",
    "node.id": str(NODE_ID),
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


@click.command(
    cls=Verb,
    examples=(
        ("a broker on localhost:9092, with its data in ./cotidal-data", "cotidal up"),
        ("somewhere else", "cotidal up --port 19092 --data /var/tmp/kafka"),
        ("one that leaves nothing behind", "cotidal up --ephemeral"),
        ("with a setting of your own", "cotidal up --override num.partitions=3"),
    ),
)
@click.option(
    "--brokers",
    type=click.IntRange(min=1),
    metavar="N",
    default=1,
    show_default=True,
    help="How many brokers; more than one is not there yet.",
)
@click.option("--data", metavar="DIR", help=f"Where to keep the data.  [default: {DEFAULT_DATA}]")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help=f"Where to listen.  [default: {DEFAULT_PORT}, or the next free one]",
)
@click.option("--ephemeral", is_flag=True, help="Keep the data nowhere: it goes with the process.")
@click.option("--console-port", type=int, metavar="PORT", help="Not there yet.")
@click.option("--override", metavar="NAME=VALUE", multiple=True, help="A broker setting.")
def command(
    brokers: int,
    data: str | None,
    port: int | None,
    ephemeral: bool,
    console_port: int | None,
    override: tuple[str, ...],
) -> int:
    """Start a local cluster in the foreground; Ctrl-C stops it cleanly.

    A new data directory is formatted; one that has data goes on with it.
    """
    if brokers > 1:
        raise Failed("more than one broker is not there yet; leave --brokers out", status=2)
    if console_port is not None:
        raise Failed("the console is not there yet; leave --console-port out", status=2)
    if ephemeral and data is not None:
        raise click.UsageError("--ephemeral keeps no data: leave --data out")
    overrides = parse_settings(override)
    with ExitStack() as cleanup:
        path = ephemeral_directory(cleanup) if ephemeral else os.path.abspath(data or DEFAULT_DATA)
        return run(path, port, overrides, ephemeral=ephemeral)


def run(path: str, port: int | None, overrides: dict[str, str], *, ephemeral: bool) -> int:
    from cotidal.broker.config import ConfigError, make_config
    from cotidal.broker.main import run_broker

    prepare(path)
    listening = port if port is not None else DEFAULT_PORT
    if "listeners" not in overrides:
        listening = free_port(listening, only=port is not None)
    settings = ONE_BROKER | {
        "listeners": f"PLAINTEXT://localhost:{listening}",
        "log.dirs": path,
    }
    try:
        config = make_config(settings | overrides)
    except ConfigError as wrong:
        raise Failed(str(wrong), status=2) from None

    def say_up(running: Running) -> None:
        told = ",".join(f"{each.host}:{each.port}" for each in running.addresses)
        kept = "no data is kept" if ephemeral else f"data in {path}"
        click.echo(f"cotidal is up: {told} ({kept}; Ctrl-C stops it)")

    status = run_broker(config, on_serving=say_up)
    if status == 0:
        click.echo("cotidal has stopped" + ("" if ephemeral else f"; its data stays in {path}"))
    return status


def prepare(path: str) -> None:
    """Format a new directory; refuse one that belongs to another node or process."""
    from cotidal.broker.storage import LOCK, StorageError, format_storage, is_formatted, read_meta
    from cotidal.log.files import OsFiles
    from cotidal.values import NodeId

    files = OsFiles()
    try:
        if not is_formatted(files, path):
            if os.path.isdir(path) and os.listdir(path):
                raise Failed(
                    f"{path} holds other files and no cotidal data; name another with --data"
                )
            format_storage(files, path, node_id=NodeId(NODE_ID))
            return
        meta = read_meta(files, path)
        lock = files.lock(f"{path}/{LOCK}")
    except StorageError as wrong:
        raise Failed(str(wrong)) from None
    if meta.node_id != NODE_ID:
        raise Failed(
            f"{path} belongs to node {meta.node_id}; run it with `cotidal broker`, "
            "or name another with --data"
        )
    if lock is None:
        raise Failed(f"{path} is in use by another process; stop it, or name another with --data")
    lock.release()


def free_port(port: int, *, only: bool) -> int:
    """This port, or the next free one unless only this will do."""
    from cotidal.broker.listeners import Listener, ListenerError, bind

    for candidate in [port] if only else range(port, port + PORTS_TRIED):
        try:
            _, sockets = bind(Listener("PLAINTEXT", "localhost", candidate))
        except ListenerError as wrong:
            taken = isinstance(wrong.__cause__, OSError) and wrong.__cause__.errno == EADDRINUSE
            if not taken:
                raise Failed(f"{wrong}; choose another with --port") from None
            continue
        for each in sockets:
            each.close()
        if candidate != port:
            click.echo(f"port {port} is in use: {candidate} is taken instead", err=True)
        return candidate
    if only:
        raise Failed(
            f"cannot listen on localhost:{port}: the port is in use; choose another with --port"
        )
    raise Failed(f"ports {port} to {port + PORTS_TRIED - 1} are all in use; name one with --port")


def ephemeral_directory(cleanup: ExitStack) -> str:
    from tempfile import TemporaryDirectory

    return cleanup.enter_context(TemporaryDirectory(prefix="cotidal-", ignore_cleanup_errors=True))
