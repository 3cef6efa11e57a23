from __future__ import annotations

from cotidal.api.find_coordinator import answer, missing_topics
from cotidal.core.cluster.decide.brokers import decide_fence
from cotidal.core.coordinator import partition_of
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.find_coordinator import FindCoordinatorRequest
from cotidal.values import NodeId


def test_the_leader_of_a_groups_partition_is_its_coordinator(cluster, asked):
    cluster.create("__consumer_offsets", (1, 2, 3))
    request = FindCoordinatorRequest(coordinator_keys=("a", "b"))
    response = answer(request, asked(4), cluster.view)
    partitions = cluster.view.image.topics["__consumer_offsets"].partitions
    assert [each.key for each in response.coordinators] == ["a", "b"]
    for each in response.coordinators:
        leader = partitions[partition_of(each.key, len(partitions))].leader
        assert (each.error_code, each.node_id) == (0, leader)
        assert each.port > 0


def test_older_versions_ask_for_one_key(cluster, asked):
    cluster.create("__consumer_offsets", (1,))
    response = answer(FindCoordinatorRequest(key="a"), asked(3), cluster.view)
    assert (response.error_code, response.node_id, response.coordinators) == (0, 1, ())


def test_a_partition_without_a_leader_has_no_coordinator(cluster, asked):
    cluster.create("__consumer_offsets", (3,))
    cluster.commit_records(decide_fence(cluster.controller, NodeId(3)))
    (found,) = answer(
        FindCoordinatorRequest(coordinator_keys=("a",)), asked(4), cluster.view
    ).coordinators
    assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "has no leader" in found.error_message


def test_the_topic_is_created_when_somebody_asks_and_enough_brokers_are_there(cluster, asked):
    request = FindCoordinatorRequest(coordinator_keys=("a",))
    assert missing_topics(request, asked(4), cluster.view) == ("__consumer_offsets",)
    cluster.view.settings = {"offsets.topic.replication.factor": "4"}
    assert missing_topics(request, asked(4), cluster.view) == ()
    (found,) = answer(request, asked(4), cluster.view).coordinators
    assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "offsets.topic.replication.factor=4" in found.error_message


def test_other_coordinators_are_not_there_yet(cluster, asked):
    request = FindCoordinatorRequest(key="a", key_type=2)
    assert missing_topics(request, asked(6), cluster.view) == ()


def test_coordinators_of_transactions_have_a_topic_of_their_own(cluster, asked):
    request = FindCoordinatorRequest(key="a", key_type=1)
    response = answer(request, asked(3), cluster.view)
    assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "__transaction_state is being created" in response.error_message
    assert missing_topics(request, asked(3), cluster.view) == ("__transaction_state",)


def test_unknown_kind_of_coordinator_is_refused(cluster, asked):
    response = answer(FindCoordinatorRequest(key="a", key_type=9), asked(1), cluster.view)
    assert response.error_code == ErrorCode.INVALID_REQUEST


def test_a_key_belongs_to_the_partition_that_kafka_puts_it_into():
    # hashes of java.lang.String: "group" 98629247; the second is the most negative number
    assert partition_of("group", 50) == 98629247 % 50
    assert partition_of("polygenelubricants", 50) == 0
    assert partition_of("", 50) == 0
    assert partition_of("\U0001f600", 50) == 1772899 % 50
