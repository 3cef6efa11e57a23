"""aiokafka: the client of asyncio programs, each call in a loop of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from tests.clients.speaking import PATIENCE_SECONDS, Acks, ClusterSeen, Got, Refused, Sent

Answer = TypeVar("Answer")


class AioKafka:
    name = "aiokafka"
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def write(
        self, topic: str, partition: int, records: Sequence[Sent], *, codec: str, acks: Acks
    ) -> list[int]:
        async def write() -> list[int]:
            producer = AIOKafkaProducer(
                bootstrap_servers=self.bootstrap,
                acks=acks.level,
                enable_idempotence=acks.idempotent,
                compression_type=None if codec == "none" else codec,
                linger_ms=20,
                max_request_size=50_000_000,
                request_timeout_ms=PATIENCE_SECONDS * 1000,
            )
            await producer.start()
            try:
                futures = [
                    await producer.send(
                        topic,
                        sent.value,
                        sent.key,
                        partition=partition,
                        timestamp_ms=sent.timestamp,
                        headers=list(sent.headers),
                    )
                    for sent in records
                ]
                written = await asyncio.gather(*futures)
            finally:
                await producer.stop()
            return [each.offset for each in written] if acks.level else []

        return _run(write)

    def read(self, topic: str, partitions: Sequence[int], count: int) -> list[Got]:
        async def read(consumer: AIOKafkaConsumer) -> list[Got]:
            assigned = [TopicPartition(topic, each) for each in partitions]
            consumer.assign(assigned)
            for each in assigned:
                consumer.seek(each, 0)
            got: list[Got] = []
            while len(got) < count:
                polled = await consumer.getmany(timeout_ms=PATIENCE_SECONDS * 1000)
                assert polled, f"only {len(got)} of {count} records came"
                for records in polled.values():
                    got += [
                        Got(
                            each.partition,
                            each.offset,
                            each.key,
                            each.value,
                            tuple(each.headers),
                            each.timestamp,
                            each.timestamp_type,
                        )
                        for each in records
                    ]
            return sorted(got)

        return self._consume(read)

    def watermarks(self, topic: str, partition: int) -> tuple[int, int]:
        asked = TopicPartition(topic, partition)

        async def look(consumer: AIOKafkaConsumer) -> tuple[int, int]:
            start = await consumer.beginning_offsets([asked])
            end = await consumer.end_offsets([asked])
            return (start[asked], end[asked])

        return self._consume(look)

    def offset_at(self, topic: str, partition: int, timestamp: int) -> int | None:
        asked = TopicPartition(topic, partition)

        async def look(consumer: AIOKafkaConsumer) -> int | None:
            found = (await consumer.offsets_for_times({asked: timestamp}))[asked]
            return None if found is None else int(found.offset)

        return self._consume(look)

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        new = NewTopic(topic, partitions, 1, topic_configs=dict(configs or {}))
        answer = self._administer(lambda admin: admin.create_topics([new]))
        _check(*answer.topic_errors[0][1:3])

    def delete_topic(self, topic: str) -> None:
        answer = self._administer(lambda admin: admin.delete_topics([topic]))
        _check(answer.topic_error_codes[0][1])

    def topics(self) -> set[str]:
        return set(self._administer(lambda admin: admin.list_topics()))

    def add_partitions(self, topic: str, total: int) -> None:
        wanted = {topic: NewPartitions(total)}
        answer = self._administer(lambda admin: admin.create_partitions(wanted))
        _check(*answer.topic_errors[0][1:3])

    def partition_count(self, topic: str) -> int:
        (described,) = self._administer(lambda admin: admin.describe_topics([topic]))
        _check(described["error_code"])
        return len(described["partitions"])

    def configs(self, topic: str) -> dict[str, str | None]:
        asked = ConfigResource(ConfigResourceType.TOPIC, topic)
        (answer,) = self._administer(lambda admin: admin.describe_configs([asked]))
        ((code, text, _, _, entries),) = answer.resources
        _check(code, text)
        return {entry[0]: entry[1] for entry in entries}

    def alter_config(self, topic: str, name: str, value: str) -> None:
        asked = ConfigResource(ConfigResourceType.TOPIC, topic, configs={name: value})
        (answer,) = self._administer(lambda admin: admin.alter_configs([asked]))
        _check(*answer.resources[0][:2])

    def cluster(self) -> ClusterSeen:
        seen = self._administer(lambda admin: admin.describe_cluster())
        brokers = tuple((b["node_id"], b["host"], b["port"]) for b in seen["brokers"])
        return ClusterSeen(seen["cluster_id"], seen["controller_id"], brokers)

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        asked = TopicPartition(topic, partition)
        wanted = {asked: RecordsToDelete(before)}
        return int(self._administer(lambda admin: admin.delete_records(wanted))[asked])

    def _consume(self, ask: Callable[[AIOKafkaConsumer], Awaitable[Answer]]) -> Answer:
        async def consume() -> Answer:
            consumer = AIOKafkaConsumer(
                bootstrap_servers=self.bootstrap,
                auto_offset_reset="none",
                enable_auto_commit=False,
            )
            await consumer.start()
            try:
                return await ask(consumer)
            finally:
                await consumer.stop()

        return _run(consume)

    def _administer(self, ask: Callable[[AIOKafkaAdminClient], Awaitable[Any]]) -> Any:
        async def administer() -> Any:
            admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
            await admin.start()
            try:
                return await ask(admin)
            finally:
                await admin.close()

        return _run(administer)


def _run(work: Callable[[], Awaitable[Answer]]) -> Answer:
    async def run() -> Answer:
        return await asyncio.wait_for(work(), 2 * PATIENCE_SECONDS)

    try:
        return asyncio.run(run())
    except KafkaError as error:
        raise Refused(error.errno, str(error)) from error


def _check(code: int, text: str | None = None) -> None:
    if code:
        raise Refused(code, text or "")
