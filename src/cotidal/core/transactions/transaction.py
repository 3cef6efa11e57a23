"""One transactional id as its coordinator knows it, and the record that says so. Pure.

    Empty -> Ongoing -> PrepareCommit -> CompleteCommit -> Ongoing ...
                     -> PrepareAbort  -> CompleteAbort

Once Prepare is committed, its end is decided (TXN_DECIDED_ONCE); Complete says that every marker is
written. Numbers and fields are Kafka's, so a coordinator of Apache Kafka could take over.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from cotidal.core.coordinator import KeyedRecord
from cotidal.messages.records.transaction import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from cotidal.values import (
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    ProducerEpoch,
    ProducerId,
    TopicPartition,
    WallMillis,
    by_topic,
)

EPOCH_MAX: Final = 0x7FFF
"""Only markers ever carry it."""
EPOCH_LAST: Final = EPOCH_MAX - 1
"""The last that a producer is given: then it gets another id."""


class Status(IntEnum):
    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5

    @property
    def word(self) -> str:
        """As Kafka spells it: PrepareCommit."""
        return "".join(part.capitalize() for part in self.name.split("_"))


PREPARED: Final = (Status.PREPARE_COMMIT, Status.PREPARE_ABORT)
IDLE: Final = (Status.EMPTY, Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT)


class Transaction(NamedTuple):
    """Replaced as a whole at each change."""

    producer_id: ProducerId
    epoch: ProducerEpoch
    timeout_ms: int
    status: Status = Status.EMPTY
    partitions: tuple[TopicPartition, ...] = ()
    previous_id: ProducerId = NO_PRODUCER_ID
    """Whose epochs were used up."""
    next_id: ProducerId = NO_PRODUCER_ID
    """While it ends: who the producer is afterwards, if its epochs are used up."""
    started_at: WallMillis = NO_TIMESTAMP
    changed_at: WallMillis = NO_TIMESTAMP
    version: int = 0
    """Of transactions, as its client spoke them last."""

    @property
    def is_exhausted(self) -> bool:
        return self.epoch >= EPOCH_LAST

    def completed(self, wall: WallMillis) -> Transaction:
        """All markers are written."""
        is_commit = self.status is Status.PREPARE_COMMIT
        done = self._replace(
            status=Status.COMPLETE_COMMIT if is_commit else Status.COMPLETE_ABORT,
            partitions=(),
            next_id=NO_PRODUCER_ID,
            changed_at=wall,
        )
        if self.next_id == NO_PRODUCER_ID:
            return done
        return done._replace(
            producer_id=self.next_id, epoch=ProducerEpoch(0), previous_id=self.producer_id
        )


def record_of(transactional_id: str, transaction: Transaction | None) -> KeyedRecord:
    """None: the id is forgotten."""
    key = TransactionLogKey(transactional_id)
    if transaction is None:
        return KeyedRecord(key, None)
    is_empty = transaction.status is Status.EMPTY
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_id,
        next_producer_id=transaction.next_id,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.status,
        transaction_partitions=None
        if is_empty
        else tuple(PartitionsSchema(*each) for each in by_topic(transaction.partitions).items()),
        transaction_last_update_timestamp_ms=transaction.changed_at,
        transaction_start_timestamp_ms=transaction.started_at,
        client_transaction_version=transaction.version,
    )
    return KeyedRecord(key, value)


def transaction_of(value: TransactionLogValue) -> Transaction:
    return Transaction(
        producer_id=ProducerId(value.producer_id),
        epoch=ProducerEpoch(value.producer_epoch),
        timeout_ms=value.transaction_timeout_ms,
        status=Status(value.transaction_status),
        partitions=tuple(
            TopicPartition(topic.topic, partition)
            for topic in value.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        previous_id=ProducerId(value.previous_producer_id),
        next_id=ProducerId(value.next_producer_id),
        started_at=WallMillis(value.transaction_start_timestamp_ms),
        changed_at=WallMillis(value.transaction_last_update_timestamp_ms),
        version=value.client_transaction_version,
    )
