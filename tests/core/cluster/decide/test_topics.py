from __future__ import annotations

import pytest

from cotidal.core.cluster.decide.brokers import decide_fence
from cotidal.core.cluster.decide.topics import (
    NewTopic,
    decide_auto_create,
    decide_create_partitions,
    decide_create_topic,
    decide_delete_topic,
    refuse_name,
)
from cotidal.core.cluster.image import TOPIC_RESOURCE
from cotidal.errors import ErrorCode, Refusal
from cotidal.limits import PARTITIONS_PER_DECISION_MAX
from cotidal.messages.records.metadata import ConfigRecord, PartitionRecord, TopicRecord
from cotidal.values import Uuid


def refused(decided, error, says=""):
    assert isinstance(decided, Refusal), decided
    assert decided.error is error, decided
    assert says in decided.text, decided


@pytest.mark.parametrize("name", ["a", "a" * 249, "Or.der_s-1", "...", "__x"])
def test_name_that_kafka_allows_is_allowed(name):
    assert refuse_name(name) is None


@pytest.mark.parametrize("name", ["", ".", "..", "a" * 250, "a b", "a/b", "ä", "a\x00", "a\n"])
def test_name_that_kafka_refuses_is_refused(name):
    refused(refuse_name(name), ErrorCode.INVALID_TOPIC_EXCEPTION)


def test_topic_is_born_with_all_active_replicas_in_the_isr(scene):
    cluster = scene()
    cluster.apply(decide_fence(cluster.controller, 2))
    cluster.create("orders", (2, 3, 1), (1, 2, 3))
    first, second = cluster.partition(), cluster.partition(number=1)
    assert (first.leader, first.isr, first.leader_epoch, first.partition_epoch) == (3, (3, 1), 0, 0)
    assert (second.leader, second.isr) == (1, (1, 3))
    assert first.directories[0] == cluster.image.brokers[2].log_dirs[0]


def test_numbers_left_open_come_from_the_settings(scene):
    cluster = scene(settings={"num.partitions": "4", "default.replication.factor": "2"})
    created = decide_create_topic(cluster.controller, NewTopic("orders"))
    assert (created.partitions, created.replication_factor) == (4, 2)
    kinds = [type(record) for record in created.records]
    assert kinds == [TopicRecord, *[PartitionRecord] * 4]


def test_topic_ids_are_random_and_differ(scene):
    cluster = scene()
    ids = {
        decide_create_topic(cluster.controller, NewTopic(f"t{n}", 1, 1)).topic_id for n in range(50)
    }
    assert len(ids) == 50


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (NewTopic("t", 0, 1), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("t", -2, 1), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", 1, 4), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", PARTITIONS_PER_DECISION_MAX + 1, 1), ErrorCode.POLICY_VIOLATION),
        (NewTopic("t", 1, -1, ((0, (1,)),)), ErrorCode.INVALID_REQUEST),
        (NewTopic("t", -1, 1, ((0, (1,)),)), ErrorCode.INVALID_REQUEST),
        (NewTopic("t", assignments=((0, (1,)), (0, (2,)))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignments=((1, (1,)),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignments=((0, ()),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignments=((0, (1, 1)),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignments=((0, (9,)),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignments=((0, (1, 2)), (1, (3,)))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", 1, 1, configs=(("retention.ms", "soon"),)), ErrorCode.INVALID_CONFIG),
        (NewTopic("t", 1, 1, configs=(("retention.ms", None),)), ErrorCode.INVALID_CONFIG),
        (NewTopic("a b", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_topic_that_makes_no_sense_is_refused(scene, topic, error):
    refused(decide_create_topic(scene().controller, topic), error)


def test_brokers_chosen_by_hand_must_include_an_active_one(scene):
    cluster = scene()
    cluster.apply(decide_fence(cluster.controller, 1))
    by_hand = NewTopic("t", assignments=((0, (1,)),))
    refused(
        decide_create_topic(cluster.controller, by_hand),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "fenced",
    )


def test_existing_and_colliding_names_are_refused(scene):
    cluster = scene()
    cluster.create("a.b", (1,))
    again = decide_create_topic(cluster.controller, NewTopic("a.b", 1, 1))
    refused(again, ErrorCode.TOPIC_ALREADY_EXISTS)
    alike = decide_create_topic(cluster.controller, NewTopic("a_b", 1, 1))
    refused(alike, ErrorCode.INVALID_TOPIC_EXCEPTION, "'a.b'")
    together = decide_create_topic(cluster.controller, NewTopic("c_d", 1, 1), also=["c.d"])
    refused(together, ErrorCode.INVALID_TOPIC_EXCEPTION, "'c.d'")


def test_settings_of_a_new_topic_are_part_of_its_batch(scene):
    cluster = scene()
    cluster.create("orders", (1,), retention_ms="5")
    assert cluster.image.config(TOPIC_RESOURCE, "orders") == {"retention.ms": "5"}


def test_deleting_is_by_id(scene):
    cluster = scene()
    cluster.create("orders", (1,))
    cluster.apply(decide_delete_topic(cluster.controller, cluster.image.topics["orders"].topic_id))
    assert cluster.image.topics == {}
    refused(decide_delete_topic(cluster.controller, Uuid(b"x" * 16)), ErrorCode.UNKNOWN_TOPIC_ID)


def test_more_partitions_get_as_many_replicas_as_the_first(scene):
    cluster = scene()
    cluster.create("orders", (1, 2))
    cluster.apply(decide_create_partitions(cluster.controller, "orders", count=4))
    partitions = cluster.image.topics["orders"].partitions
    assert list(partitions) == [0, 1, 2, 3]
    assert {len(partition.replicas) for partition in partitions.values()} == {2}


def test_more_partitions_by_hand(scene):
    cluster = scene()
    cluster.create("orders", (1, 2))
    cluster.apply(
        decide_create_partitions(
            cluster.controller, "orders", count=3, assignments=((3, 1), (2, 3))
        )
    )
    assert cluster.partition(number=1).replicas == (3, 1)
    assert cluster.partition(number=2).leader == 2


@pytest.mark.parametrize(
    ("name", "count", "assignments", "error"),
    [
        ("none", 3, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("orders", 1, None, ErrorCode.INVALID_PARTITIONS),
        ("orders", 0, None, ErrorCode.INVALID_PARTITIONS),
        ("orders", PARTITIONS_PER_DECISION_MAX + 2, None, ErrorCode.POLICY_VIOLATION),
        ("orders", 3, ((1, 2),), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("orders", 2, ((1,),), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("orders", 2, ((1, 9),), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_partitions_that_make_no_sense_are_refused(scene, name, count, assignments, error):
    cluster = scene()
    cluster.create("orders", (1, 2))
    decided = decide_create_partitions(
        cluster.controller, name, count=count, assignments=assignments
    )
    refused(decided, error)


def test_topic_that_is_asked_for_is_created_by_the_defaults_of_its_kind(scene):
    cluster = scene(settings={"num.partitions": "2", "offsets.topic.num.partitions": "5"})
    cluster.apply(decide_auto_create(cluster.controller, "orders"))
    cluster.apply(decide_auto_create(cluster.controller, "__consumer_offsets"))
    cluster.apply(decide_auto_create(cluster.controller, "__transaction_state"))
    sizes = {name: len(topic.partitions) for name, topic in cluster.image.topics.items()}
    assert sizes == {"orders": 2, "__consumer_offsets": 5, "__transaction_state": 50}
    offsets = cluster.image.config(TOPIC_RESOURCE, "__consumer_offsets")
    assert offsets["cleanup.policy"] == "compact"
    refused(decide_auto_create(cluster.controller, "orders"), ErrorCode.TOPIC_ALREADY_EXISTS)


def test_records_of_a_new_topic_stand_in_the_order_of_their_meaning(scene):
    created = decide_create_topic(
        scene().controller, NewTopic("t", 1, 1, configs=(("retention.ms", "1"),))
    )
    kinds = [type(record) for record in created.records]
    assert kinds == [TopicRecord, ConfigRecord, PartitionRecord]
