"""Calls to other nodes: who waits for which answer. Pure.

Every Call has one owner, a value that says what to do with the answer. A call to this very node
never leaves it: it is begun like any other request, on a connection that has no socket.
Owns of the state: calls, calls_to_self.
"""

from __future__ import annotations

from typing import Final

from cotidal.core.cluster.image import Endpoint as Told
from cotidal.messages.rpc.apis import ApiKey
from cotidal.node.effects import Call, CallToken, Endpoint
from cotidal.node.state import NodeState
from cotidal.values import NodeId

CONTROL_LANE: Final = "control"
"""Registration, heartbeats, ISR proposals."""
FORWARD_LANE: Final = "forward"
"""What clients ask of the controller: may take long, and no heartbeat may wait behind it."""
QUORUM_LANE: Final = "quorum"


def call(
    state: NodeState,
    peer: NodeId,
    endpoint: Endpoint,
    *,
    lane: str,
    api: ApiKey,
    version: int,
    message: object,
    timeout_ms: int,
    owner: object,
) -> CallToken:
    token = state.next_call_token(owner)
    what = (token, peer, endpoint, lane, int(api), version, message, timeout_ms)
    asked = tuple.__new__(Call, what)
    if peer == state.config.node_id:
        state.calls_to_self.append(asked)
    else:
        state.out.append(asked)
    return token


def broker_endpoint(state: NodeState, node_id: NodeId) -> Endpoint | None:
    """Where another broker is reached: under the name of our own first listener. A controller that
    is no broker has none: it takes the broker's first."""
    broker = state.controller.committed.brokers.get(node_id)
    if broker is None or not broker.endpoints:
        return None
    found: Told | None = broker.endpoints[0]
    if state.config.endpoints:
        found = broker.endpoint(state.config.endpoints[0].name)
    return None if found is None else tuple.__new__(Endpoint, (found.name, found.host, found.port))
