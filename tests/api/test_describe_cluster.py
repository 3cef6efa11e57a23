from __future__ import annotations

from cotidal.api.describe_cluster import answer
from cotidal.api.operations import CLUSTER_OPERATIONS, NOT_ASKED
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.describe_cluster import DescribeClusterRequest


def test_brokers_of_the_listener_are_described(cluster, asked):
    response = answer(DescribeClusterRequest(), asked(0), cluster.view)
    assert [each.broker_id for each in response.brokers] == [1, 2, 3]
    assert (response.cluster_id, response.controller_id) == ("cluster-of-tests", 1)
    assert response.cluster_authorized_operations == NOT_ASKED


def test_fenced_brokers_are_told_when_asked_for(cluster, asked):
    response = answer(DescribeClusterRequest(include_fenced_brokers=True), asked(2), cluster.view)
    assert [(each.broker_id, each.is_fenced) for each in response.brokers][-1] == (4, True)


def test_controller_listener_describes_controllers(cluster, asked):
    response = answer(
        DescribeClusterRequest(endpoint_type=2), asked(1, listener="CONTROLLER"), cluster.view
    )
    assert [(each.broker_id, each.host, each.port) for each in response.brokers] == [
        (1, "c1", 9093)
    ]
    assert (response.endpoint_type, response.controller_id) == (2, 1)


def test_wrong_kind_of_listener_is_told_so(cluster, asked):
    wrong = answer(DescribeClusterRequest(endpoint_type=2), asked(1), cluster.view)
    assert wrong.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    assert "ask one of controllers" in wrong.error_message
    unknown = answer(DescribeClusterRequest(endpoint_type=9), asked(1), cluster.view)
    assert unknown.error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE


def test_operations_are_told_when_asked_for(cluster, asked):
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    response = answer(request, asked(0), cluster.view)
    assert response.cluster_authorized_operations == CLUSTER_OPERATIONS
