"""What a configuration makes of a node: who it is, where it is found, what may be asked of it."""

from __future__ import annotations

from cotidal.api.registry import served
from cotidal.broker.config import BrokerConfig, controller_addresses
from cotidal.broker.listeners import Listener
from cotidal.broker.server import Gate
from cotidal.broker.storage import Held
from cotidal.node.effects import Endpoint
from cotidal.node.state import NodeConfig


def gate(name: str, is_controller: bool) -> Gate:
    """What may be asked at a listener: clients' requests, or those of other nodes."""
    return Gate(name, served(by_controller=is_controller))


def node_config(
    config: BrokerConfig,
    held: Held,
    addresses: tuple[Listener, ...],
    bound: tuple[Listener, ...],
) -> NodeConfig:
    endpoints = tuple(Endpoint(*address) for address in addresses)
    return NodeConfig(
        node_id=config.node_id,
        cluster_id=held.metadata.meta.cluster_id,
        directory_id=held.metadata.meta.directory_id,
        log_dirs=tuple(storage.meta.directory_id for storage in held.logs),
        endpoints=endpoints,
        # A node alone has no such listener, and none is needed: it asks nobody but itself.
        controller_endpoints=tuple(
            Endpoint(*address) for address in controller_addresses(config, bound)
        )
        or endpoints[:1],
        rack=config.rack,
        settings=config.settings,
        voters=tuple(
            (voter.node_id, Endpoint(config.controller_listeners[0], voter.host, voter.port))
            for voter in config.voters
        ),
        is_broker="broker" in config.roles,
        is_controller="controller" in config.roles,
        bootstrap=tuple(Endpoint(*address) for address in config.bootstrap),
    )
