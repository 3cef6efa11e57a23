from __future__ import annotations

import pytest

from cotidal.core.cluster.controller import Controller
from cotidal.core.cluster.decide.brokers import decide_fence, decide_register, decide_unfence
from cotidal.core.cluster.decide.controllers import decide_register_controller
from cotidal.core.cluster.decide.features import (
    SAFE_DOWNGRADE,
    SUPPORTED,
    UNSAFE_DOWNGRADE,
    UPGRADE,
    FeatureUpdate,
    bootstrap_records,
    decide_features,
)
from cotidal.core.cluster.image import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    ELR_VERSION,
    ControllerNode,
    Endpoint,
    Image,
)
from cotidal.core.machine import Entropy
from cotidal.errors import ErrorCode
from cotidal.messages.records.metadata import FeatureLevelRecord
from cotidal.values import Uuid


def first_image(settings):
    image = Image()
    controller = Controller(image, Entropy(1), settings, node_id=1)
    records = bootstrap_records(controller)
    for record in records:
        image.replay(record)
    return records, image


def test_new_cluster_begins_with_the_levels_of_kafka_4_3():
    records, image = first_image({})
    assert records[0] == FeatureLevelRecord("metadata.version", 30)
    assert image.features == {
        "metadata.version": 30,
        "group.version": 1,
        "transaction.version": 2,
        "eligible.leader.replicas.version": 1,
    }
    assert image.elr_enabled


def test_min_isr_becomes_a_record_because_elr_depends_upon_it():
    assert first_image({})[1].cluster_config == {"min.insync.replicas": "1"}
    settings = {"min.insync.replicas": "2"}
    assert first_image(settings)[1].cluster_config == {"min.insync.replicas": "2"}


def update(cluster, *updates):
    return decide_features(cluster.controller, tuple(FeatureUpdate(*each) for each in updates))


def refused(decided):
    assert decided.records == ()
    return [each and each.error for each in decided.refusals]


def test_level_goes_down_when_that_is_asked_for_and_up_again(scene):
    cluster = scene()
    cluster.apply(update(cluster, ("group.version", 0, SAFE_DOWNGRADE)).records)
    assert "group.version" not in cluster.image.features
    cluster.apply(update(cluster, ("group.version", 1)).records)
    assert cluster.image.features["group.version"] == 1
    assert update(cluster, ("group.version", 1)).records == ()


@pytest.mark.parametrize(
    "wrong",
    [
        ("group.version", 2),
        ("group.version", -1),
        ("group.version", 0, UPGRADE),
        ("group.version", 1, 9),
        ("no.such.feature", 1),
        ("no.such.feature", 0),
        ("kraft.version", 1),
        ("metadata.version", 31),
        ("metadata.version", 29, SAFE_DOWNGRADE),
        ("metadata.version", 29, UNSAFE_DOWNGRADE),
    ],
)
def test_level_that_cannot_be_is_refused(scene, wrong):
    assert refused(update(scene(), wrong)) == [ErrorCode.INVALID_UPDATE_VERSION]


def test_downgrade_cannot_go_up(scene):
    cluster = scene()
    cluster.image.features["transaction.version"] = 1
    for kind in (SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        decided = update(cluster, ("transaction.version", 2, kind))
        assert refused(decided) == [ErrorCode.INVALID_UPDATE_VERSION]


def test_updates_are_made_together_or_not_at_all(scene):
    cluster = scene()
    decided = update(cluster, ("group.version", 0, SAFE_DOWNGRADE), ("metadata.version", 31))
    assert refused(decided) == [None, ErrorCode.INVALID_UPDATE_VERSION]


def test_feature_that_is_named_twice_is_refused(scene):
    decided = update(scene(), ("group.version", 1), ("group.version", 1))
    assert refused(decided) == [ErrorCode.INVALID_REQUEST] * 2


def test_every_registered_node_must_be_able_to_read_a_level(scene, registers):
    old = tuple(each for each in SUPPORTED if each.name != "group.version")
    cluster = scene(brokers=0)
    cluster.apply(update(cluster, ("group.version", 0, SAFE_DOWNGRADE)).records)
    asked = registers(1)._replace(features=old)
    cluster.apply(decide_register(cluster.controller, asked, epoch=cluster.end_offset))
    assert refused(update(cluster, ("group.version", 1))) == [ErrorCode.INVALID_UPDATE_VERSION]
    (told,) = update(cluster, ("group.version", 1)).refusals
    assert "broker 1 does not know it" in told.text
    assert update(cluster, ("group.version", 0, SAFE_DOWNGRADE)).refusals == (None,)

    cluster = scene(brokers=0)
    cluster.image.features["transaction.version"] = 1
    older = tuple(
        each._replace(newest=1) if each.name == "transaction.version" else each
        for each in SUPPORTED
    )
    node = ControllerNode(7, Uuid(b"c" * 16), (Endpoint("CONTROLLER", "c", 1),), older)
    cluster.apply(decide_register_controller(cluster.controller, node))
    (told,) = update(cluster, ("transaction.version", 2)).refusals
    assert "controller 7 supports 0 to 1" in told.text


def test_elr_needs_records_that_have_room_for_it(scene):
    cluster = scene(elr=False)
    cluster.image.features["metadata.version"] = 22
    assert refused(update(cluster, (ELR_VERSION, 1))) == [ErrorCode.INVALID_UPDATE_VERSION]
    both = update(cluster, (ELR_VERSION, 1), ("metadata.version", 30))
    assert [record.name for record in both.records[:2]] == ["metadata.version", ELR_VERSION]


def test_switching_elr_off_clears_it(scene):
    cluster = scene()
    cluster.create("orders", (1, 2), min_insync_replicas="2")
    cluster.apply(decide_fence(cluster.controller, 2))
    assert cluster.partition().elr == (2,)
    cluster.apply(update(cluster, (ELR_VERSION, 0, SAFE_DOWNGRADE)).records)
    assert (cluster.partition().elr, cluster.image.elr_enabled) == ((), False)


def test_elr_stays_while_some_isr_is_empty(scene):
    cluster = scene()
    cluster.create("orders", (1,))
    cluster.apply(decide_fence(cluster.controller, 1))
    decided = update(cluster, (ELR_VERSION, 0, SAFE_DOWNGRADE))
    assert refused(decided) == [ErrorCode.INVALID_UPDATE_VERSION]
    assert "orders-0" in decided.refusals[0].text


def test_switching_elr_on_makes_fenced_members_eligible_and_settles_min_isr(scene):
    cluster = scene(elr=False)
    cluster.create("orders", (1,))
    cluster.apply(decide_fence(cluster.controller, 1))
    assert cluster.partition().isr == (1,)
    del cluster.image.configs[CLUSTER_DEFAULT]
    cluster.image.configs[(BROKER_RESOURCE, "2")] = {"min.insync.replicas": "3"}
    cluster.apply(update(cluster, (ELR_VERSION, 1)).records)
    assert (cluster.partition().isr, cluster.partition().elr) == ((), (1,))
    assert cluster.image.cluster_config == {"min.insync.replicas": "1"}
    assert (BROKER_RESOURCE, "2") not in cluster.image.configs
    cluster.apply(decide_unfence(cluster.controller, 1))
    assert cluster.partition().leader == 1
