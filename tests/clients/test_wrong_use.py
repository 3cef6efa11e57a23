"""What a client does wrong is answered with Kafka's error, and harms nobody."""

from __future__ import annotations

import pytest

from cotidal.errors import ErrorCode
from real_node import RealNode
from tests.clients.confluent import Confluent
from tests.clients.speaking import Acks, Client, Refused, Sent

ALL = Acks(-1)


def test_an_unknown_topic_is_not_created_by_asking(client: Client, topic: str) -> None:
    with pytest.raises(Refused) as refused:
        client.partition_count(topic)
    assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert topic not in client.topics()


def test_writing_to_an_unknown_topic_is_refused(topic: str, confluent: Confluent) -> None:
    errors: list[str] = []
    producer = confluent.producer(
        message_timeout_ms=3_000, topic_metadata_propagation_max_ms=0, retries=0
    )
    producer.produce(topic, b"v", on_delivery=lambda error, _: errors.append(error.name()))
    assert producer.flush(10) == 0
    assert errors == ["UNKNOWN_TOPIC_OR_PART"]
    assert topic not in confluent.topics()


@pytest.mark.parametrize("acks", [Acks(1), Acks(-1), Acks(-1, idempotent=True)], ids=str)
def test_a_record_that_is_too_large_is_refused(client: Client, topic: str, acks: Acks) -> None:
    client.create_topic(topic, configs={"max.message.bytes": "10000"})
    with pytest.raises(Refused) as refused:
        client.write(topic, 0, [Sent(None, b"x" * 20_000)], codec="none", acks=acks)
    assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
    assert client.write(topic, 0, [Sent(None, b"small")], codec="none", acks=acks) == [0]


def test_an_offset_past_the_end_is_out_of_range(topic: str, confluent: Confluent) -> None:
    from confluent_kafka import TopicPartition

    confluent.create_topic(topic)
    consumer = confluent.consumer()
    consumer.assign([TopicPartition(topic, 0, 1_000)])
    message = consumer.poll(10)
    consumer.close()
    assert message is not None
    error = message.error()
    assert error is not None
    assert error.name() == "_AUTO_OFFSET_RESET"
    assert "out of range" in error.str()


def test_more_replicas_than_brokers_are_refused(topic: str, confluent: Confluent) -> None:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import NewTopic

    created = confluent.admin.create_topics([NewTopic(topic, 1, 3)])[topic]
    with pytest.raises(KafkaException) as refused:
        created.result(10)
    assert refused.value.args[0].code() == ErrorCode.INVALID_REPLICATION_FACTOR


def test_validation_alone_creates_nothing(topic: str, confluent: Confluent) -> None:
    from confluent_kafka.admin import NewTopic

    confluent.admin.create_topics([NewTopic(topic, 1, 1)], validate_only=True)[topic].result(10)
    assert topic not in confluent.topics()


def test_topics_create_themselves_where_that_is_on(
    tmp_path_factory: pytest.TempPathFactory, topic: str
) -> None:
    from real_node import real_node
    from tests.clients.conftest import CLIENTS

    with real_node(tmp_path_factory.mktemp("auto"), {"num.partitions": "2"}) as node:
        for place, make in enumerate(CLIENTS):
            client: Client = make(node.bootstrap)
            name = f"{topic}-{place}"
            client.write(name, 1, [Sent(b"k", b"v")], codec="none", acks=ALL)
            assert client.partition_count(name) == 2
            assert [got.value for got in client.read(name, [1], 1)] == [b"v"]


def test_the_node_has_said_nothing_bad(node: RealNode) -> None:
    assert node.sentences("error") == []
