"""Which quotas can be set, and what becomes of them."""

from __future__ import annotations

import pytest

from cotidal.core.cluster.decide.quotas import QuotaChange, decide_quotas
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.metadata import ClientQuotaRecord, EntityData

PRODUCED = "producer_byte_rate"


@pytest.fixture(name="scene")
def scene_(scene):
    return scene()


def decide(scene, parts, *changes):
    return decide_quotas(scene.controller, parts, tuple(QuotaChange(*each) for each in changes))


def test_a_quota_is_set_changed_and_removed(scene):
    entity = (("client-id", "a"),)
    scene.apply(decide(scene, entity, (PRODUCED, 100.0), ("request_percentage", 0.5)))
    assert scene.image.quotas == {entity: {PRODUCED: 100.0, "request_percentage": 0.5}}
    scene.apply(decide(scene, entity, (PRODUCED, 200.0)))
    assert scene.image.quotas[entity][PRODUCED] == 200.0
    scene.apply(decide(scene, entity, (PRODUCED, None), ("request_percentage", None)))
    assert scene.image.quotas == {}


def test_what_holds_already_is_not_written_again(scene):
    entity = (("user", None),)
    scene.apply(decide(scene, entity, (PRODUCED, 100.0)))
    assert decide(scene, entity, (PRODUCED, 100.0)) == ()
    assert decide(scene, entity, ("consumer_byte_rate", None)) == ()


def test_an_entity_is_the_same_in_whatever_order_its_parts_are_told(scene):
    scene.apply(decide(scene, (("user", "u"), ("client-id", "c")), (PRODUCED, 100.0)))
    assert decide(scene, (("client-id", "c"), ("user", "u")), (PRODUCED, 100.0)) == ()
    parts = (EntityData("user", "u"), EntityData("client-id", "c"))
    scene.apply((ClientQuotaRecord(parts, PRODUCED, 7.0, False),))
    assert list(scene.image.quotas.values()) == [{PRODUCED: 7.0}]


@pytest.mark.parametrize(
    ("parts", "changes"),
    [
        ((), ((PRODUCED, 1.0),)),
        ((("host", "h"),), ((PRODUCED, 1.0),)),
        ((("user", ""),), ((PRODUCED, 1.0),)),
        ((("user", "a"), ("user", "b")), ((PRODUCED, 1.0),)),
        ((("ip", "127.0.0.1"),), (("connection_creation_rate", 1.0),)),
        ((("user", "a"),), (("nonsense", 1.0),)),
        ((("user", "a"),), (("connection_creation_rate", 1.0),)),
        ((("user", "a"),), ((PRODUCED, 0.0),)),
        ((("user", "a"),), ((PRODUCED, -5.0),)),
        ((("user", "a"),), ((PRODUCED, 1.5),)),
        ((("user", "a"),), (("request_percentage", float("nan")),)),
        ((("user", "a"),), (("request_percentage", float("inf")),)),
        ((("user", "a"),), ((PRODUCED, 1.0), (PRODUCED, 2.0))),
    ],
)
def test_what_makes_no_sense_is_refused(scene, parts, changes):
    refused = decide(scene, parts, *changes)
    assert isinstance(refused, Refusal)
    assert refused.error == ErrorCode.INVALID_REQUEST
    assert refused.text
