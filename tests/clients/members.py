"""A member of a consumer group, in the same words for each client library."""

from __future__ import annotations

import asyncio
import gc
import warnings
from typing import Any

from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, KafkaError, KafkaException

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # theirs, about how they read their files
    from kafka import KafkaConsumer


class OfConfluent:
    protocol = "classic"

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "group.protocol": self.protocol,
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


class OfConsumerProtocol(OfConfluent):
    """KIP-848."""

    protocol = "consumer"


class OfKafkaPython:
    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self._consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=300,
        )
        # It may join before it knows the topic's partitions, and then shares out none.
        while not self._consumer.partitions_for_topic(topic):
            pass
        self._consumer.subscribe([topic])

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
        del self._consumer, self._loop, self._starting
        with warnings.catch_warnings():
            # Connections to a broker that died are never closed by it: here they go, unnoticed.
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


MEMBERS: tuple[Any, ...] = (OfConfluent, OfKafkaPython, OfAioKafka, OfConsumerProtocol)
