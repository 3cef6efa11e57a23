"""Calls of a simulated node to others."""

from __future__ import annotations

from cotidal.messages.rpc.api_versions import ApiVersionsRequest
from cotidal.messages.rpc.apis import ApiKey
from cotidal.node.effects import Call, CallToken, Endpoint
from cotidal.values import NodeId
from simulated import calm_run


def test_two_listeners_of_one_node_do_not_share_a_connection() -> None:
    """What one of them serves the other refuses, by closing the connection."""
    peers = calm_run(1).world.running[0].peers
    before = len(peers.lanes)
    for token, port in ((90_001, 9092), (90_002, 9093), (90_003, 9093)):
        peers.call(
            Call(
                CallToken(token),
                NodeId(2),
                Endpoint("any", "node-2", port),
                "a lane",
                int(ApiKey.API_VERSIONS),
                0,
                ApiVersionsRequest(),
                1_000,
            )
        )
    assert len(peers.lanes) == before + 2
