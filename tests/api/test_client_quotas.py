"""AlterClientQuotas and DescribeClientQuotas."""

from __future__ import annotations

import pytest

from cotidal.api import alter_client_quotas, describe_client_quotas
from cotidal.errors import ErrorCode
from cotidal.messages.rpc import alter_client_quotas as altering
from cotidal.messages.rpc.describe_client_quotas import ComponentData, DescribeClientQuotasRequest

RATE = "consumer_byte_rate"


def entry(*parts, **quotas):
    return altering.AlterClientQuotasRequestEntryData(
        tuple(altering.AlterClientQuotasRequestEntityData(*part) for part in parts),
        tuple(altering.OpData(key, value or 0.0, value is None) for key, value in quotas.items()),
    )


def alter(cluster, asked, *entries, validate_only=False):
    request = altering.AlterClientQuotasRequest(entries, validate_only)
    decision = alter_client_quotas.decide(request, asked(1), cluster.controller)
    for record in decision.records:
        cluster.image.replay(record)
    return [each.error_code for each in decision.reply.entries]


def describe(cluster, asked, *components, strict=False):
    request = DescribeClientQuotasRequest(
        tuple(ComponentData(*each) for each in components), strict
    )
    reply = describe_client_quotas.answer(request, asked(1), cluster.view)
    if reply.error_code:
        assert reply.entries is None
        return ErrorCode(reply.error_code)
    return [{part.entity_type: part.entity_name for part in each.entity} for each in reply.entries]


@pytest.fixture
def limited(cluster, asked):
    alice, anybody, c1 = ("user", "alice"), ("user", None), ("client-id", "c1")
    entities = ((alice,), (anybody,), (c1,), (alice, c1), (anybody, ("client-id", None)))
    changed = [entry(*each, consumer_byte_rate=1_000.0) for each in entities]
    assert alter(cluster, asked, *changed) == [0] * 5
    return cluster


def test_one_entity_is_refused_and_the_others_are_changed(cluster, asked):
    good, bad = entry(("user", "a"), producer_byte_rate=1.0), entry(("ip", "1.2.3.4"), x=1.0)
    assert alter(cluster, asked, bad, good) == [ErrorCode.INVALID_REQUEST, 0]
    assert list(cluster.image.quotas) == [(("user", "a"),)]


def test_an_entity_that_is_named_twice_is_refused_the_second_time(cluster, asked):
    twice = entry(("user", "a"), producer_byte_rate=1.0)
    assert alter(cluster, asked, twice, twice) == [0, ErrorCode.INVALID_REQUEST]


def test_validation_changes_nothing(cluster, asked):
    change = entry(("user", "a"), producer_byte_rate=1.0)
    assert alter(cluster, asked, change, validate_only=True) == [0]
    assert cluster.image.quotas == {}


def test_no_component_tells_everything(limited, asked):
    assert len(describe(limited, asked)) == 5
    assert describe(limited, asked, strict=True) == []


@pytest.mark.parametrize(
    ("components", "strict", "found"),
    [
        ([("user", 0, "alice")], True, [{"user": "alice"}]),
        (
            [("user", 0, "alice")],
            False,
            [{"user": "alice"}, {"client-id": "c1", "user": "alice"}],
        ),
        ([("user", 1, None)], True, [{"user": None}]),
        ([("user", 2, None)], True, [{"user": "alice"}, {"user": None}]),
        (
            [("user", 2, None), ("client-id", 2, None)],
            True,
            [{"client-id": "c1", "user": "alice"}, {"client-id": None, "user": None}],
        ),
        ([("client-id", 0, "none")], False, []),
        ([("ip", 2, None)], False, []),
    ],
)
def test_components_choose_entities(limited, asked, components, strict, found):
    assert describe(limited, asked, *components, strict=strict) == found


@pytest.mark.parametrize(
    "components",
    [
        [("", 2, None)],
        [("user", 2, None), ("user", 1, None)],
        [("user", 0, None)],
        [("user", 1, "alice")],
        [("user", 2, "alice")],
        [("user", 9, None)],
        [("ip", 2, None), ("user", 2, None)],
    ],
)
def test_a_question_that_makes_no_sense_is_refused(limited, asked, components):
    assert describe(limited, asked, *components) is ErrorCode.INVALID_REQUEST


def test_an_unknown_type_of_entity_is_for_a_later_version(limited, asked):
    assert describe(limited, asked, ("host", 2, None)) is ErrorCode.UNSUPPORTED_VERSION
