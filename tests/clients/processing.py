"""Read-process-write loops, in the same words for each client library: exactly once.

Each copies one topic to another, record by record into the partition of the same number, and
commits how far it has read in the transaction that writes. Whatever goes wrong ends the loop; the
next one begins under the same transactional id, as a program does that is started again.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.structs import TopicPartition as AioTopicPartition
from confluent_kafka import Consumer, Producer

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # theirs, about how they read their files
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.structs import OffsetAndMetadata
    from kafka.structs import TopicPartition as PythonTopicPartition

PATIENCE_SECONDS: Final = 20
TRANSACTION_MS: Final = 10_000
SESSION_MS: Final = 6_000
BATCH: Final = 20

Loop = Callable[..., None]
HOUSE: Final = Path(__file__).resolve().parents[2]


def by_librdkafka(bootstrap: str, source: str, target: str) -> None:
    group = f"group-of-{target}"
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "reconnect.backoff.max.ms": 200,
        "log_level": 0,
    }
    producer = Producer(
        settings | {"transactional.id": group, "transaction.timeout.ms": TRANSACTION_MS}
    )
    consumer = Consumer(
        settings
        | {
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "session.timeout.ms": SESSION_MS,
        }
    )
    try:
        producer.init_transactions(PATIENCE_SECONDS)
        consumer.subscribe([source])
        while True:
            got = [each for each in consumer.consume(BATCH, 0.3) if each.error() is None]
            if not got:
                continue
            producer.begin_transaction()
            for each in got:
                producer.produce(target, each.value(), partition=each.partition() or 0)
            producer.send_offsets_to_transaction(
                consumer.position(consumer.assignment()),
                consumer.consumer_group_metadata(),
                PATIENCE_SECONDS,
            )
            producer.commit_transaction(PATIENCE_SECONDS)
    finally:
        consumer.close()


def by_aiokafka(bootstrap: str, source: str, target: str) -> None:
    async def process() -> None:
        group = f"group-of-{target}"
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=group,
            transaction_timeout_ms=TRANSACTION_MS,
        )
        consumer = AIOKafkaConsumer(
            source,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            session_timeout_ms=SESSION_MS,
        )
        try:
            await producer.start()
            await consumer.start()
            while True:
                got = await consumer.getmany(timeout_ms=300, max_records=BATCH)
                if not got:
                    continue
                async with producer.transaction():
                    offsets = {}
                    for place, records in got.items():
                        for each in records:
                            await producer.send(target, each.value, partition=place.partition)
                        last = records[-1].offset + 1
                        offsets[AioTopicPartition(place.topic, place.partition)] = last
                    await producer.send_offsets_to_transaction(offsets, group)
        finally:
            await consumer.stop()
            await producer.stop()

    asyncio.run(asyncio.wait_for(process(), None))


def by_kafka_python(bootstrap: str, source: str, target: str) -> None:
    group = f"group-of-{target}"
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        transactional_id=group,
        transaction_timeout_ms=TRANSACTION_MS,
    )
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=300,
    )
    try:
        producer.init_transactions()
        while not consumer.partitions_for_topic(source):
            consumer.poll(100)
        consumer.subscribe([source])
        while True:
            got = consumer.poll(300, max_records=BATCH)
            if not got:
                continue
            producer.begin_transaction()
            offsets = {}
            for place, records in got.items():
                for each in records:
                    producer.send(target, each.value, partition=place.partition)
                at = PythonTopicPartition(place.topic, place.partition)
                offsets[at] = OffsetAndMetadata(records[-1].offset + 1, "", -1)
            producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
            producer.commit_transaction()
    finally:
        consumer.close()
        producer.close(0)


LOOPS: Final[tuple[Loop, ...]] = (by_librdkafka, by_aiokafka, by_kafka_python)


class Processing:
    """A loop in a process of its own, which begins it again whenever it has failed."""

    def __init__(self, loop: Loop, said: Path, *given: str) -> None:
        self._said = said
        self._command = [sys.executable, "-m", "tests.clients.processing", loop.__name__, *given]

    @property
    def failures(self) -> str:
        return self._said.read_text()[-4_000:]

    def __enter__(self) -> Processing:
        with self._said.open("w") as said:
            self._process = subprocess.Popen(self._command, stdout=said, stderr=said, cwd=HOUSE)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(20)


def main(name: str, *given: str) -> None:
    loop = next(each for each in LOOPS if each.__name__ == name)
    while True:
        try:
            loop(*given)
        except Exception as failure:  # of three libraries, each with its own
            print(repr(failure), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
