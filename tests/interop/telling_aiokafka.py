"""aiokafka as the teller of a story: coroutines on a loop of their own, asked for from threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition, errors

from tests.interop.stories import PATIENCE_SECONDS, Meaning
from tests.interop.storytellers import Positions, Record, Teller

READ_MS: Final = 200
T = TypeVar("T")

_FATAL: Final = (
    errors.ProducerFenced,
    errors.OutOfOrderSequenceNumber,
    errors.InvalidProducerEpoch,
    errors.IllegalOperation,
)


class _Loop:
    """Runs as long as whoever made it needs it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_SECONDS)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


class _Writer:
    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._loop = _Loop()
        self._loop.do(self._start(bootstrap))

    async def _start(self, bootstrap: str) -> None:
        self._producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap, acks="all", enable_idempotence=True
        )
        await self._producer.start()

    def send(self, value: bytes, partition: int, done: Callable[[Exception | None], None]) -> None:
        async def send() -> None:
            sent = await self._producer.send(self._topic, value, partition=partition)
            sent.add_done_callback(lambda ended: done(ended.exception()))

        self._loop.do(send())

    def close(self) -> None:
        self._loop.do(self._producer.stop())
        self._loop.close()


class _Transactional:
    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._loop = _Loop()
        self._loop.do(self._start(bootstrap))

    async def _start(self, bootstrap: str) -> None:
        self._producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=self._topic)
        await self._producer.start()

    def begin(self) -> None:
        self._loop.do(self._producer.begin_transaction())

    def send(self, value: bytes, partition: int) -> None:
        async def send() -> None:
            sent = await self._producer.send(self._topic, value, partition=partition)
            sent.add_done_callback(asyncio.Future.exception)  # commit tells of it, too

        self._loop.do(send())

    def commit(self) -> None:
        self._loop.do(self._producer.commit_transaction())

    def abort(self) -> None:
        self._loop.do(self._producer.abort_transaction())

    def close(self) -> None:
        self._loop.do(self._producer.stop())
        self._loop.close()


class _Reader:
    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._positions = Positions()
        self._loop = _Loop()
        self._loop.do(self._start(bootstrap))

    async def _start(self, bootstrap: str) -> None:
        self._consumer = AIOKafkaConsumer(
            self._topic,
            bootstrap_servers=bootstrap,
            group_id=self._topic,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
        )
        await self._consumer.start()

    def read(self) -> list[Record]:
        self._positions.take()
        return self._positions.read(self._loop.do(self._consumer.getmany(timeout_ms=READ_MS)))

    def commit(self) -> dict[int, int]:
        offsets = self._positions.take()
        if offsets:
            told = {TopicPartition(self._topic, each): at for each, at in offsets.items()}
            self._loop.do(self._consumer.commit(told))
        return offsets

    def close(self) -> None:
        self._loop.do(self._consumer.stop())
        self._loop.close()


def _means(wrong: Exception) -> Meaning:
    if isinstance(wrong, errors.CommitFailedError | errors.IllegalStateError):
        return Meaning.REBALANCED
    if not isinstance(wrong, errors.KafkaError) or isinstance(wrong, _FATAL):
        return Meaning.UNEXPECTED
    return Meaning.AGAIN if wrong.retriable else Meaning.UNEXPECTED


TELLER: Final = Teller(_Writer, _Transactional, _Reader, _means)
