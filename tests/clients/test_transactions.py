"""Transactions, as each client library has them: committed ones are read, aborted ones are not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaProducer

from real_node import RealNode
from tests.clients.confluent import Confluent
from tests.clients.speaking import PATIENCE_SECONDS

Write = Callable[[str, str, str], None]


def by_librdkafka(bootstrap: str, id_: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": id_})
    producer.init_transactions(PATIENCE_SECONDS)
    for number in range(4):
        producer.begin_transaction()
        for partition in (0, 1):
            producer.produce(topic, b"%d" % number, partition=partition)
        producer.flush(PATIENCE_SECONDS)
        if number % 2:
            producer.abort_transaction(PATIENCE_SECONDS)
        else:
            producer.commit_transaction(PATIENCE_SECONDS)


def by_aiokafka(bootstrap: str, id_: str, topic: str) -> None:
    async def write() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=id_)
        await producer.start()
        for number in range(4):
            await producer.begin_transaction()
            for partition in (0, 1):
                await producer.send_and_wait(topic, b"%d" % number, partition=partition)
            await (producer.abort_transaction() if number % 2 else producer.commit_transaction())
        await producer.stop()

    asyncio.run(write())


def by_kafka_python(bootstrap: str, id_: str, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=id_)
    producer.init_transactions()
    for number in range(4):
        producer.begin_transaction()
        for partition in (0, 1):
            producer.send(topic, b"%d" % number, partition=partition)
        producer.flush(PATIENCE_SECONDS)
        if number % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer.close()


def read(bootstrap: str, topic: str, isolation_level: str) -> list[tuple[int, bytes]]:
    """All records of both partitions."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "-",
            "enable.auto.commit": False,
            "isolation.level": isolation_level,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in (0, 1)])
    found: list[tuple[int, bytes]] = []
    ends, deadline = set(), time.monotonic() + PATIENCE_SECONDS
    while len(ends) < 2 and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is None:
            continue
        if message.error() is not None:
            ends.add(message.partition())
        else:
            found.append((message.partition() or 0, message.value() or b""))
    consumer.close()
    return sorted(found)


@pytest.mark.parametrize("write", [by_librdkafka, by_aiokafka, by_kafka_python])
def test_what_is_committed_is_read_and_what_is_aborted_is_not(
    node: RealNode, confluent: Confluent, topic: str, write: Write
) -> None:
    confluent.create_topic(topic, 2)
    write(node.bootstrap, f"writer-of-{topic}", topic)
    both = (0, 1)
    committed = sorted((partition, b"%d" % number) for partition in both for number in (0, 2))
    assert read(node.bootstrap, topic, "read_committed") == committed
    everything = sorted((partition, b"%d" % number) for partition in both for number in range(4))
    assert read(node.bootstrap, topic, "read_uncommitted") == everything


def test_a_second_holder_of_the_id_fences_the_first(
    node: RealNode, confluent: Confluent, topic: str
) -> None:
    from confluent_kafka import KafkaException

    confluent.create_topic(topic, 2)
    settings = {"bootstrap.servers": node.bootstrap, "transactional.id": f"one-of-{topic}"}
    first, second = Producer(settings), Producer(settings)
    first.init_transactions(PATIENCE_SECONDS)
    first.begin_transaction()
    first.produce(topic, b"lost", partition=0)
    first.flush(PATIENCE_SECONDS)
    second.init_transactions(PATIENCE_SECONDS)
    with pytest.raises(KafkaException):
        first.commit_transaction(PATIENCE_SECONDS)
    second.begin_transaction()
    second.produce(topic, b"kept", partition=0)
    second.commit_transaction(PATIENCE_SECONDS)
    assert read(node.bootstrap, topic, "read_committed") == [(0, b"kept")]
