"""``cotidal up``: a local cluster, with nothing to configure.

One broker runs in this process, on the data directory itself. Several are processes of their own
(broker/family.py), each with a directory ``node-K`` in it and a rack of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import ExitStack
from errno import EADDRINUSE
from itertools import islice
from typing import TYPE_CHECKING, Final

import click

from cotidal.cli.settings_given import parse_settings
from cotidal.cli.verb import Failed, Verb

if TYPE_CHECKING:
    from cotidal.broker.config import BrokerConfig
    from cotidal.broker.listeners import Listener

DEFAULT_DATA: Final = "cotidal-data"
DEFAULT_PORT: Final = 9092
PORTS_TRIED: Final = 100
CONTROLLER_PORTS_AWAY: Final = 10_000
"""Controllers listen on ports this far from those of clients: near enough to be recognised."""

CALLERS_PORTS_FROM: Final = 32_768
"""From here on systems take the ports of callers (Linux; others higher up). A node that knocks at
one of them while its owner is down may be given that very port."""

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

_NODE_DIRECTORY: Final = re.compile(r"node-[1-9][0-9]*")


@click.command(
    cls=Verb,
    examples=(
        ("a broker on localhost:9092, with its data in ./cotidal-data", "cotidal up"),
        ("three brokers, each a process of its own", "cotidal up --brokers 3"),
        ("somewhere else", "cotidal up --port 19092 --data /var/tmp/kafka"),
        ("one that leaves nothing behind", "cotidal up --ephemeral"),
        ("with a setting of your own", "cotidal up --override num.partitions=3"),
    ),
)
@click.option(
    "--brokers",
    type=click.IntRange(1, 100),
    metavar="N",
    default=1,
    show_default=True,
    help="How many brokers.",
)
@click.option("--data", metavar="DIR", help=f"Where to keep the data.  [default: {DEFAULT_DATA}]")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help=f"Where the first listens, others after it.  [default: {DEFAULT_PORT}, or free ones]",
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
    if console_port is not None:
        raise Failed("the console is not there yet; leave --console-port out", status=2)
    if ephemeral and data is not None:
        raise click.UsageError("--ephemeral keeps no data: leave --data out")
    overrides = parse_settings(override)
    if brokers > 1:
        for name in EACH_ITS_OWN:
            if name in overrides:
                raise click.UsageError(f"each of {brokers} brokers has a {name} of its own")
    checked({"node.id": "1"} | overrides)  # a mistake leaves nothing behind
    with ExitStack() as cleanup:
        path = ephemeral_directory(cleanup) if ephemeral else os.path.abspath(data or DEFAULT_DATA)
        kept = "no data is kept" if ephemeral else f"data in {path}"
        if brokers == 1:
            status = run_one(path, port, overrides, kept)
        else:
            status = run_several(brokers, path, port, overrides, kept)
        if status == 0:
            click.echo("cotidal has stopped" + ("" if ephemeral else f"; its data stays in {path}"))
        return status


def run_one(path: str, port: int | None, overrides: dict[str, str], kept: str) -> int:
    from cotidal.broker.main import run_broker

    if count_nodes(path):
        raise Failed(_holds_several(path, count_nodes(path)))
    prepare(path, node_id=1)
    ports = client_ports(1, port) if "listeners" not in overrides else [0]
    config = checked(
        replication(1)
        | {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"PLAINTEXT://localhost:{ports[0]}",
            "log.dirs": path,
        }
        | overrides
    )
    return run_broker(config, on_serving=lambda running: say_up(running.addresses, kept))


def run_several(
    brokers: int, path: str, port: int | None, overrides: dict[str, str], kept: str
) -> int:
    from cotidal.broker.family import Family

    prepare_several(brokers, path)
    configs = configure(brokers, path, port, overrides)
    addresses = [address for config in configs for address in config.advertised]
    family = Family(
        configs,
        on_up=lambda: say_up(addresses, kept),
        say=lambda sentence: click.echo(sentence, err=True),
    )
    return family.run()


def configure(
    brokers: int, path: str, port: int | None, overrides: dict[str, str]
) -> list[BrokerConfig]:
    """One configuration for each node."""
    ports = client_ports(brokers, port)
    voting = voters(brokers)
    controller_ports = ports_beside(ports[: len(voting)])
    quorum = ",".join(
        f"{node}@127.0.0.1:{at}" for node, at in zip(voting, controller_ports, strict=True)
    )
    configs = []
    for number in range(1, brokers + 1):
        listeners = f"PLAINTEXT://localhost:{ports[number - 1]}"
        roles = "broker"
        if number in voting:
            listeners += f",CONTROLLER://127.0.0.1:{controller_ports[number - 1]}"
            roles = "broker,controller"
        own = {
            "process.roles": roles,
            "node.id": str(number),
            "broker.rack": f"rack-{number}",
            "listeners": listeners,
            "controller.quorum.voters": quorum,
            "log.dirs": node_directory(path, number),
        }
        metrics = overrides.get("cotidal.metrics.port", "")
        if metrics.isdigit() and int(metrics):
            own["cotidal.metrics.port"] = str(int(metrics) + number - 1)
        configs.append(checked(replication(brokers) | overrides | own))
    return configs


def voters(brokers: int) -> range:
    """Which nodes are controllers too: five at most, and an odd number from three on."""
    count = brokers if brokers <= 3 else 3 if brokers == 4 else 5
    return range(1, count + 1)


def replication(brokers: int) -> dict[str, str]:
    """As many replicas as make sense, and as many of them in sync as survive a loss."""
    factor = str(min(3, brokers))
    in_sync = "2" if brokers >= 3 else "1"
    found = {
        "default.replication.factor": factor,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": in_sync,
    }
    if brokers > 1:
        found["replica.selector.class"] = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    return found


def checked(settings: dict[str, str]) -> BrokerConfig:
    from cotidal.broker.config import ConfigError, make_config

    try:
        return make_config(settings)
    except ConfigError as wrong:
        raise Failed(str(wrong), status=2) from None


def say_up(addresses: Iterable[Listener], kept: str) -> None:
    told = ",".join(f"{each.host}:{each.port}" for each in addresses)
    click.echo(f"cotidal is up: {told} ({kept}; Ctrl-C stops it)")


# Directories -----------------------------------------------------------------------------------


def node_directory(path: str, number: int) -> str:
    return f"{path}/node-{number}"


def count_nodes(path: str) -> int:
    """How many brokers have their data in directories of their own here."""
    if not os.path.isdir(path):
        return 0
    return sum(1 for name in os.listdir(path) if _NODE_DIRECTORY.fullmatch(name))


def prepare_several(brokers: int, path: str) -> None:
    """Format the directories of a new cluster; refuse those of another one."""
    from cotidal.broker.storage import StorageError, is_formatted, new_id, read_meta
    from cotidal.log.files import OsFiles
    from cotidal.values import uuid_text

    files = OsFiles()
    if is_formatted(files, path):
        raise Failed(
            f"{path} holds the data of one broker; leave --brokers out, or name another with --data"
        )
    held = count_nodes(path)
    if held not in (0, brokers):
        raise Failed(_holds_several(path, held))
    if not held and os.path.isdir(path) and os.listdir(path):
        raise Failed(f"{path} holds other files and no cotidal data; name another with --data")
    try:
        cluster_id = (
            read_meta(files, node_directory(path, 1)).cluster_id if held else uuid_text(new_id())
        )
    except StorageError as wrong:
        raise Failed(str(wrong)) from None
    for number in range(1, brokers + 1):
        prepare(node_directory(path, number), node_id=number, cluster_id=cluster_id)


def prepare(path: str, *, node_id: int, cluster_id: str | None = None) -> None:
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
            format_storage(files, path, node_id=NodeId(node_id), cluster_id=cluster_id)
            return
        meta = read_meta(files, path)
        lock = files.lock(f"{path}/{LOCK}")
    except StorageError as wrong:
        raise Failed(str(wrong)) from None
    if meta.node_id != node_id:
        raise Failed(
            f"{path} belongs to node {meta.node_id}; run it with `cotidal broker`, "
            "or name another with --data"
        )
    if lock is None:
        raise Failed(f"{path} is in use by another process; stop it, or name another with --data")
    lock.release()


def _holds_several(path: str, held: int) -> str:
    return (
        f"{path} holds the data of {held} brokers; run it with --brokers {held}, or name another"
        " with --data"
    )


# Ports -----------------------------------------------------------------------------------------


def client_ports(brokers: int, port: int | None) -> list[int]:
    """Free ones for all: from the asked one on without a gap, or whichever come first."""
    first = DEFAULT_PORT if port is None else port
    if port is not None:
        if port + brokers - 1 > 65535:
            raise Failed(f"{brokers} ports from {port} on: there are none past 65535", status=2)
        for each in range(port, port + brokers):
            if not is_free("localhost", each):
                raise Failed(
                    f"cannot listen on localhost:{each}: the port is in use; choose another with"
                    " --port"
                )
        return list(range(port, port + brokers))
    tried = range(first, first + PORTS_TRIED + brokers - 1)
    found: list[int] = []
    for each in tried:
        if is_free("localhost", each):
            found.append(each)
        if len(found) == brokers:
            break
    else:
        raise Failed(f"too few of the ports {first} to {tried[-1]} are free; name one with --port")
    if found[0] != first:
        click.echo(f"port {first} is in use: {found[0]} is taken instead", err=True)
    return found


def ports_beside(ports: list[int]) -> list[int]:
    """A free one for each controller."""
    away = CONTROLLER_PORTS_AWAY
    highest = CALLERS_PORTS_FROM - PORTS_TRIED - len(ports)
    choices = (ports[0] + away, ports[0] - away, away + ports[0] % away)
    first = next(port for port in choices if 1024 <= port <= highest)
    tried = range(first, first + PORTS_TRIED + len(ports))
    free = (each for each in tried if each not in ports and is_free("127.0.0.1", each))
    found = list(islice(free, len(ports)))
    if len(found) < len(ports):
        raise Failed(f"too few of the ports {first} to {tried[-1]} are free for controllers")
    return found


def is_free(host: str, port: int) -> bool:
    from cotidal.broker.listeners import Listener, ListenerError, bind

    try:
        _, sockets = bind(Listener("PLAINTEXT", host, port))
    except ListenerError as wrong:
        if isinstance(wrong.__cause__, OSError) and wrong.__cause__.errno == EADDRINUSE:
            return False
        raise Failed(f"{wrong}; choose another with --port") from None
    for each in sockets:
        each.close()
    return True


def ephemeral_directory(cleanup: ExitStack) -> str:
    from tempfile import TemporaryDirectory

    return cleanup.enter_context(TemporaryDirectory(prefix="cotidal-", ignore_cleanup_errors=True))
