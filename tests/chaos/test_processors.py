"""A processor whose librdkafka stands still is left behind, and another goes on where it was."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from cotidal.testing.cluster import Cluster
from real_cluster import until
from tests.chaos import patience, processors
from tests.chaos.clients import TOPIC
from tests.chaos.processors import COPIES, COPIES_PARTITIONS, STILL, Ledger, Processor

RECORDS = 20


def test_a_processor_that_stands_still_is_followed_by_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    never = threading.Event()
    stood = []

    def within(seconds: float, call: Callable[[], object]) -> None:
        if not stood:
            stood.append(seconds)
            patience.within(0.1, lambda: (call(), never.wait(60)))
        patience.within(seconds, call)

    monkeypatch.setattr(processors, "within", within)
    ledger = Ledger()
    with Cluster(brokers=1) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        topics = [NewTopic(TOPIC, 1, 1), NewTopic(COPIES, COPIES_PARTITIONS, 1)]
        for made in admin.create_topics(topics).values():
            made.result(20)
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        for number in range(RECORDS):
            producer.produce(TOPIC, b"%d" % number, partition=0)
        assert producer.flush(20) == 0
        processor = Processor(cluster.bootstrap, "processor", ledger, seed=1)
        until(lambda: processors.processed(cluster.bootstrap, 1) == {0: RECORDS})
        processor.stop()
    never.set()
    assert processor.helped == {STILL: 1}
    assert processor.broken is None
    assert ledger.committed >= 1
