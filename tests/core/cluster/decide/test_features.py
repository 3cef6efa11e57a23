from __future__ import annotations

from cotidal.core.cluster.controller import Controller
from cotidal.core.cluster.decide.features import bootstrap_records
from cotidal.core.cluster.image import Image
from cotidal.core.machine import Entropy
from cotidal.messages.records.metadata import FeatureLevelRecord


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
