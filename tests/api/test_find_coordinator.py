from __future__ import annotations

from cotidal.api.find_coordinator import answer
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.find_coordinator import FindCoordinatorRequest


def test_each_key_is_told_that_there_is_no_coordinator_and_why(cluster, asked):
    request = FindCoordinatorRequest(coordinator_keys=("a", "b"))
    response = answer(request, asked(4), cluster.view)
    assert [each.key for each in response.coordinators] == ["a", "b"]
    for each in response.coordinators:
        assert each.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert each.node_id == -1
        assert "consumer groups are not served yet" in each.error_message


def test_older_versions_ask_for_one_key(cluster, asked):
    response = answer(FindCoordinatorRequest(key="a", key_type=1), asked(3), cluster.view)
    assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (response.node_id, response.coordinators) == (-1, ())
    assert "transactions" in response.error_message


def test_unknown_kind_of_coordinator_is_refused(cluster, asked):
    response = answer(FindCoordinatorRequest(key="a", key_type=9), asked(1), cluster.view)
    assert response.error_code == ErrorCode.INVALID_REQUEST
