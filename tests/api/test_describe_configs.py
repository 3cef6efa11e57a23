from __future__ import annotations

import pytest

from cotidal.api.describe_configs import answer
from cotidal.errors import ErrorCode
from cotidal.messages.records.metadata import ConfigRecord
from cotidal.messages.rpc.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from cotidal.settings import BROKER, TOPIC, Kind, Source


def ask(kind, name, keys=None, **fields):
    resource = DescribeConfigsResource(kind, name, keys)
    return DescribeConfigsRequest(resources=(resource,), **fields)


def described(cluster, asked, *args, **fields):
    (result,) = answer(ask(*args, **fields), asked(4), cluster.view).results
    assert result.error_code == ErrorCode.NONE, result
    return {entry.name: entry for entry in result.configs}


def test_topic_tells_every_setting_and_where_it_comes_from(make_cluster, asked):
    cluster = make_cluster({"log.segment.bytes": "2000000"})
    cluster.image.replay(ConfigRecord(2, "orders", "retention.ms", "5"))
    cluster.image.replay(ConfigRecord(4, "", "message.max.bytes", "77"))
    entries = described(cluster, asked, 2, "orders")
    assert set(entries) == set(TOPIC) - {"internal.segment.bytes"}
    assert (entries["retention.ms"].value, entries["retention.ms"].config_source) == ("5", 1)
    assert entries["max.message.bytes"].config_source == Source.CLUSTER
    assert entries["segment.bytes"].config_source == Source.STATIC
    assert entries["flush.ms"].config_source == Source.DEFAULT
    assert not any(entry.read_only for entry in entries.values())
    assert entries["cleanup.policy"].config_type == Kind.LIST


def test_synonyms_and_documentation_come_only_when_asked_for(cluster, asked):
    bare = described(cluster, asked, 2, "orders", ("retention.ms",))["retention.ms"]
    assert (bare.synonyms, bare.documentation) == ((), None)
    full = described(
        cluster,
        asked,
        2,
        "orders",
        ("retention.ms",),
        include_synonyms=True,
        include_documentation=True,
    )["retention.ms"]
    assert [(each.name, each.value) for each in full.synonyms] == [("log.retention.hours", "168")]
    assert full.documentation == TOPIC["retention.ms"].doc


def test_only_the_keys_asked_for_are_told(cluster, asked):
    keys = ("retention.ms", "segment.ms", "none")
    assert set(described(cluster, asked, 2, "orders", keys)) == {"retention.ms", "segment.ms"}
    assert len(described(cluster, asked, 2, "orders", ())) > 20, "no keys: all"


def test_broker_tells_its_own_settings_and_which_are_read_only(make_cluster, asked):
    cluster = make_cluster({"num.partitions": "4"})
    cluster.image.replay(ConfigRecord(4, "1", "log.retention.ms", "9"))
    entries = described(cluster, asked, 4, "1", include_documentation=True)
    assert set(entries) == set(BROKER)
    assert (entries["num.partitions"].value, entries["num.partitions"].read_only) == ("4", True)
    assert entries["log.retention.ms"].config_source == Source.BROKER
    assert not entries["log.retention.ms"].read_only
    assert "without effect" in entries["num.io.threads"].documentation


def test_defaults_of_all_brokers_tell_only_what_is_set(cluster, asked):
    entries = described(cluster, asked, 4, "")
    assert {name: entry.value for name, entry in entries.items()} == {"min.insync.replicas": "1"}
    assert entries["min.insync.replicas"].config_source == Source.CLUSTER


def test_group_falls_back_to_the_brokers_settings(cluster, asked):
    entries = described(cluster, asked, 32, "billing")
    assert entries["consumer.session.timeout.ms"].value == "45000"


def test_loggers_and_client_metrics_are_answered_and_empty(cluster, asked):
    assert described(cluster, asked, 8, "1") == {}
    assert described(cluster, asked, 16, "any") == {}


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (2, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (2, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (4, "2", ErrorCode.INVALID_REQUEST),
        (4, "x", ErrorCode.INVALID_REQUEST),
        (8, "", ErrorCode.INVALID_REQUEST),
        (32, "", ErrorCode.INVALID_REQUEST),
        (0, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_resource_that_cannot_be_described_is_told_why(cluster, asked, kind, name, error):
    (result,) = answer(ask(kind, name), asked(4), cluster.view).results
    assert result.error_code == error
    assert result.error_message
    assert (result.resource_type, result.resource_name) == (kind, name)
