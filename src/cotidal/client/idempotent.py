"""Writing ready batches so that a retry never writes twice, within a transaction or without.

``send`` gives each partition's next batch to its leader and returns; the next ``send``, or
``finish``, waits for the answers first, so that the caller prepares a round while the one before is
under way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cotidal.client.backoff import Backoff
from cotidal.client.cluster import Cluster
from cotidal.client.failures import TimedOut
from cotidal.client.metadata import Topic
from cotidal.client.rounds import Rounds, Sequences
from cotidal.client.transactions import Identity
from cotidal.messages.batch import TRANSACTIONAL_BIT, Batches
from cotidal.values import TopicPartition
from cotidal.wire.batch import read_batches
from cotidal.wire.compression import Compression, compress
from cotidal.wire.primitives import Buffer
from cotidal.wire.records import seal_batch


class Encoded(NamedTuple):
    """The records of a batch, as they stand in it before compression."""

    records: Buffer
    record_count: int
    base_timestamp: int
    max_timestamp: int


class IdempotentWriter:
    """``transactional_id``: of the transaction that ``identity`` began; None for none."""

    def __init__(
        self,
        cluster: Cluster,
        identity: Identity,
        *,
        transactional_id: str | None = None,
        compression: Compression = Compression.NONE,
    ) -> None:
        self._rounds = Rounds(cluster, transactional_id=transactional_id)
        self._sequences = Sequences(identity)
        self._compression = compression
        self._attributes = int(compression)
        if transactional_id is not None:
            self._attributes |= TRANSACTIONAL_BIT

    def topic(self, name: str) -> Topic:
        """As last heard; UnknownTopic if there is none."""
        return self._rounds.topic(name)

    def send(self, batches: Mapping[TopicPartition, Encoded]) -> None:
        """One batch of each partition; when this returns, the round before is written."""
        sealed = {at: self._seal(at, each) for at, each in batches.items()}
        self.finish()
        for at, batch in sealed.items():
            self._rounds.put(at, batch)
        self._rounds.send()

    def finish(self) -> None:
        """Wait until everything is written; raises when that cannot be."""
        rounds = self._rounds
        backoff = Backoff(timeout_s=rounds.timeout_s)
        while rounds.under_way:
            rounds.receive()
            if not rounds.under_way:
                break
            if not backoff.wait():
                raise rounds.failure or TimedOut("the cluster", seconds=rounds.timeout_s)
            rounds.refresh()
            rounds.send()

    def _seal(self, at: TopicPartition, encoded: Encoded) -> Batches:
        who = self._sequences.identity
        return read_batches(
            seal_batch(
                compress(self._compression, encoded.records),
                attributes=self._attributes,
                last_offset_delta=encoded.record_count - 1,
                base_timestamp=encoded.base_timestamp,
                max_timestamp=encoded.max_timestamp,
                producer_id=who.producer_id,
                producer_epoch=who.epoch,
                base_sequence=self._sequences.take(at, encoded.record_count),
                count=encoded.record_count,
            )
        )
