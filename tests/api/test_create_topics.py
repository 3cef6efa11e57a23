from __future__ import annotations

from cotidal.api.create_topics import decide
from cotidal.errors import ErrorCode
from cotidal.limits import PARTITIONS_PER_DECISION_MAX
from cotidal.messages.rpc.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from cotidal.settings import Source
from cotidal.values import ZERO_UUID


def ask(*topics, **fields):
    return CreateTopicsRequest(topics=topics, **fields)


def test_topic_is_created_and_described(cluster, asked):
    topic = CreatableTopic("new", 2, 3, configs=(CreatableTopicConfig("retention.ms", "5"),))
    reply = cluster.commit(decide(ask(topic), asked(7), cluster.controller))
    (result,) = reply.topics
    assert (result.error_code, result.error_message) == (ErrorCode.NONE, None)
    assert (result.num_partitions, result.replication_factor) == (2, 3)
    assert result.topic_id == cluster.image.topics["new"].topic_id
    values = {each.name: (each.value, each.config_source) for each in result.configs}
    assert values["retention.ms"] == ("5", Source.TOPIC)
    assert values["segment.ms"] == ("604800000", Source.DEFAULT)


def test_details_are_new_in_version_5(cluster, asked):
    (result,) = decide(ask(CreatableTopic("new", 1, 1)), asked(4), cluster.controller).reply.topics
    assert result.configs == ()


def test_brokers_may_be_chosen_by_hand(cluster, asked):
    by_hand = (CreatableReplicaAssignment(0, (3, 1)), CreatableReplicaAssignment(1, (2, 3)))
    request = ask(CreatableTopic("new", -1, -1, by_hand))
    (result,) = cluster.commit(decide(request, asked(7), cluster.controller)).topics
    assert (result.num_partitions, result.replication_factor) == (2, 2)
    assert cluster.image.partition("new", 0).leader == 3


def test_validate_only_answers_alike_and_writes_nothing(cluster, asked):
    request = ask(CreatableTopic("new", 2, 1), CreatableTopic("orders", 1, 1), validate_only=True)
    decision = decide(request, asked(7), cluster.controller)
    assert decision.records == ()
    good, bad = decision.reply.topics
    assert (good.error_code, good.num_partitions, good.topic_id) == (0, 2, ZERO_UUID)
    assert bad.error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_each_topic_is_created_or_refused_by_itself(cluster, asked):
    request = ask(
        CreatableTopic("new", 1, 1),
        CreatableTopic("orders", 1, 1),
        CreatableTopic("twice", 1, 1),
        CreatableTopic("twice", 1, 1),
        CreatableTopic("new_er", 1, 1),
        CreatableTopic("new.er", 1, 1),
        CreatableTopic("__cluster_metadata", 1, 1),
        CreatableTopic("wide", 1, 9),
    )
    reply = cluster.commit(decide(request, asked(7), cluster.controller))
    assert [(each.name, each.error_code) for each in reply.topics] == [
        ("new", ErrorCode.NONE),
        ("orders", ErrorCode.TOPIC_ALREADY_EXISTS),
        ("twice", ErrorCode.INVALID_REQUEST),
        ("new_er", ErrorCode.NONE),
        ("new.er", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("__cluster_metadata", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ("wide", ErrorCode.INVALID_REPLICATION_FACTOR),
    ]
    assert all(each.error_message for each in reply.topics if each.error_code)
    assert {"new", "new_er"} <= set(cluster.image.topics)
    assert "new.er" not in cluster.image.topics


def test_one_request_creates_a_bounded_number_of_partitions(cluster, asked):
    half = PARTITIONS_PER_DECISION_MAX // 2
    request = ask(
        CreatableTopic("a", half, 1), CreatableTopic("b", half, 1), CreatableTopic("c", 1, 1)
    )
    reply = decide(request, asked(7), cluster.controller).reply
    assert [each.error_code for each in reply.topics] == [0, 0, ErrorCode.POLICY_VIOLATION]
