"""Which brokers a client can reach through the listener that it uses. Pure.

A broker is reachable if it is not fenced, has an endpoint under that listener's name, and has not
just now dropped its connections to us.
"""

from __future__ import annotations

from collections.abc import Mapping

from cotidal.api.view import View
from cotidal.core.cluster.image import Endpoint
from cotidal.settings import effective
from cotidal.values import NO_NODE, NodeId


def reachable(view: View, listener: str) -> dict[NodeId, Endpoint]:
    """The brokers that can be reached, and where."""
    found = {}
    for node_id, broker in view.image.brokers.items():
        endpoint = None if broker.fenced else broker.endpoint(listener)
        if endpoint is not None and not view.is_doubted(node_id):
            found[node_id] = endpoint
    return found


def named(view: View, listener: str) -> dict[NodeId, Endpoint]:
    """The brokers that can be reached, and those that could be a moment ago.

    If that is nobody, all that are registered: a client that is told of no broker has nobody left
    to ask again, and some (librdkafka 2.16) then stand still for ever.
    """
    found = reachable(view, listener)
    registered = {}
    for node_id, broker in view.image.brokers.items():
        endpoint = broker.endpoint(listener)
        if endpoint is not None:
            registered[node_id] = endpoint
            if view.is_just_lost(node_id):
                found[node_id] = endpoint
    return found or registered


def controller_for_clients(view: View, reached: Mapping[NodeId, Endpoint]) -> NodeId:
    """Whom clients should ask for decisions: any broker passes them on, so that it is this one."""
    if view.node_id in reached:
        return view.node_id
    return next(iter(reached), NO_NODE)


def is_controller_listener(view: View, listener: str) -> bool:
    names = effective("controller.listener.names", static=view.settings).value
    assert isinstance(names, tuple)
    return listener in names
