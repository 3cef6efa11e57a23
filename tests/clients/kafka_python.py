"""kafka-python: a client in plain Python. Codecs beyond gzip need packages of their own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # theirs, about how they read their files
    import kafka.codec
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
    from kafka.errors import KafkaError

from tests.clients.speaking import PATIENCE_SECONDS, Acks, ClusterSeen, Got, Refused, Sent

Answer = TypeVar("Answer")


def codecs_here() -> tuple[str, ...]:
    optional = ("snappy", "lz4", "zstd")
    there = tuple(name for name in optional if getattr(kafka.codec, f"has_{name}")())
    return ("none", "gzip", *there)


class KafkaPython:
    name = "kafka-python"
    codecs = codecs_here()

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def write(
        self, topic: str, partition: int, records: Sequence[Sent], *, codec: str, acks: Acks
    ) -> list[int]:
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            acks=acks.level,
            enable_idempotence=acks.idempotent,
            compression_type=None if codec == "none" else codec,
            linger_ms=20,
            max_block_ms=PATIENCE_SECONDS * 1000,
            max_request_size=50_000_000,
        )
        try:
            futures = [
                producer.send(
                    topic,
                    sent.value,
                    sent.key,
                    headers=list(sent.headers),
                    partition=partition,
                    timestamp_ms=sent.timestamp,
                )
                for sent in records
            ]
            producer.flush(PATIENCE_SECONDS)
            written = [_ask(lambda f=f: f.get(PATIENCE_SECONDS)) for f in futures]
        finally:
            producer.close(PATIENCE_SECONDS)
        return [each.offset for each in written] if acks.level else []

    def read(self, topic: str, partitions: Sequence[int], count: int) -> list[Got]:
        consumer = self._consumer()
        assigned = [TopicPartition(topic, each) for each in partitions]
        got: list[Got] = []
        try:
            consumer.assign(assigned)
            for each in assigned:
                consumer.seek(each, 0)
            while len(got) < count:
                polled = consumer.poll(timeout_ms=PATIENCE_SECONDS * 1000)
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
        finally:
            consumer.close()
        return sorted(got)

    def watermarks(self, topic: str, partition: int) -> tuple[int, int]:
        consumer, asked = self._consumer(), TopicPartition(topic, partition)
        try:
            start = _ask(lambda: consumer.beginning_offsets([asked]))[asked]
            end = _ask(lambda: consumer.end_offsets([asked]))[asked]
        finally:
            consumer.close()
        return (start, end)

    def offset_at(self, topic: str, partition: int, timestamp: int) -> int | None:
        consumer, asked = self._consumer(), TopicPartition(topic, partition)
        try:
            found = _ask(lambda: consumer.offsets_for_times({asked: timestamp}))[asked]
        finally:
            consumer.close()
        return None if found is None else int(found.offset)

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        new = NewTopic(topic, partitions, 1, topic_configs=dict(configs or {}))
        self._administer(lambda admin: admin.create_topics([new]))

    def delete_topic(self, topic: str) -> None:
        self._administer(lambda admin: admin.delete_topics([topic]))

    def topics(self) -> set[str]:
        return set(self._administer(lambda admin: admin.list_topics()))

    def add_partitions(self, topic: str, total: int) -> None:
        wanted = {topic: NewPartitions(total)}
        self._administer(lambda admin: admin.create_partitions(wanted))

    def partition_count(self, topic: str) -> int:
        (described,) = self._administer(lambda admin: admin.describe_topics([topic]))
        if described["error_code"]:
            raise Refused(described["error_code"])
        return len(described["partitions"])

    def configs(self, topic: str) -> dict[str, str | None]:
        asked = ConfigResource(ConfigResourceType.TOPIC, topic)
        found = self._administer(lambda admin: admin.describe_configs([asked], config_filter="all"))
        return {name: entry["value"] for name, entry in found["topic"][topic].items()}

    def alter_config(self, topic: str, name: str, value: str) -> None:
        asked = ConfigResource(ConfigResourceType.TOPIC, topic, configs={name: value})
        answer = self._administer(
            lambda admin: admin.alter_configs([asked], raise_on_unknown=False)
        )
        said = answer["topic"][topic]
        if said.startswith("[Error "):
            raise Refused(int(said.split()[1].rstrip("]")), said)

    def cluster(self) -> ClusterSeen:
        seen = self._administer(lambda admin: admin.describe_cluster())
        brokers = tuple((b["broker_id"], b["host"], b["port"]) for b in seen["brokers"])
        return ClusterSeen(seen["cluster_id"], seen["controller_id"], brokers)

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        asked = TopicPartition(topic, partition)
        deleted = self._administer(lambda admin: admin.delete_records({asked: before}))
        return int(deleted[asked]["low_watermark"])

    def observe(self, topic: str) -> tuple[int, tuple[int, list[int]], list[int]]:
        """Bytes of the topic; leader and voters; last sequences of those who write to it."""
        asked = TopicPartition(topic, 0)
        brokers, quorum, producers = self._administer(
            lambda admin: (
                admin.describe_log_dirs(),
                admin.describe_metadata_quorum(),
                admin.describe_producers([asked]),
            )
        )
        (directory,) = brokers[0]["log_dirs"]
        size = sum(
            partition["partition_size"]
            for each in directory["topics"]
            for partition in each["partitions"]
            if each["name"] == topic
        )
        (metadata,) = quorum["topics"][0]["partitions"]
        voters = [each["replica_id"] for each in metadata["current_voters"]]
        sequences = [each.last_sequence for each in producers[asked].active_producers]
        return size, (metadata["leader_id"], voters), sequences

    def _consumer(self) -> KafkaConsumer:
        return KafkaConsumer(
            bootstrap_servers=self.bootstrap, auto_offset_reset="none", enable_auto_commit=False
        )

    def _administer(self, ask: Callable[[KafkaAdminClient], Answer]) -> Answer:
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        try:
            return _ask(lambda: ask(admin))
        finally:
            admin.close()


def _ask(ask: Callable[[], Answer]) -> Answer:
    try:
        return ask()
    except KafkaError as error:
        raise Refused(getattr(error, "errno", -1), str(error)) from error
