"""confluent-kafka: librdkafka, the C library under most clients that are not Java."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from tests.clients.speaking import PATIENCE_SECONDS, Acks, ClusterSeen, Got, Refused, Sent

QUIET: Final = logging.getLogger("tests.librdkafka")
"""librdkafka's own words about brokers that a test kills."""
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False


class Confluent:
    name = "confluent-kafka"
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def producer(self, **settings: Any) -> Producer:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        return Producer({"bootstrap.servers": self.bootstrap, **named}, logger=QUIET)

    def consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "check.crcs": True,
            },
            logger=QUIET,
        )

    @cached_property
    def admin(self) -> AdminClient:
        """Kept: one that is no longer named ends, and its answers with it."""
        return AdminClient({"bootstrap.servers": self.bootstrap}, logger=QUIET)

    def write(
        self, topic: str, partition: int, records: Sequence[Sent], *, codec: str, acks: Acks
    ) -> list[int]:
        offsets: list[int] = []
        errors: list[KafkaError] = []

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                errors.append(error)
            elif acks.level:
                offsets.append(message.offset() or 0)

        producer = self.producer(
            acks=acks.level,
            enable_idempotence=acks.idempotent,
            compression_type=codec,
            linger_ms=20,
            message_timeout_ms=PATIENCE_SECONDS * 1000,
            message_max_bytes=50_000_000,
        )
        for sent in records:
            producer.produce(
                topic,
                sent.value,
                sent.key,
                partition=partition,
                timestamp=sent.timestamp,
                headers=list(sent.headers),
                on_delivery=on_delivery,
            )
        left = producer.flush(PATIENCE_SECONDS)
        if errors:
            raise Refused(errors[0].code(), errors[0].str())
        assert left == 0
        return offsets

    def read(self, topic: str, partitions: Sequence[int], count: int) -> list[Got]:
        consumer = self.consumer()
        consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
        got: list[Got] = []
        try:
            while len(got) < count:
                messages = consumer.consume(count - len(got), PATIENCE_SECONDS)
                assert messages, f"only {len(got)} of {count} records came"
                for message in messages:
                    error = message.error()
                    if error is not None:
                        raise Refused(error.code(), error.str())
                    got.append(_got(message))
        finally:
            consumer.close()
        return sorted(got)

    def watermarks(self, topic: str, partition: int) -> tuple[int, int]:
        consumer = self.consumer()
        try:
            found = consumer.get_watermark_offsets(
                TopicPartition(topic, partition), timeout=PATIENCE_SECONDS
            )
        finally:
            consumer.close()
        assert found is not None
        return (found[0], found[1])

    def offset_at(self, topic: str, partition: int, timestamp: int) -> int | None:
        consumer = self.consumer()
        asked = TopicPartition(topic, partition, timestamp)
        try:
            (found,) = consumer.offsets_for_times([asked], timeout=PATIENCE_SECONDS)
        finally:
            consumer.close()
        return found.offset if found.offset >= 0 else None

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        new = NewTopic(topic, partitions, 1, config=dict(configs or {}))
        _result(self.admin.create_topics([new])[topic])

    def delete_topic(self, topic: str) -> None:
        _result(self.admin.delete_topics([topic])[topic])

    def topics(self) -> set[str]:
        return set(self.admin.list_topics(timeout=PATIENCE_SECONDS).topics)

    def add_partitions(self, topic: str, total: int) -> None:
        _result(self.admin.create_partitions([NewPartitions(topic, total)])[topic])

    def partition_count(self, topic: str) -> int:
        described = self.admin.list_topics(topic, timeout=PATIENCE_SECONDS).topics[topic]
        if described.error is not None:
            raise Refused(described.error.code(), described.error.str())
        return len(described.partitions)

    def configs(self, topic: str) -> dict[str, str | None]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        found = _result(self.admin.describe_configs([resource])[resource])
        return {name: entry.value for name, entry in found.items()}

    def alter_config(self, topic: str, name: str, value: str) -> None:
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        _result(self.admin.incremental_alter_configs([resource])[resource])

    def cluster(self) -> ClusterSeen:
        seen = _result(self.admin.describe_cluster())
        brokers = tuple((each.id, each.host, each.port) for each in seen.nodes)
        return ClusterSeen(seen.cluster_id, seen.controller.id, brokers)

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        asked = TopicPartition(topic, partition, before)
        deleted = _result(self.admin.delete_records([asked])[asked])
        return int(deleted.low_watermark)


def _result(future: Any) -> Any:
    try:
        return future.result(PATIENCE_SECONDS)
    except KafkaException as refused:
        error = refused.args[0]
        raise Refused(error.code(), error.str()) from None


def _got(message: Message) -> Got:
    kind, timestamp = message.timestamp()
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    headers: Any = message.headers() or ()
    return Got(
        partition,
        offset,
        message.key(),
        message.value(),
        tuple((name, value) for name, value in headers),
        timestamp,
        kind - 1,  # librdkafka counts "no timestamp" as 0
    )
