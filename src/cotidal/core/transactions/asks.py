"""What a transaction coordinator is asked, and what it answers. Pure values.

An answer may also be a Refusal. ``fresh`` in a question is a producer id that nobody has had: a
coordinator that needs one and was given none answers NeedsProducerId, and is asked again with it.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from cotidal.core.transactions.transaction import Status, Transaction
from cotidal.values import ProducerEpoch, ProducerId, TopicPartition


class Producer(NamedTuple):
    producer_id: ProducerId
    epoch: ProducerEpoch


class InitProducer(NamedTuple):
    """T10. Who holds this transactional id from now on?"""

    transactional_id: str
    timeout_ms: int
    current: Producer | None = None
    """Whom the client takes itself for (KIP-360)."""
    fresh: ProducerId | None = None


class AddPartitions(NamedTuple):
    """T11, T12."""

    transactional_id: str
    producer: Producer
    partitions: tuple[TopicPartition, ...]
    verify_only: bool = False
    version: int = 0
    """Of transactions, as the client speaks them."""


class EndTransaction(NamedTuple):
    """T13, T14."""

    transactional_id: str
    producer: Producer
    commit: bool
    version: int = 0
    fresh: ProducerId | None = None


class MarkersWritten(NamedTuple):
    """T15: these partitions have the marker. Nobody waits for an answer."""

    transactional_id: str
    producer: Producer
    """As in the order that is answered: one for an earlier end says nothing of this one."""
    partitions: tuple[TopicPartition, ...]


class DescribeTransaction(NamedTuple):
    transactional_id: str


class ListTransactions(NamedTuple):
    """None: all of them."""

    statuses: tuple[Status, ...] | None = None
    producer_ids: tuple[ProducerId, ...] | None = None
    open_for_ms: int = -1
    """Only those that have been going on for longer."""


Ask: TypeAlias = (
    InitProducer
    | AddPartitions
    | EndTransaction
    | MarkersWritten
    | DescribeTransaction
    | ListTransactions
)


class NeedsProducerId(NamedTuple):
    """Ask again, with a fresh one."""


class PartitionsAdded(NamedTuple):
    """``missing``: with verify_only, those that are not part of the transaction."""

    missing: tuple[TopicPartition, ...] = ()


class Listed(NamedTuple):
    transactional_id: str
    transaction: Transaction


class TransactionsListed(NamedTuple):
    found: tuple[Listed, ...]


class SendMarkers(NamedTuple):
    """An order to the node: write this end to each of the partitions, until it is there (T15)."""

    transactional_id: str
    producer: Producer
    commit: bool
    partitions: tuple[TopicPartition, ...]
    version: int
