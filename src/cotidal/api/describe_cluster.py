"""DescribeCluster (key 60), versions 0-2.

KIP-700; KIP-919 endpoint types from 1 on: a broker's listener describes brokers, a controller's
listener controllers. KIP-1073 fenced brokers from 2 on.

Not there: nothing of the protocol.
"""

from __future__ import annotations

from typing import Final

from cotidal.api.asked import Asked
from cotidal.api.operations import CLUSTER_OPERATIONS, NOT_ASKED
from cotidal.api.reachability import controller_for_clients, is_controller_listener, reachable
from cotidal.api.view import View
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS: Final = 1
CONTROLLERS: Final = 2
_KINDS: Final = {BROKERS: "brokers", CONTROLLERS: "controllers"}


def answer(request: DescribeClusterRequest, asked: Asked, view: View) -> DescribeClusterResponse:
    here = CONTROLLERS if is_controller_listener(view, asked.listener) else BROKERS
    if request.endpoint_type not in _KINDS:
        return _refused(
            request,
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            f"there is no endpoint type {request.endpoint_type}: brokers are 1, controllers 2",
        )
    if request.endpoint_type != here:
        return _refused(
            request,
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            f"this is a listener of {_KINDS[here]}; ask one of {_KINDS[request.endpoint_type]}",
        )
    operations = CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
    if here == CONTROLLERS:
        controller_id, nodes = view.quorum.leader_id, _controllers(view, asked.listener)
    else:
        controller_id = controller_for_clients(view, reachable(view, asked.listener))
        nodes = _brokers(view, asked.listener, fenced_too=request.include_fenced_brokers)
    return DescribeClusterResponse(
        endpoint_type=here,
        cluster_id=view.cluster_id,
        controller_id=controller_id,
        brokers=nodes,
        cluster_authorized_operations=operations,
    )


def _brokers(view: View, listener: str, *, fenced_too: bool) -> tuple[DescribeClusterBroker, ...]:
    found = []
    for broker in view.image.brokers.values():
        endpoint = broker.endpoint(listener)
        if endpoint is not None and (fenced_too or not broker.fenced):
            found.append(
                DescribeClusterBroker(
                    broker_id=broker.node_id,
                    host=endpoint.host,
                    port=endpoint.port,
                    rack=broker.rack,
                    is_fenced=broker.fenced,
                )
            )
    return tuple(found)


def _controllers(view: View, listener: str) -> tuple[DescribeClusterBroker, ...]:
    return tuple(
        DescribeClusterBroker(broker_id=node.node_id, host=endpoint.host, port=endpoint.port)
        for node in view.quorum.controllers
        for endpoint in node.endpoints
        if endpoint.name == listener
    )


def _refused(
    request: DescribeClusterRequest, error: ErrorCode, sentence: str
) -> DescribeClusterResponse:
    return DescribeClusterResponse(
        error_code=error, error_message=sentence, endpoint_type=request.endpoint_type
    )
