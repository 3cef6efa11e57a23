from __future__ import annotations

import pytest

from cotidal.api.metadata import answer, missing_topics
from cotidal.api.operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from cotidal.core.cluster.registered import LOST_DIRECTORY
from cotidal.errors import ErrorCode
from cotidal.messages.records.metadata import PartitionChangeRecord
from cotidal.messages.rpc.metadata import MetadataRequest, MetadataRequestTopic
from cotidal.values import Uuid


def by_name(*names, **fields):
    return MetadataRequest(
        topics=tuple(MetadataRequestTopic(name=name) for name in names), **fields
    )


def by_id(*ids):
    return MetadataRequest(
        topics=tuple(MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in ids)
    )


@pytest.mark.parametrize(
    ("version", "topics", "names"),
    [(0, (), ["orders", "lonely"]), (1, None, ["orders", "lonely"]), (1, (), []), (12, (), [])],
)
def test_all_topics_are_an_empty_list_at_first_and_null_later(
    cluster, asked, version, topics, names
):
    response = answer(MetadataRequest(topics=topics), asked(version), cluster.view)
    assert [topic.name for topic in response.topics] == names


def test_brokers_are_those_that_can_be_reached_on_the_same_listener(cluster, asked):
    response = answer(by_name(), asked(9), cluster.view)
    assert [(each.node_id, each.host, each.port, each.rack) for each in response.brokers] == [
        (1, "host1", 9091, "rack1"),
        (2, "host2", 9092, "rack2"),
        (3, "host3", 9093, "rack3"),
    ]
    inside = answer(by_name(), asked(9, listener="INTERNAL"), cluster.view)
    assert [each.host for each in inside.brokers] == ["inside1", "inside2"]
    assert (response.cluster_id, response.controller_id) == ("cluster-of-tests", 1)


def test_partition_tells_leader_epoch_replicas_and_isr(cluster, asked):
    (topic,) = answer(by_name("orders"), asked(9), cluster.view).topics
    second = topic.partitions[1]
    assert (second.leader_id, second.leader_epoch, second.error_code) == (2, 0, 0)
    assert (second.replica_nodes, second.isr_nodes) == ((2, 3, 1), (2, 3, 1))
    assert second.offline_replicas == ()


def test_no_client_is_sent_to_a_leader_that_has_perhaps_just_died(cluster, asked):
    cluster.view.doubted.add(2)
    response = answer(by_name("orders"), asked(9), cluster.view)
    first, second, _ = response.topics[0].partitions
    assert (first.leader_id, first.error_code) == (1, 0)
    assert (second.leader_id, second.error_code) == (-1, ErrorCode.LEADER_NOT_AVAILABLE)
    assert [broker.node_id for broker in response.brokers] == [1, 3]


def test_a_broker_that_was_just_lost_is_named_but_leads_nothing(cluster, asked):
    cluster.view.just_lost.add(4)
    response = answer(by_name("lonely"), asked(9), cluster.view)
    assert [broker.node_id for broker in response.brokers] == [1, 2, 3, 4]
    (partition,) = response.topics[0].partitions
    assert (partition.leader_id, partition.offline_replicas) == (-1, (4,))


def test_whoever_is_fenced_is_named_when_nobody_else_is_left_to_ask(cluster, asked):
    cluster.view.doubted |= {1, 2, 3}
    response = answer(by_name("orders"), asked(9), cluster.view)
    assert [broker.node_id for broker in response.brokers] == [1, 2, 3, 4]
    assert {each.leader_id for each in response.topics[0].partitions} == {-1}
    assert response.controller_id == -1


def test_partition_without_leader_says_so_and_names_its_offline_replicas(cluster, asked):
    (topic,) = answer(by_name("lonely"), asked(9), cluster.view).topics
    (partition,) = topic.partitions
    assert partition.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert (partition.leader_id, partition.offline_replicas) == (-1, (4,))


def test_leader_that_lacks_the_listener_is_named_as_that_from_version_6_on(cluster, asked):
    for version, error in ((5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)):
        (topic,) = answer(
            by_name("orders"), asked(version, listener="INTERNAL"), cluster.view
        ).topics
        third = topic.partitions[2]
        assert (third.error_code, third.leader_id, third.offline_replicas) == (error, -1, (3,))


def test_replica_whose_log_has_failed_is_offline_though_its_broker_lives(cluster, asked):
    topic = cluster.image.topics["orders"]
    known = topic.partitions[1]
    housed = (known.directory(2), known.directory(3), LOST_DIRECTORY)
    cluster.image.replay(
        PartitionChangeRecord(
            partition_id=1, topic_id=topic.topic_id, isr=(2, 3), directories=housed
        )
    )
    second = answer(by_name("orders"), asked(9), cluster.view).topics[0].partitions[1]
    assert (second.replica_nodes, second.isr_nodes) == ((2, 3, 1), (2, 3))
    assert (second.offline_replicas, second.error_code) == ((1,), 0)


def test_first_version_leaves_offline_replicas_out_and_says_so(cluster, asked):
    (topic,) = answer(by_name("orders"), asked(0, listener="INTERNAL"), cluster.view).topics
    first = topic.partitions[0]
    assert (first.replica_nodes, first.isr_nodes) == ((1, 2), (1, 2))
    assert first.error_code == ErrorCode.REPLICA_NOT_AVAILABLE


def test_unknown_and_impossible_names_are_told_apart(cluster, asked):
    response = answer(by_name("none", "a b", "none"), asked(9), cluster.view)
    assert [(topic.name, topic.error_code) for topic in response.topics] == [
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]


def test_topic_is_found_by_its_id(cluster, asked):
    topic_id = cluster.image.topics["orders"].topic_id
    known, unknown = answer(by_id(topic_id, Uuid(b"?" * 16)), asked(12), cluster.view).topics
    assert (known.name, known.topic_id, len(known.partitions)) == ("orders", topic_id, 3)
    assert (unknown.name, unknown.error_code) == (None, ErrorCode.UNKNOWN_TOPIC_ID)
    (old,) = answer(by_id(Uuid(b"?" * 16)), asked(11), cluster.view).topics
    assert old.name == ""


def test_new_leader_is_seen_at_once(cluster, asked):
    topic_id = cluster.image.topics["orders"].topic_id
    cluster.image.replay(PartitionChangeRecord(0, topic_id, leader=2))
    (topic,) = answer(by_name("orders"), asked(9), cluster.view).topics
    assert (topic.partitions[0].leader_id, topic.partitions[0].leader_epoch) == (2, 1)


def test_operations_are_told_only_where_asked_for_and_known(cluster, asked):
    request = by_name(
        "orders",
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )
    for version, cluster_bits, topic_bits in (
        (7, NOT_ASKED, NOT_ASKED),
        (8, CLUSTER_OPERATIONS, TOPIC_OPERATIONS),
        (11, NOT_ASKED, TOPIC_OPERATIONS),
    ):
        response = answer(request, asked(version), cluster.view)
        assert response.cluster_authorized_operations == cluster_bits
        assert response.topics[0].topic_authorized_operations == topic_bits
    # Kafka's numbers for a topic and for the cluster when nothing is forbidden.
    assert (TOPIC_OPERATIONS, CLUSTER_OPERATIONS) == (3576, 8096)


def test_internal_topics_are_marked(cluster, asked):
    cluster.create("__consumer_offsets", (1,))
    (topic,) = answer(by_name("__consumer_offsets"), asked(9), cluster.view).topics
    assert topic.is_internal


def test_missing_topics_are_those_that_may_be_created(cluster, asked):
    request = by_name("orders", "new", "a b", "new", "other")
    assert missing_topics(request, asked(9), cluster.view) == ("new", "other")


def test_nothing_is_missing_where_creation_is_not_wanted(cluster, make_cluster, asked):
    request = by_name("new", allow_auto_topic_creation=False)
    assert missing_topics(request, asked(4), cluster.view) == ()
    assert missing_topics(request, asked(3), cluster.view) == ("new",), "no such flag yet"
    never = make_cluster({"auto.create.topics.enable": "false"})
    assert missing_topics(by_name("new"), asked(9), never.view) == ()
    assert missing_topics(MetadataRequest(topics=None), asked(9), cluster.view) == ()
    assert missing_topics(by_id(Uuid(b"?" * 16)), asked(12), cluster.view) == ()
