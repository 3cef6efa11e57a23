"""librdkafka, through confluent-kafka, as the teller of a story; with groups of either protocol."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.interop.stories import PATIENCE_SECONDS, Meaning
from tests.interop.storytellers import Positions, Reader, Record, Teller, wait_a_moment

READ_SECONDS: Final = 0.2

_AGAIN: Final = {
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError._WAIT_COORD,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
}
"""Of a commit: the coordinator could not be reached, and the next commit takes these offsets along.
librdkafka tells ``retriable()`` only of transactions."""
_REBALANCED: Final = {
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.STALE_MEMBER_EPOCH,
}


def _where(bootstrap: str) -> dict[str, Any]:
    return {"bootstrap.servers": bootstrap, "log_level": 0}


class _Writer:
    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._producer = Producer(_where(bootstrap) | {"enable.idempotence": True})

    def send(self, value: bytes, partition: int, done: Callable[[Exception | None], None]) -> None:
        def on_delivery(error: KafkaError | None, _: Message) -> None:
            done(None if error is None else KafkaException(error))

        self._producer.produce(self._topic, value, None, partition, on_delivery)
        self._producer.poll(0)

    def close(self) -> None:
        self._producer.flush(PATIENCE_SECONDS)


class _Transactional:
    """Calls that say that they may be made again are made again, as its documentation has it."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._producer = Producer(_where(bootstrap) | {"transactional.id": topic})
        _until_done(self._producer.init_transactions)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, value: bytes, partition: int) -> None:
        self._producer.produce(self._topic, value, None, partition)
        self._producer.poll(0)

    def commit(self) -> None:
        _until_done(self._producer.commit_transaction)

    def abort(self) -> None:
        _until_done(self._producer.abort_transaction)

    def close(self) -> None:
        """One that met something fatal tells it once more; the story has it already."""
        with suppress(KafkaException):
            self._producer.flush(0)


def _until_done(call: Callable[[float], None]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            call(PATIENCE_SECONDS)
            return
        except KafkaException as wrong:
            if not wrong.args[0].retriable() or time.monotonic() > deadline:
                raise
            wait_a_moment()


class _Reader:
    def __init__(self, bootstrap: str, topic: str, protocol: str) -> None:
        self._topic = topic
        self._positions = Positions()
        self._consumer = Consumer(
            _where(bootstrap)
            | {
                "group.id": topic,
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        self._consumer.subscribe([topic], on_revoke=self._on_revoke, on_lost=self._on_revoke)

    def _on_revoke(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            self._positions.on_lost(each.partition)

    def read(self) -> list[Record]:
        found: list[Record] = []
        deadline = time.monotonic() + READ_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            message = self._consumer.poll(left)
            if message is None:
                continue
            if (error := message.error()) is not None:
                raise KafkaException(error)
            partition, offset = message.partition() or 0, message.offset() or 0
            found.append((partition, offset, message.value()))
            self._positions.on_read(partition, offset)
        return found

    def commit(self) -> dict[int, int]:
        if not self._positions:
            return {}
        offsets = [TopicPartition(self._topic, *each) for each in self._positions.take().items()]
        told = self._consumer.commit(offsets=offsets, asynchronous=False) or []
        for each in told:
            if each.error is not None:
                raise KafkaException(each.error)
        return {each.partition: each.offset for each in told}

    def close(self) -> None:
        self._consumer.close()


def _means(wrong: Exception) -> Meaning:
    error = wrong.args[0] if isinstance(wrong, KafkaException) else None
    if not isinstance(error, KafkaError) or error.fatal():
        return Meaning.UNEXPECTED
    if error.txn_requires_abort():
        return Meaning.ABORT
    if error.code() in _REBALANCED:
        return Meaning.REBALANCED
    again = error.retriable() or error.code() in _AGAIN
    return Meaning.AGAIN if again else Meaning.UNEXPECTED


def _reader(protocol: str) -> Callable[[str, str], Reader]:
    return partial(_Reader, protocol=protocol)


CLASSIC: Final = Teller(_Writer, _Transactional, _reader("classic"), _means)
CONSUMER: Final = Teller(_Writer, _Transactional, _reader("consumer"), _means)
