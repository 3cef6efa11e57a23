"""Consumer groups, as each client library has them: members share a topic, commit, come and go."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, ConsumerGroupState, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # theirs, about how they read their files
    from kafka import KafkaConsumer

from real_node import RealNode
from tests.clients.confluent import Confluent
from tests.clients.speaking import PATIENCE_SECONDS, Acks, Sent

RECORDS = 40
PARTITIONS = 4


class OfConfluent:
    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self._consumer.subscribe([topic])

    def poll(self) -> list[tuple[int, int]]:
        message = self._consumer.poll(0.1)
        if message is None or message.error():
            return []
        return [(message.partition() or 0, message.offset() or 0)]

    def partitions(self) -> set[int]:
        return {each.partition for each in self._consumer.assignment()}

    def commit(self) -> None:
        try:
            self._consumer.commit(asynchronous=False)
        except KafkaException as refused:  # it has read nothing: others have committed all
            if refused.args[0].code() != KafkaError._NO_OFFSET:
                raise

    def close(self) -> None:
        self._consumer.close()


class OfKafkaPython:
    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self._consumer = KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=300,
        )

    def poll(self) -> list[tuple[int, int]]:
        polled = self._consumer.poll(100, max_records=1)
        return [(each.partition, each.offset) for some in polled.values() for each in some]

    def partitions(self) -> set[int]:
        return {each.partition for each in self._consumer.assignment()}

    def commit(self) -> None:
        self._consumer.commit()

    def close(self) -> None:
        self._consumer.close(autocommit=False)


class OfAioKafka:
    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._consumer = self._loop.run_until_complete(self._start(bootstrap, group, topic))

    async def _start(self, bootstrap: str, group: str, topic: str) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=300,
        )
        # start() waits until it has joined, which it can only do while the others are polled:
        # so it starts in the background, and poll() lets it go on.
        self._starting = asyncio.ensure_future(consumer.start())
        await asyncio.sleep(0.05)
        return consumer

    def poll(self) -> list[tuple[int, int]]:
        return self._loop.run_until_complete(self._poll())

    async def _poll(self) -> list[tuple[int, int]]:
        if not self._starting.done():
            await asyncio.wait([self._starting], timeout=0.1)
            return []
        self._starting.result()
        polled = await self._consumer.getmany(timeout_ms=100, max_records=1)
        return [(each.partition, each.offset) for some in polled.values() for each in some]

    def partitions(self) -> set[int]:
        return {each.partition for each in self._consumer.assignment()}

    def commit(self) -> None:
        self._loop.run_until_complete(self._consumer.commit())

    def close(self) -> None:
        self._loop.run_until_complete(self._consumer.stop())
        self._loop.close()


MEMBERS: tuple[Any, ...] = (OfConfluent, OfKafkaPython, OfAioKafka)


@pytest.fixture
def filled(confluent: Confluent, topic: str) -> str:
    confluent.create_topic(topic, PARTITIONS)
    for partition in range(PARTITIONS):
        records = [Sent(None, b"%d" % each) for each in range(RECORDS // PARTITIONS)]
        confluent.write(topic, partition, records, codec="none", acks=Acks(-1))
    return topic


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 2 * PATIENCE_SECONDS
    while not done():
        assert time.monotonic() < deadline, "it did not come about"


@pytest.mark.parametrize("make", MEMBERS, ids=lambda made: made.__name__)
def test_members_share_the_partitions_and_go_on_where_others_left_off(
    node: RealNode, filled: str, make: Any
) -> None:
    group = f"group-of-{filled}"
    first = make(node.bootstrap, group, filled)
    seen: list[tuple[int, int]] = []

    def read_half() -> bool:
        seen.extend(first.poll())
        return len(seen) >= RECORDS // 2

    until(read_half)
    first.commit()
    second = make(node.bootstrap, group, filled)
    more: list[tuple[int, int]] = []

    def shared() -> bool:
        more.extend((*first.poll(), *second.poll()))
        return len(first.partitions()) == len(second.partitions()) == PARTITIONS // 2

    until(shared)
    assert first.partitions() | second.partitions() == set(range(PARTITIONS))

    def read_rest() -> bool:
        more.extend((*first.poll(), *second.poll()))
        return len({*seen, *more}) == RECORDS

    until(read_rest)
    first.commit()
    second.commit()
    first.close()

    def alone() -> bool:
        more.extend(second.poll())
        return len(second.partitions()) == PARTITIONS

    until(alone)
    looker = Consumer({"bootstrap.servers": node.bootstrap, "group.id": group})
    wanted = [ConfluentPartition(filled, each) for each in range(PARTITIONS)]

    def all_committed() -> bool:
        """What was read and not committed before its partition moved is read once more."""
        more.extend(second.poll())
        second.commit()
        found = looker.committed(wanted, timeout=PATIENCE_SECONDS)
        return {each.offset for each in found} == {RECORDS // PARTITIONS}

    until(all_committed)
    second.close()
    looker.close()
    assert {*seen, *more} == {
        (partition, offset)
        for partition in range(PARTITIONS)
        for offset in range(RECORDS // PARTITIONS)
    }


def test_groups_are_administered(node: RealNode, filled: str) -> None:
    group = f"administered-{filled}"
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    member = OfConfluent(node.bootstrap, group, filled)
    until(lambda: len(member.poll()) > 0)
    member.commit()
    described = admin.describe_consumer_groups([group])[group].result(PATIENCE_SECONDS)
    assert described.state is ConsumerGroupState.STABLE
    assert len(described.members[0].assignment.topic_partitions) == PARTITIONS
    listed = admin.list_consumer_groups().result(PATIENCE_SECONDS)
    assert group in {each.group_id for each in listed.valid}
    member.close()
    admin.delete_consumer_groups([group])[group].result(PATIENCE_SECONDS)
    listed = admin.list_consumer_groups().result(PATIENCE_SECONDS)
    assert group not in {each.group_id for each in listed.valid}
