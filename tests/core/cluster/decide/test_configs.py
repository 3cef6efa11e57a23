from __future__ import annotations

import pytest

from cotidal.core.cluster.decide.brokers import decide_fence, decide_unfence
from cotidal.core.cluster.decide.configs import (
    APPEND,
    DELETE,
    SET,
    SUBTRACT,
    ConfigChange,
    decide_alter,
    decide_incremental_alter,
)
from cotidal.core.cluster.image import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.metadata import ClearElrRecord, ConfigRecord
from cotidal.values import NO_NODE

ORDERS = (TOPIC_RESOURCE, "orders")
CLUSTER = (BROKER_RESOURCE, "")


@pytest.fixture
def cluster(scene):
    cluster = scene()
    cluster.create("orders", (1, 2, 3), retention_ms="5")
    return cluster


def alter(cluster, resource, *changes):
    return decide_incremental_alter(
        cluster.controller, resource, tuple(ConfigChange(*change) for change in changes)
    )


def refused(decided, error, says=""):
    assert isinstance(decided, Refusal), decided
    assert decided.error is error, decided
    assert says in decided.text, decided


def test_set_and_delete(cluster):
    cluster.apply(
        alter(cluster, ORDERS, ("retention.bytes", SET, "9"), ("retention.ms", DELETE, None))
    )
    assert cluster.image.config(*ORDERS) == {"retention.bytes": "9"}


def test_unchanged_topic_setting_needs_no_record_but_a_brokers_does(cluster):
    assert alter(cluster, ORDERS, ("retention.ms", SET, "5")) == ()
    change = ("log.retention.ms", SET, "5")
    cluster.apply(alter(cluster, CLUSTER, change))
    assert len(alter(cluster, CLUSTER, change)) == 1


def test_append_and_subtract_start_from_what_holds(cluster):
    cluster.apply(alter(cluster, ORDERS, ("cleanup.policy", APPEND, "compact,delete")))
    assert cluster.image.config(*ORDERS)["cleanup.policy"] == "delete,compact"
    cluster.apply(alter(cluster, ORDERS, ("cleanup.policy", SUBTRACT, "delete")))
    assert cluster.image.config(*ORDERS)["cleanup.policy"] == "compact"
    refused(alter(cluster, ORDERS, ("retention.ms", APPEND, "6")), ErrorCode.INVALID_CONFIG, "list")


def test_full_replace_removes_what_is_not_named(cluster):
    cluster.apply(decide_alter(cluster.controller, ORDERS, {"segment.ms": "7"}))
    assert cluster.image.config(*ORDERS) == {"segment.ms": "7"}
    refused(
        decide_alter(cluster.controller, ORDERS, {"segment.ms": None}), ErrorCode.INVALID_REQUEST
    )


@pytest.mark.parametrize(
    ("resource", "change", "error", "says"),
    [
        (ORDERS, ("retention.mss", SET, "1"), ErrorCode.INVALID_CONFIG, "mean retention.ms"),
        (ORDERS, ("retention.mss", APPEND, "1"), ErrorCode.INVALID_CONFIG, "did you mean"),
        (ORDERS, ("retention.ms", SET, "-2"), ErrorCode.INVALID_CONFIG, "at least -1"),
        (ORDERS, ("retention.ms", SET, None), ErrorCode.INVALID_REQUEST, "no value"),
        (ORDERS, ("retention.ms", 7, "1"), ErrorCode.INVALID_REQUEST, "operation 7"),
        ((TOPIC_RESOURCE, "none"), ("retention.ms", SET, "1"),
         ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "none"),
        ((TOPIC_RESOURCE, ""), ("retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST, ""),
        ((BROKER_RESOURCE, "9"), ("log.retention.ms", SET, "1"),
         ErrorCode.BROKER_ID_NOT_REGISTERED, "9"),
        ((BROKER_RESOURCE, "x"), ("log.retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST, "x"),
        ((BROKER_RESOURCE, "1"), ("node.id", SET, "1"),
         ErrorCode.INVALID_REQUEST, "server.properties"),
        (CLUSTER, ("log.retention.msx", SET, "1"), ErrorCode.INVALID_CONFIG, "log.retention.ms"),
        ((GROUP_RESOURCE, ""), ("consumer.session.timeout.ms", SET, "1"),
         ErrorCode.INVALID_REQUEST, ""),
        ((8, "1"), ("root", SET, "INFO"), ErrorCode.INVALID_REQUEST, "type 8"),
    ],
)  # fmt: skip
def test_change_that_makes_no_sense_is_refused(cluster, resource, change, error, says):
    refused(alter(cluster, resource, change), error, says)


def test_setting_named_twice_is_refused(cluster):
    twice = alter(cluster, ORDERS, ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
    refused(twice, ErrorCode.INVALID_REQUEST, "twice")


def test_unknown_name_may_be_deleted(cluster):
    assert alter(cluster, ORDERS, ("left.over", DELETE, None)) == ()


def test_values_are_judged_together(cluster):
    cluster.apply(alter(cluster, ORDERS, ("max.compaction.lag.ms", SET, "10")))
    refused(
        alter(cluster, ORDERS, ("min.compaction.lag.ms", SET, "11")),
        ErrorCode.INVALID_CONFIG,
        "max.compaction.lag.ms (10)",
    )


def test_group_has_settings_without_having_members(cluster):
    cluster.apply(
        alter(cluster, (GROUP_RESOURCE, "g"), ("consumer.session.timeout.ms", SET, "50000"))
    )
    assert cluster.image.config(GROUP_RESOURCE, "g") == {"consumer.session.timeout.ms": "50000"}


def test_min_isr_cannot_differ_between_brokers_while_elr_is_on(cluster, scene):
    change = ("min.insync.replicas", SET, "2")
    refused(alter(cluster, (BROKER_RESOURCE, "1"), change), ErrorCode.INVALID_CONFIG, "brokers")
    assert not isinstance(alter(scene(elr=False), (BROKER_RESOURCE, "1"), change), Refusal)


def test_cluster_wide_min_isr_cannot_be_removed_while_elr_is_on(cluster):
    change = ("min.insync.replicas", DELETE, None)
    refused(alter(cluster, CLUSTER, change), ErrorCode.INVALID_CONFIG, "removed")
    refused(decide_alter(cluster.controller, CLUSTER, {}), ErrorCode.INVALID_CONFIG, "removed")


def test_change_of_min_isr_clears_the_elr_it_concerns(cluster):
    cluster.apply(alter(cluster, ORDERS, ("min.insync.replicas", SET, "3")))
    cluster.apply(decide_fence(cluster.controller, 3))
    assert cluster.partition().elr == (3,)
    records = cluster.apply(alter(cluster, ORDERS, ("min.insync.replicas", SET, "2")))
    assert [type(record) for record in records] == [ConfigRecord, ClearElrRecord]
    assert records[-1].topic_name == "orders"
    assert cluster.partition().elr == ()
    wide = alter(cluster, CLUSTER, ("min.insync.replicas", SET, "2"))
    assert wide[-1] == ClearElrRecord("")
    cluster.apply(wide)
    assert len(alter(cluster, CLUSTER, ("min.insync.replicas", SET, "2"))) == 1


def test_partition_that_nobody_leads_keeps_its_elr_when_min_isr_changes(cluster):
    """It would have nobody left to wait for."""
    cluster.create("lost", (2,))
    for number in (3, 2, 1):
        cluster.apply(decide_fence(cluster.controller, number))
    cluster.register(2, life=1)
    assert cluster.partition().elr == (1,)
    assert cluster.partition("lost").last_known_elr == (2,)
    for resource in (ORDERS, (TOPIC_RESOURCE, "lost"), CLUSTER):
        cluster.apply(alter(cluster, resource, ("min.insync.replicas", SET, "3")))
        assert cluster.partition().elr == (1,)
        assert cluster.partition("lost").last_known_elr == (2,)
    cluster.apply(decide_unfence(cluster.controller, 1))
    assert cluster.partition().leader == 1


def leaderless(scene):
    """Broker 2 is there, but not in sync."""
    cluster = scene()
    for topic in ("orders", "other"):
        cluster.create(topic, (1, 2))
    cluster.apply(decide_fence(cluster.controller, 2))
    cluster.apply(decide_fence(cluster.controller, 1))
    cluster.apply(decide_unfence(cluster.controller, 2))
    assert cluster.partition().leader == NO_NODE
    return cluster


def test_allowing_unclean_election_for_a_topic_elects_there_at_once(scene):
    cluster = leaderless(scene)
    cluster.apply(alter(cluster, ORDERS, ("unclean.leader.election.enable", SET, "true")))
    assert (cluster.partition().leader, cluster.partition("other").leader) == (2, NO_NODE)


def test_allowing_unclean_election_for_the_cluster_elects_where_no_topic_says_otherwise(scene):
    cluster = leaderless(scene)
    cluster.apply(alter(cluster, ORDERS, ("unclean.leader.election.enable", SET, "false")))
    cluster.apply(alter(cluster, CLUSTER, ("unclean.leader.election.enable", SET, "true")))
    assert (cluster.partition().leader, cluster.partition("other").leader) == (NO_NODE, 2)
    cluster.apply(alter(cluster, ORDERS, ("unclean.leader.election.enable", DELETE, None)))
    assert cluster.partition().leader == 2


def test_setting_that_is_decided_upon_is_not_yet_in_the_image(scene):
    cluster = leaderless(scene)
    before = cluster.image.copy()
    alter(cluster, ORDERS, ("unclean.leader.election.enable", SET, "true"))
    assert cluster.image == before
