from __future__ import annotations

import pytest

from cotidal.api.api_versions import answer
from cotidal.api.registry import APIS, OURS
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.api_versions import ApiVersion, ApiVersionsRequest

GOOD = ApiVersionsRequest("librdkafka", "2.6.1")


def test_every_api_is_told_with_its_range(cluster, asked):
    response = answer(GOOD, asked(4), cluster.view)
    assert response.error_code == ErrorCode.NONE
    assert ApiVersion(0, 0, 13) in response.api_keys
    assert len(response.api_keys) == len(APIS)


def test_controller_listener_tells_only_what_it_serves(cluster, asked):
    response = answer(GOOD, asked(4, listener="CONTROLLER"), cluster.view)
    keys = {api.api_key for api in response.api_keys}
    assert {1, 18, 19, 55} <= keys
    assert not keys & {0, 2, 3, 10, 75}


def test_controller_listener_tells_what_nodes_ask_each_other(cluster, asked):
    """A broker of Apache Kafka does not register with a controller that does not say it can."""
    response = answer(GOOD, asked(4, listener="CONTROLLER"), cluster.view)
    told = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
    kafka_4_3 = {
        52: (0, 2), 53: (0, 1), 54: (0, 1), 56: (2, 3), 58: (0, 0), 59: (0, 1), 62: (0, 4),
        63: (0, 2), 67: (0, 0), 70: (0, 0), 73: (0, 0), 82: (0, 0),
    }  # fmt: skip
    assert {key: told[key] for key in kafka_4_3} == kafka_4_3
    elsewhere = answer(GOOD, asked(4), cluster.view)
    assert not kafka_4_3.keys() & {api.api_key for api in elsewhere.api_keys}


def test_unknown_version_is_told_this_apis_own_range(cluster, asked):
    response = answer(None, asked(99), cluster.view)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert response.api_keys == (ApiVersion(18, 0, 4),)


@pytest.mark.parametrize("name", ["", "-x", "x-", "a b", "a/b", "é"])
def test_client_that_hides_its_name_is_refused_from_version_3_on(cluster, asked, name):
    for wrong in (ApiVersionsRequest(name, "1"), ApiVersionsRequest("x", name)):
        assert answer(wrong, asked(3), cluster.view).error_code == ErrorCode.INVALID_REQUEST
        assert answer(wrong, asked(2), cluster.view).error_code == ErrorCode.NONE


def test_finalized_features_are_those_of_the_image(cluster, asked):
    response = answer(GOOD, asked(4), cluster.view)
    levels = {each.name: each.max_version_level for each in response.finalized_features}
    assert levels == cluster.image.features
    assert response.finalized_features_epoch == 39


def test_features_from_level_0_are_left_out_below_version_4(cluster, asked):
    names = {each.name for each in answer(GOOD, asked(3), cluster.view).supported_features}
    assert names == {"metadata.version"}
    names = {each.name for each in answer(GOOD, asked(4), cluster.view).supported_features}
    assert "transaction.version" in names


def test_apis_of_our_own_are_told_to_our_own_client_only(cluster, asked):
    def told(name, version, listener="PLAINTEXT"):
        request = ApiVersionsRequest(name, "1")
        response = answer(request, asked(version, listener=listener), cluster.view)
        return {api.api_key for api in response.api_keys} & OURS.keys()

    assert told("cotidal", 4) == told("cotidal", 3) == OURS.keys()
    assert not told("librdkafka", 4)
    assert not told("cotidal", 2), "there is no name in version 2"
    assert not told("cotidal", 4, listener="CONTROLLER")
