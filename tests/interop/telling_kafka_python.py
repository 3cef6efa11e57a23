"""kafka-python as the teller of a story."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Final

from tests.chaos.patience import StoodStill, within
from tests.interop.stories import PATIENCE_SECONDS, Meaning
from tests.interop.storytellers import Positions, Record, Teller

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # theirs, about how they read their files
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition, errors
    from kafka.structs import OffsetAndMetadata

READ_MS: Final = 200
PRODUCERS_TRIED: Final = 3

_REBALANCED: Final = (
    errors.CommitFailedError,
    errors.RebalanceInProgressError,
    errors.IllegalGenerationError,
    errors.UnknownMemberIdError,
)
_FATAL: Final = (
    errors.ProducerFencedError,
    errors.InvalidProducerEpochError,
    errors.OutOfOrderSequenceNumberError,
    errors.IllegalStateError,
)


class _Writer:
    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap.split(","), acks="all", enable_idempotence=True
        )

    def send(self, value: bytes, partition: int, done: Callable[[Exception | None], None]) -> None:
        sent = self._producer.send(self._topic, value, partition=partition)
        sent.add_callback(lambda _: done(None))
        sent.add_errback(done)

    def close(self) -> None:
        self._producer.flush(PATIENCE_SECONDS)
        self._producer.close(PATIENCE_SECONDS)


class _Forgotten(errors.KafkaTimeoutError):
    """kafka-python 3.0.12 forgets what it was to ask of a coordinator that cannot be reached just
    then (Sender._maybe_send_pending_request: await_ready raises, and nobody puts the request back),
    and waits for the answer for ever. An application can only begin again with another producer."""


class _Transactional:
    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._producer = _ready_for_transactions(bootstrap, topic)
        self._is_forgotten = False

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, value: bytes, partition: int) -> None:
        self._producer.send(self._topic, value, partition=partition)

    def commit(self) -> None:
        self._ended_by(self._producer.commit_transaction)

    def abort(self) -> None:
        self._ended_by(self._producer.abort_transaction)

    def close(self) -> None:
        _end(self._producer)

    def _ended_by(self, end: Callable[[], None]) -> None:
        """It has no timeout of its own."""
        try:
            if not self._is_forgotten:
                within(PATIENCE_SECONDS, end)
                return
        except StoodStill:
            self._is_forgotten = True
        raise _Forgotten("the end of a transaction was not answered")


def _ready_for_transactions(bootstrap: str, topic: str) -> KafkaProducer:
    for _ in range(PRODUCERS_TRIED):
        producer = KafkaProducer(bootstrap_servers=bootstrap.split(","), transactional_id=topic)
        try:
            producer.init_transactions()
        except errors.KafkaTimeoutError:
            _end(producer)
        else:
            return producer
    raise _Forgotten("no producer was ready for transactions")


def _end(producer: KafkaProducer) -> None:
    try:
        producer.close(0)
    except errors.KafkaTimeoutError:  # it holds records, and would not be closed with them
        producer._sender.force_close()


class _Reader:
    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._positions = Positions()
        self._consumer = KafkaConsumer(
            bootstrap_servers=bootstrap.split(","),
            group_id=topic,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
        )
        # It may join before it knows the topic's partitions, and then shares out none.
        while not self._consumer.partitions_for_topic(topic):
            pass
        self._consumer.subscribe([topic])

    def read(self) -> list[Record]:
        self._positions.take()  # a rebalance happens in here, if anywhere
        return self._positions.read(self._consumer.poll(READ_MS, max_records=200))

    def commit(self) -> dict[int, int]:
        offsets = self._positions.take()
        if offsets:
            self._consumer.commit(
                {
                    TopicPartition(self._topic, partition): OffsetAndMetadata(offset, "", -1)
                    for partition, offset in offsets.items()
                }
            )
        return offsets

    def close(self) -> None:
        self._consumer.close(autocommit=False)


def _means(wrong: Exception) -> Meaning:
    if isinstance(wrong, _REBALANCED):
        return Meaning.REBALANCED
    if not isinstance(wrong, errors.KafkaError) or isinstance(wrong, _FATAL):
        return Meaning.UNEXPECTED
    if isinstance(wrong, errors.TransactionAbortedError | errors.TransactionAbortableError):
        return Meaning.ABORT
    return Meaning.AGAIN if getattr(wrong, "retriable", False) else Meaning.UNEXPECTED


TELLER: Final = Teller(_Writer, _Transactional, _Reader, _means)
