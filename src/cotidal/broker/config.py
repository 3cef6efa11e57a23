"""What server.properties means for one node. A mistake is one sentence; the caller exits with 2.

Precedence: overrides (``--override name=value``) > environment (``COTIDAL_LOG_DIRS`` is log.dirs)
> the file > Kafka's defaults. An unknown name is a warning with the nearest known one, because
files written for Apache Kafka hold names that do not matter here; a wrong value is an error.

An empty host in ``listeners`` means every interface, and clients are told ``localhost`` unless
``advertised.listeners`` says otherwise: a guessed host name is wrong in containers more often than
it is right. A port 0 is told to clients as the port that was found free.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from cotidal import settings
from cotidal.broker.listeners import (
    Listener,
    ListenerError,
    SocketBuffers,
    parse_listeners,
)
from cotidal.broker.properties import PropertiesError, parse_properties
from cotidal.settings import Value
from cotidal.values import NodeId

ENVIRONMENT_PREFIX = "COTIDAL_"
_OWN_VARIABLES = ("COTIDAL_BOOTSTRAP",)
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_META_ADDRESSES = ("0.0.0.0", "::", "0:0:0:0:0:0:0:0")


_NO_CONTROLLER_LISTENER = (
    "listeners has none for the controller, whom other nodes must reach; add e.g."
    " CONTROLLER://localhost:9093"
)


class ConfigError(ValueError):
    """One sentence: what is wrong, where, and what to do."""


class Voter(NamedTuple):
    """One of controller.quorum.voters: a controller, and where it listens."""

    node_id: NodeId
    host: str
    port: int


class BrokerConfig(NamedTuple):
    """One node's static configuration, checked."""

    node_id: NodeId
    roles: tuple[str, ...]
    listeners: tuple[Listener, ...]
    advertised: tuple[Listener, ...]
    """What clients are told, before ports of 0 are known. Controller listeners are not in it."""
    controller_listeners: tuple[str, ...]
    """Names; not every one of them need be a listener of this node."""
    voters: tuple[Voter, ...]
    """Empty: the voters' record says who votes, or this node is a cluster by itself."""
    bootstrap: tuple[Listener, ...]
    """Controllers to ask who leads."""
    log_dirs: tuple[str, ...]
    metadata_dir: str
    rack: str | None
    metrics: Listener | None
    socket_buffers: SocketBuffers
    address_overrides: Mapping[str, int]
    """max.connections.per.ip of single addresses."""
    settings: Mapping[str, str]
    """What was set, as text by Kafka's names."""
    warnings: tuple[str, ...] = ()

    def number(self, name: str) -> int:
        value = self._value(name)
        assert isinstance(value, int), name
        return value

    def text(self, name: str) -> str | None:
        value = self._value(name)
        assert value is None or isinstance(value, str), name
        return value

    def _value(self, name: str) -> Value:
        return settings.effective(name, static=self.settings).value


def load_config(
    path: str | None,
    *,
    overrides: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> BrokerConfig:
    """Read a server.properties and what stands above it."""
    values: dict[str, str] = {}
    if path is not None:
        values.update(_read(path))
    values.update(from_environment(environment or {}))
    values.update(overrides or {})
    return make_config(values)


def _read(path: str) -> dict[str, str]:
    try:
        with open(path, encoding="utf-8") as file:
            return parse_properties(file.read())
    except FileNotFoundError:
        raise ConfigError(f"there is no file {path}; name one with --config") from None
    except OSError as wrong:
        raise ConfigError(f"cannot read {path}: {wrong.strerror}") from None
    except UnicodeDecodeError as wrong:
        raise ConfigError(f"{path} is not UTF-8 text: byte {wrong.start}") from None
    except PropertiesError as wrong:
        raise ConfigError(f"{path}, {wrong}") from None


def from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """COTIDAL_NODE_ID=1 is node.id=1; a name that is not a broker setting is nobody's business."""
    found: dict[str, str] = {}
    for variable, text in environment.items():
        if variable.startswith(ENVIRONMENT_PREFIX) and variable not in _OWN_VARIABLES:
            name = variable.removeprefix(ENVIRONMENT_PREFIX).lower().replace("_", ".")
            if name in settings.BROKER:
                found[name] = text
    return found


def make_config(values: Mapping[str, str]) -> BrokerConfig:
    """Check every name and value; ConfigError with the first mistake."""
    known: dict[str, str] = {}
    warnings: list[str] = []
    for name, text in values.items():
        judged = settings.judge(settings.BROKER, name, text)
        if isinstance(judged, settings.Wrong):
            if not judged.unknown:
                raise ConfigError(judged.sentence)
            warnings.append(f"{judged.sentence}; it is ignored")
            continue
        known[name] = text
    if "node.id" not in known:
        raise ConfigError("node.id is missing; give this node a number, e.g. node.id=1")
    node_id = NodeId(int(known["node.id"]))
    roles = _list(known, "process.roles")
    try:
        listeners, advertised, controllers = _listeners(known, is_broker="broker" in roles)
    except ListenerError as wrong:
        raise ConfigError(str(wrong)) from None
    voters = _voters(known)
    bootstrap = _bootstrap(known)
    has_listener = any(each.name in controllers for each in listeners)
    _check_roles(node_id, roles, voters, is_dynamic=bool(bootstrap), has_listener=has_listener)
    log_dirs = _log_dirs(known)
    metadata_dir = os.path.abspath(known.get("metadata.log.dir", "").strip() or log_dirs[0])
    return BrokerConfig(
        node_id=node_id,
        roles=roles,
        listeners=listeners,
        advertised=advertised,
        controller_listeners=controllers,
        voters=voters,
        bootstrap=bootstrap,
        log_dirs=log_dirs,
        metadata_dir=metadata_dir,
        rack=known.get("broker.rack", "").strip() or None,
        metrics=_metrics(known),
        socket_buffers=SocketBuffers(
            _buffer_bytes(known, "socket.send.buffer.bytes"),
            _buffer_bytes(known, "socket.receive.buffer.bytes"),
        ),
        address_overrides=_address_overrides(known),
        settings=known,
        warnings=tuple(warnings),
    )


def controller_addresses(config: BrokerConfig, bound: tuple[Listener, ...]) -> tuple[Listener, ...]:
    """Where other controllers find this one: as controller.quorum.voters says, if it does."""
    if "controller" not in config.roles:
        return ()
    told = {voter.node_id: voter for voter in config.voters}.get(config.node_id)
    return tuple(
        _told(each) if told is None else Listener(each.name, told.host, told.port)
        for each in bound
        if each.name in config.controller_listeners
    )


def bound_addresses(
    advertised: tuple[Listener, ...], bound: tuple[Listener, ...]
) -> tuple[Listener, ...]:
    """What clients are told, now that ports of 0 are known."""
    ports = {listener.name: listener.port for listener in bound}
    return tuple(a if a.port else a._replace(port=ports[a.name]) for a in advertised)


def _list(known: Mapping[str, str], name: str) -> tuple[str, ...]:
    value = settings.effective(name, static=known).value
    if value is None:
        return ()
    assert isinstance(value, tuple), name
    return value


def _voters(known: Mapping[str, str]) -> tuple[Voter, ...]:
    voters: list[Voter] = []
    for entry in _list(known, "controller.quorum.voters"):
        number, at, address = entry.partition("@")
        host, _, port = address.rpartition(":")
        if not (at and host and _is_number(number) and _is_number(port) and int(port) <= 65535):
            raise ConfigError(
                f"controller.quorum.voters: '{entry}' is not of the form id@host:port"
            )
        if any(voter.node_id == int(number) for voter in voters):
            raise ConfigError(f"controller.quorum.voters: node {number} stands there twice")
        host = host.removeprefix("[").removesuffix("]")
        voters.append(Voter(NodeId(int(number)), host, int(port)))
    return tuple(voters)


def _bootstrap(known: Mapping[str, str]) -> tuple[Listener, ...]:
    servers: list[Listener] = []
    for entry in _list(known, "controller.quorum.bootstrap.servers"):
        host, _, port = entry.rpartition(":")
        if not (host and _is_number(port) and 0 < int(port) <= 65535):
            raise ConfigError(
                f"controller.quorum.bootstrap.servers: '{entry}' is not of the form host:port"
            )
        host = host.removeprefix("[").removesuffix("]")
        servers.append(Listener("CONTROLLER", host, int(port)))
    return tuple(servers)


def _check_roles(
    node_id: NodeId,
    roles: tuple[str, ...],
    voters: tuple[Voter, ...],
    *,
    is_dynamic: bool,
    has_listener: bool,
) -> None:
    is_voter = any(voter.node_id == node_id for voter in voters)
    if is_dynamic and not voters:
        if "controller" in roles and not has_listener:
            raise ConfigError(_NO_CONTROLLER_LISTENER)
    elif not voters:
        if sorted(roles) != ["broker", "controller"]:
            raise ConfigError(
                f"process.roles is '{','.join(roles)}', but without controller.quorum.voters or"
                " controller.quorum.bootstrap.servers this node is a cluster by itself and must be"
                " both: set process.roles=broker,controller"
            )
    elif "controller" not in roles:
        if is_voter:
            raise ConfigError(
                f"controller.quorum.voters names node {node_id}, whose process.roles is"
                f" '{','.join(roles)}'; add controller to it, or take the node out"
            )
    elif not is_voter:
        raise ConfigError(
            f"process.roles of node {node_id} has controller, but controller.quorum.voters does"
            f" not name it; add {node_id}@host:port"
        )
    elif not has_listener:
        raise ConfigError(_NO_CONTROLLER_LISTENER)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _listeners(
    known: Mapping[str, str], *, is_broker: bool
) -> tuple[tuple[Listener, ...], tuple[Listener, ...], tuple[str, ...]]:
    listeners = parse_listeners(",".join(_list(known, "listeners")), "listeners")
    controllers = tuple(name.upper() for name in _list(known, "controller.listener.names"))
    _check_protocols(known, listeners, controllers)
    for_clients = tuple(each for each in listeners if each.name not in controllers)
    if is_broker and not for_clients:
        raise ListenerError("listeners has none for clients; add e.g. PLAINTEXT://localhost:9092")
    told = parse_listeners(",".join(_list(known, "advertised.listeners")), "advertised.listeners")
    for each in told:
        if each.name not in {listener.name for listener in listeners}:
            raise ListenerError(f"advertised.listeners: {each.name} is not one of the listeners")
        if each.host in _META_ADDRESSES:
            raise ListenerError(
                f"advertised.listeners: no client can connect to {each}; name a host or an address"
            )
    by_name = {each.name: each for each in told}
    advertised = tuple(_told(by_name.get(each.name, each)) for each in for_clients)
    return listeners, advertised, controllers


def _told(listener: Listener) -> Listener:
    if not listener.host or listener.host in _META_ADDRESSES:
        return listener._replace(host="localhost")
    return listener


def _check_protocols(
    known: Mapping[str, str], listeners: tuple[Listener, ...], controllers: tuple[str, ...]
) -> None:
    protocols = {name: name for name in _PROTOCOLS}
    protocols.update(dict.fromkeys(controllers, "PLAINTEXT"))
    for entry in _list(known, "listener.security.protocol.map"):
        name, colon, protocol = entry.partition(":")
        if not colon or protocol.strip().upper() not in _PROTOCOLS:
            raise ListenerError(
                f"listener.security.protocol.map: '{entry}' is not of the form NAME:PLAINTEXT"
            )
        protocols[name.strip().upper()] = protocol.strip().upper()
    for listener in listeners:
        spoken = protocols.get(listener.name)
        if spoken is None:
            raise ListenerError(
                f"listeners: {listener.name} has no protocol; add {listener.name}:PLAINTEXT to"
                " listener.security.protocol.map"
            )
        if spoken != "PLAINTEXT":
            raise ListenerError(
                f"listeners: {listener.name} asks for {spoken}, but only PLAINTEXT is spoken"
            )


def _log_dirs(known: Mapping[str, str]) -> tuple[str, ...]:
    paths = _list(known, "log.dirs")
    if not paths:
        single = settings.effective("log.dir", static=known).value
        paths = (str(single),)
    absolute = tuple(os.path.abspath(path) for path in paths)
    if len(set(absolute)) != len(absolute):
        raise ConfigError("log.dirs names a directory twice")
    return absolute


def _metrics(known: Mapping[str, str]) -> Listener | None:
    port = settings.effective("cotidal.metrics.port", static=known).value
    host = settings.effective("cotidal.metrics.host", static=known).value
    return Listener("METRICS", str(host), port) if isinstance(port, int) else None


def _buffer_bytes(known: Mapping[str, str], name: str) -> int | None:
    """Kafka sets 100 KB unless told otherwise; we leave it to the system, which adapts it."""
    text = known.get(name)
    return int(text) if text is not None and int(text) > 0 else None


def _address_overrides(known: Mapping[str, str]) -> Mapping[str, int]:
    overrides: dict[str, int] = {}
    for entry in _list(known, "max.connections.per.ip.overrides"):
        host, _, count = entry.rpartition(":")
        if not host or not _is_number(count):
            raise ConfigError(
                f"max.connections.per.ip.overrides: '{entry}' is not of the form address:count"
            )
        overrides[host.removeprefix("[").removesuffix("]")] = int(count)
    return overrides
