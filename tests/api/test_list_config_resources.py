from __future__ import annotations

from cotidal.api.list_config_resources import answer
from cotidal.errors import ErrorCode
from cotidal.messages.records.metadata import ConfigRecord
from cotidal.messages.rpc.list_config_resources import ListConfigResourcesRequest


def listed(cluster, asked, version, *types):
    response = answer(ListConfigResourcesRequest(types), asked(version), cluster.view)
    assert response.error_code == ErrorCode.NONE
    return [(each.resource_type, each.resource_name) for each in response.config_resources]


def test_every_kind_is_listed_when_none_is_named(cluster, asked):
    cluster.image.replay(ConfigRecord(32, "billing", "consumer.session.timeout.ms", "46000"))
    found = listed(cluster, asked, 1)
    assert {(2, "orders"), (4, "1"), (8, "4"), (32, "billing")} <= set(found)


def test_only_the_kinds_named_are_listed(cluster, asked):
    assert listed(cluster, asked, 1, 2) == [(2, "orders"), (2, "lonely")]


def test_first_version_lists_client_metrics_of_which_there_are_none(cluster, asked):
    assert listed(cluster, asked, 0) == []


def test_unknown_kind_is_refused(cluster, asked):
    response = answer(ListConfigResourcesRequest((2, 99)), asked(1), cluster.view)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert response.config_resources == ()
