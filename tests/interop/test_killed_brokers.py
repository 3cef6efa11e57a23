"""Python's clients, writing and reading steadily while brokers are killed one after the other.

An idempotent writer and a reader in a group, with each client's own defaults: what the application
is told must be what Apache Kafka would tell it. franz-go and kafkajs have tests of their own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Final, NamedTuple

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.suites import Ran, Suite
from tests.interop.trios import Killer, Trio

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

TOTAL: Final = 8_000
PAUSE_SECONDS: Final = 0.005
"""Between two records: forty seconds of writing, four kills."""
PARTITIONS: Final = 3
PATIENCE_SECONDS: Final = 90


class Story:
    """What an application wrote, was told and read."""

    def __init__(self) -> None:
        self.acknowledged: set[bytes] = set()
        self.write_errors: list[str] = []
        self.read: dict[bytes, set[tuple[int, int]]] = {}
        """Value -> where it was found: (partition, offset)."""
        self.read_errors: list[str] = []

    @property
    def is_whole(self) -> bool:
        return self.acknowledged <= self.read.keys()

    def on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged.add(message.value() or b"")
        else:
            self.write_errors.append(str(error))

    def found(self, value: bytes | None, partition: int, offset: int) -> None:
        self.read.setdefault(value or b"", set()).add((partition, offset))


class Client(NamedTuple):
    name: str
    tell: Callable[[str, str], Story]
    """(bootstrap, topic)."""


def by_confluent(bootstrap: str, topic: str) -> Story:
    story = Story()
    where = {"bootstrap.servers": bootstrap, "log_level": 0}
    producer = Producer(where | {"enable.idempotence": True})
    consumer = Consumer(where | {"group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])

    def read(seconds: float) -> None:
        message = consumer.poll(seconds)
        if message is None:
            return
        if message.error() is not None:
            story.read_errors.append(str(message.error()))
        else:
            story.found(message.value(), message.partition() or 0, message.offset() or 0)

    begun = time.monotonic()
    for number in range(TOTAL):
        while (early := begun + number * PAUSE_SECONDS - time.monotonic()) > 0:
            read(early)
        partition = number % PARTITIONS
        producer.produce(topic, b"%d" % number, None, partition, story.on_delivery)
        producer.poll(0)
    producer.flush(PATIENCE_SECONDS)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not story.is_whole and time.monotonic() < deadline:
        read(0.1)
    consumer.close()
    return story


def by_aiokafka(bootstrap: str, topic: str) -> Story:
    return asyncio.run(_by_aiokafka(bootstrap, topic))


async def _by_aiokafka(bootstrap: str, topic: str) -> Story:
    story = Story()
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
    consumer = AIOKafkaConsumer(
        topic, bootstrap_servers=bootstrap, group_id=topic, auto_offset_reset="earliest"
    )

    async def write() -> None:
        waiting = []
        for number in range(TOTAL):
            value = b"%d" % number
            sent = await producer.send(topic, value, partition=number % PARTITIONS)
            waiting.append((value, sent))
            await asyncio.sleep(PAUSE_SECONDS)
        for value, sent in waiting:
            try:
                await sent
                story.acknowledged.add(value)
            except Exception as wrong:
                story.write_errors.append(repr(wrong))

    async def read() -> None:
        while True:
            try:
                message = await consumer.getone()
                story.found(message.value, message.partition, message.offset)
            except Exception as wrong:
                story.read_errors.append(repr(wrong))

    async with producer, consumer:
        reader = asyncio.create_task(read())
        await write()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not story.is_whole and time.monotonic() < deadline:
            await asyncio.sleep(0.1)
        reader.cancel()
    return story


CLIENTS: Final = (Client("confluent-kafka", by_confluent), Client("aiokafka", by_aiokafka))


def judged_checks(story: Story) -> Ran:
    missing = sorted(story.acknowledged - story.read.keys(), key=int)
    twice = [value for value, places in story.read.items() if len(places) > 1]
    wrong = {
        "every record is acknowledged": "; ".join(story.write_errors)
        or ("" if len(story.acknowledged) == TOTAL else f"{len(story.acknowledged)} of {TOTAL}"),
        "the group reads all that is acknowledged": f"missing: {missing}" if missing else "",
        "no record is in the log twice": f"twice: {twice}" if twice else "",
        "the reader is told of no error": "; ".join(story.read_errors),
    }
    return Ran(
        tuple(check for check, why in wrong.items() if not why),
        {check: why for check, why in wrong.items() if why},
        (),
    )


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_writing_and_reading_while_brokers_are_killed(
    cluster: Trio, topic: str, judge: Callable[..., dict[str, str]], client: Client
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic, PARTITIONS, 3)])[topic].result(30)
    with Killer(cluster) as killer:
        story = client.tell(cluster.bootstrap, topic)
    assert killer.kills
    ran = judged_checks(story)
    suite = Suite(client.name, version(client.name), "writer and group, a broker killed every 10 s")
    assert judge(suite, ran, {}) == {}
