"""A cluster on this machine: a directory, a port and a configuration for each of its nodes.

One node lives in the data directory itself, several in directories ``node-K`` of it, each broker
with a rack of its own. The first brokers are the controllers too, unless controllers of their own
are asked for: these are numbered from FIRST_CONTROLLER on, so that brokers can be told from them by
their number. What cannot be is told in one sentence (LayoutError), before anything is written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from errno import EADDRINUSE
from itertools import islice
from typing import Final, NamedTuple

from cotidal.broker.config import BrokerConfig, make_config
from cotidal.broker.listeners import Listener, ListenerError, bind
from cotidal.broker.storage import (
    LOCK,
    StorageError,
    format_storage,
    is_formatted,
    new_id,
    read_meta,
)
from cotidal.log.files import OsFiles
from cotidal.values import NodeId, uuid_text
from cotidal.words import counted

DEFAULT_PORT: Final = 9092
PORTS_TRIED: Final = 100
CONTROLLER_PORTS_AWAY: Final = 10_000
"""Controllers listen on ports this far from those of clients: near enough to be recognised."""

CALLERS_PORTS_FROM: Final = 32_768
"""From here on systems take the ports of callers (Linux; others higher up). A node that knocks at
one of them while its owner is down may be given that very port."""

BROKERS_MAX: Final = 100
FIRST_CONTROLLER: Final = BROKERS_MAX + 1

_NODE_DIRECTORY: Final = re.compile(r"node-([1-9][0-9]*)")


class LayoutError(Exception):
    """There cannot be such a cluster here; one sentence. ``asked``: what was asked for is wrong."""

    def __init__(self, sentence: str, *, asked: bool = False) -> None:
        super().__init__(sentence)
        self.asked = asked


class Layout(NamedTuple):
    """Several nodes, each with a directory of its own."""

    brokers: int
    controllers: int
    """That are nothing else."""

    def __str__(self) -> str:
        beside = f" and {counted(self.controllers, 'controller')}" if self.controllers else ""
        return counted(self.brokers, "broker") + beside

    @property
    def options(self) -> str:
        """What to run it with."""
        beside = f" --controllers {self.controllers}" if self.controllers else ""
        return f"--brokers {self.brokers}{beside}"


def lay_out(
    brokers: int,
    path: str,
    *,
    controllers: int = 0,
    port: int | None = None,
    overrides: Mapping[str, str] | None = None,
    say: Callable[[str], None] = lambda sentence: None,
) -> list[BrokerConfig]:
    """Prepare the directories and configure each node.

    ``controllers``: so many beside the brokers; 0: the first brokers are. ``port``: where the first
    broker listens, others after it; None: wherever there is room. ``overrides``: settings of all
    of them. ``say``: what the user may want to know.
    """
    if brokers == 1 and not controllers:
        _prepare_one(path)
        return [_configure_one(path, port, overrides or {}, say)]
    asked = Layout(brokers, controllers)
    _prepare_several(asked, path)
    return configure(asked, path, client_ports(brokers, port, say), overrides or {})


def _configure_one(
    path: str, port: int | None, overrides: Mapping[str, str], say: Callable[[str], None]
) -> BrokerConfig:
    own = {"process.roles": "broker,controller", "node.id": "1", "log.dirs": path}
    if "listeners" not in overrides:
        own["listeners"] = own["advertised.listeners"] = _for_clients(client_ports(1, port, say)[0])
    return make_config(replication(1) | own | dict(overrides))


def configure(
    asked: Layout, path: str, ports: list[int], overrides: Mapping[str, str]
) -> list[BrokerConfig]:
    """One configuration for each of several nodes."""
    voting = voters(asked)
    deciding = dict(zip(voting, ports_beside(ports, len(voting)), strict=True))
    quorum = ",".join(f"{node}@127.0.0.1:{at}" for node, at in deciding.items())
    serving = dict(enumerate(ports, 1))
    configs = []
    for place, number in enumerate(numbers(asked)):
        own = {
            "node.id": str(number),
            "controller.quorum.voters": quorum,
            "log.dirs": node_directory(path, number),
        }
        roles, listeners = [], []
        if number in serving:
            roles.append("broker")
            own["advertised.listeners"] = _for_clients(serving[number])
            listeners.append(own["advertised.listeners"])
            own["broker.rack"] = f"rack-{number}"
        if number in deciding:
            roles.append("controller")
            listeners.append(f"CONTROLLER://127.0.0.1:{deciding[number]}")
        own["process.roles"] = ",".join(roles)
        own["listeners"] = ",".join(listeners)
        metrics = overrides.get("cotidal.metrics.port", "")
        if metrics.isdigit() and int(metrics):
            own["cotidal.metrics.port"] = str(int(metrics) + place)
        configs.append(make_config(replication(asked.brokers) | dict(overrides) | own))
    return configs


def _for_clients(port: int) -> str:
    return f"PLAINTEXT://localhost:{port}"


def numbers(asked: Layout) -> tuple[int, ...]:
    """Of all nodes: brokers, then controllers of their own."""
    own = range(FIRST_CONTROLLER, FIRST_CONTROLLER + asked.controllers)
    return (*range(1, asked.brokers + 1), *own)


def voters(asked: Layout) -> tuple[int, ...]:
    """Which nodes are controllers: those that are nothing else, or the first brokers: five at most,
    and an odd number from three on."""
    if asked.controllers:
        return numbers(asked)[asked.brokers :]
    count = asked.brokers if asked.brokers <= 3 else 3 if asked.brokers == 4 else 5
    return numbers(asked)[:count]


def replication(brokers: int) -> dict[str, str]:
    """As many replicas as make sense, and as many of them in sync as survive a loss."""
    factor = str(min(3, brokers))
    in_sync = "2" if brokers >= 3 else "1"
    found = {
        "default.replication.factor": factor,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": factor,
        "offsets.topic.num.partitions": "12",  # 50 make the first group wait, and nobody needs them
        "group.initial.rebalance.delay.ms": "0",  # as in the server.properties that Kafka ships
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": in_sync,
    }
    if brokers > 1:
        found["replica.selector.class"] = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    return found


# Directories -----------------------------------------------------------------------------------


def node_directory(path: str, number: int) -> str:
    return f"{path}/node-{number}"


def count_nodes(path: str) -> Layout | None:
    """Whose data is in directories of their own here; None where there are none."""
    if not os.path.isdir(path):
        return None
    found = [_NODE_DIRECTORY.fullmatch(name) for name in os.listdir(path)]
    held = [int(name[1]) for name in found if name]
    brokers = sum(number < FIRST_CONTROLLER for number in held)
    return Layout(brokers, len(held) - brokers) if held else None


def held_in(path: str) -> Layout | None:
    """Whose data is here, of one node or of several; None where there is none."""
    return Layout(1, 0) if is_formatted(OsFiles(), path) else count_nodes(path)


def _prepare_one(path: str) -> None:
    held = count_nodes(path)
    if held is not None:
        raise LayoutError(_holds_several(path, held))
    prepare(path, node_id=1)


def _prepare_several(asked: Layout, path: str) -> None:
    """Format the directories of a new cluster; refuse those of another one."""
    files = OsFiles()
    if is_formatted(files, path):
        raise LayoutError(
            f"{path} holds the data of one broker; leave {asked.options} out, or name another"
            " with --data"
        )
    held = count_nodes(path)
    if held not in (None, asked):
        raise LayoutError(_holds_several(path, held))
    if not held and os.path.isdir(path) and os.listdir(path):
        raise LayoutError(f"{path} holds other files and no cotidal data; name another with --data")
    try:
        cluster_id = (
            read_meta(files, node_directory(path, 1)).cluster_id if held else uuid_text(new_id())
        )
    except StorageError as wrong:
        raise LayoutError(str(wrong)) from None
    for number in numbers(asked):
        prepare(node_directory(path, number), node_id=number, cluster_id=cluster_id)


def prepare(path: str, *, node_id: int, cluster_id: str | None = None) -> None:
    """Format a new directory; refuse one that belongs to another node or process."""
    files = OsFiles()
    try:
        if not is_formatted(files, path):
            if os.path.isdir(path) and os.listdir(path):
                raise LayoutError(
                    f"{path} holds other files and no cotidal data; name another with --data"
                )
            format_storage(files, path, node_id=NodeId(node_id), cluster_id=cluster_id)
            return
        meta = read_meta(files, path)
        lock = files.lock(f"{path}/{LOCK}")
    except StorageError as wrong:
        raise LayoutError(str(wrong)) from None
    if meta.node_id != node_id:
        raise LayoutError(
            f"{path} belongs to node {meta.node_id}; run it with `cotidal broker`, "
            "or name another with --data"
        )
    if lock is None:
        raise LayoutError(
            f"{path} is in use by another process; stop it, or name another with --data"
        )
    lock.release()


def _holds_several(path: str, held: Layout) -> str:
    return (
        f"{path} holds the data of {held}; run it with {held.options}, or name another with --data"
    )


# Ports -----------------------------------------------------------------------------------------


def client_ports(
    brokers: int, port: int | None, say: Callable[[str], None] = lambda sentence: None
) -> list[int]:
    """Free ones for all: from the asked one on without a gap, or whichever come first."""
    first = DEFAULT_PORT if port is None else port
    if port is not None:
        if port + brokers - 1 > 65535:
            sentence = f"{brokers} ports from {port} on: there are none past 65535"
            raise LayoutError(sentence, asked=True)
        for each in range(port, port + brokers):
            if not is_free("localhost", each):
                raise LayoutError(
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
        raise LayoutError(
            f"too few of the ports {first} to {tried[-1]} are free; name one with --port"
        )
    if found[0] != first:
        say(f"port {first} is in use: {found[0]} is taken instead")
    return found


def ports_beside(ports: list[int], count: int) -> list[int]:
    """Free ones for so many controllers."""
    away = CONTROLLER_PORTS_AWAY
    highest = CALLERS_PORTS_FROM - PORTS_TRIED - count
    choices = (ports[0] + away, ports[0] - away, away + ports[0] % away)
    first = next(port for port in choices if 1024 <= port <= highest)
    tried = range(first, first + PORTS_TRIED + count)
    free = (each for each in tried if each not in ports and is_free("127.0.0.1", each))
    found = list(islice(free, count))
    if len(found) < count:
        raise LayoutError(f"too few of the ports {first} to {tried[-1]} are free for controllers")
    return found


def is_free(host: str, port: int) -> bool:
    try:
        _, sockets = bind(Listener("PLAINTEXT", host, port))
    except ListenerError as wrong:
        if isinstance(wrong.__cause__, OSError) and wrong.__cause__.errno == EADDRINUSE:
            return False
        raise LayoutError(f"{wrong}; choose another with --port") from None
    for each in sockets:
        each.close()
    return True
