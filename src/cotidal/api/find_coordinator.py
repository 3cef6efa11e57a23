"""FindCoordinator (key 10), versions 0-6.

KIP-699 several keys from 4 on; KIP-98 transactions (key type 1) from 1 on; KIP-932 shares (2) in 6.

The coordinator of a group is the leader of its partition of __consumer_offsets, that of a
transactional id the leader of its partition of __transaction_state. Each topic is created when
somebody first asks.

Not there: coordinators of share groups: whoever asks for one is told COORDINATOR_NOT_AVAILABLE and
why, and clients retry.
"""

from __future__ import annotations

from typing import Final

from cotidal.api.asked import Asked
from cotidal.api.coordination import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from cotidal.api.reachability import reachable
from cotidal.api.view import View
from cotidal.core.cluster.image import Endpoint
from cotidal.core.coordinator import partition_of
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from cotidal.settings import effective
from cotidal.values import NO_NODE, NodeId

SEVERAL_KEYS_SINCE: Final = 4
_TOPICS: Final = {0: OFFSETS_TOPIC, 1: TRANSACTIONS_TOPIC}
"""Type of key -> whose partitions have the coordinators."""
_REPLICAS: Final = {
    OFFSETS_TOPIC: "offsets.topic.replication.factor",
    TRANSACTIONS_TOPIC: "transaction.state.log.replication.factor",
}
_OTHERS: Final = {2: "share groups"}
_NO_PORT: Final = -1


def answer(request: FindCoordinatorRequest, asked: Asked, view: View) -> FindCoordinatorResponse:
    reached = reachable(view, asked.listener)
    if asked.api_version >= SEVERAL_KEYS_SINCE:
        return FindCoordinatorResponse(
            coordinators=tuple(
                _coordinator(key, _find(key, request.key_type, view, reached))
                for key in request.coordinator_keys
            )
        )
    found = _coordinator(request.key, _find(request.key, request.key_type, view, reached))
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def missing_topics(request: FindCoordinatorRequest, asked: Asked, view: View) -> tuple[str, ...]:
    """What must be created before the answer can be given; whether or not topics are created for
    whoever asks for them."""
    name = _TOPICS.get(request.key_type)
    if name is None or name in view.image.topics or _too_few(name, view) is not None:
        return ()
    return (name,)


def _find(
    key: str, key_type: int, view: View, reached: dict[NodeId, Endpoint]
) -> tuple[NodeId, Endpoint] | Refusal:
    if key_type in _OTHERS:
        return Refusal(
            ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{_OTHERS[key_type]} are not served yet"
        )
    name = _TOPICS.get(key_type)
    if name is None:
        return Refusal(ErrorCode.INVALID_REQUEST, f"there is no coordinator of type {key_type}")
    topic = view.image.topics.get(name)
    if topic is None:
        why = _too_few(name, view) or f"{name} is being created"
        return Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, why)
    number = partition_of(key, len(topic.partitions))
    leader = topic.partitions[number].leader
    if leader not in reached:
        why = f"{name}-{number} has no leader now"
        return Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, why)
    return leader, reached[leader]


def _too_few(name: str, view: View) -> str | None:
    """Why the topic cannot be created yet."""
    setting = _REPLICAS[name]
    wanted = effective(
        setting,
        cluster=view.image.cluster_config,
        static=view.settings,
    ).value
    assert isinstance(wanted, int)
    active = sum(1 for broker in view.image.brokers.values() if broker.active)
    if active >= wanted:
        return None
    return (
        f"{name} cannot be created: {setting}={wanted}, and {active} of so many brokers are there"
    )


def _coordinator(key: str, found: tuple[NodeId, Endpoint] | Refusal) -> Coordinator:
    if isinstance(found, Refusal):
        return Coordinator(key, NO_NODE, "", _NO_PORT, found.error, found.text)
    node_id, endpoint = found
    return Coordinator(key, node_id, endpoint.host, endpoint.port, ErrorCode.NONE, None)
