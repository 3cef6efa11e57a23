"""Writing ready batches so that a retry never writes twice, within a transaction or without.

``send`` gives each partition's next batch to its leader, all leaders at once, and returns; the next
``send``, or ``finish``, waits for the answers first, so that the caller prepares a round while the
one before is under way. A batch keeps its sequence until it is written: sent again after a lost
answer, the leader knows it (KIP-98). One round at a time keeps the order of each partition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, NamedTuple

from cotidal.client.backoff import Backoff
from cotidal.client.cluster import Cluster
from cotidal.client.connection import Connection
from cotidal.client.failures import (
    ClientError,
    Refused,
    TimedOut,
    UnknownTopic,
    Unreachable,
    known_code,
)
from cotidal.client.metadata import Topic
from cotidal.client.transactions import Identity
from cotidal.errors import RETRIABLE, ErrorCode
from cotidal.messages.batch import TRANSACTIONAL_BIT, Batches
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from cotidal.values import NO_NODE, NodeId, TopicPartition
from cotidal.wire.batch import read_batches
from cotidal.wire.compression import Compression, compress
from cotidal.wire.primitives import Buffer
from cotidal.wire.records import seal_batch

SEQUENCE_MASK: Final = 0x7FFFFFFF
"""Sequences wrap at 2**31."""
ACKS_ALL: Final = -1
LANE: Final = "produce"


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
        self._cluster = cluster
        self._identity = identity
        self._transactional_id = transactional_id
        self._compression = compression
        self._sequences: defaultdict[TopicPartition, int] = defaultdict(int)
        self._topics: dict[str, Topic] = {}
        self._waiting: dict[TopicPartition, Batches] = {}
        """Sent, or to be sent again."""
        self._asked: list[Connection] = []
        self._failure: ClientError | None = None

    def topic(self, name: str) -> Topic:
        """As last heard; UnknownTopic if there is none."""
        if name not in self._topics:
            self._topics[name] = self._cluster.topic(name)
        return self._topics[name]

    def send(self, batches: Mapping[TopicPartition, Encoded]) -> None:
        """One batch of each partition; when this returns, the round before is written."""
        sealed = {at: self._seal(at, each) for at, each in batches.items()}
        self.finish()
        self._waiting = sealed
        self._send_waiting()

    def finish(self) -> None:
        """Wait until everything is written; raises when that cannot be."""
        backoff = Backoff(timeout_s=self._cluster.timeout_s)
        while self._waiting:
            self._receive()
            if not self._waiting:
                break
            if not backoff.wait():
                raise self._failure or TimedOut("the cluster", seconds=self._cluster.timeout_s)
            self._refresh()
            self._send_waiting()

    def _seal(self, at: TopicPartition, encoded: Encoded) -> Batches:
        sequence = self._sequences[at]
        self._sequences[at] = (sequence + encoded.record_count) & SEQUENCE_MASK
        transactional = TRANSACTIONAL_BIT if self._transactional_id is not None else 0
        return read_batches(
            seal_batch(
                compress(self._compression, encoded.records),
                attributes=int(self._compression) | transactional,
                last_offset_delta=encoded.record_count - 1,
                base_timestamp=encoded.base_timestamp,
                max_timestamp=encoded.max_timestamp,
                producer_id=self._identity.producer_id,
                producer_epoch=self._identity.epoch,
                base_sequence=sequence,
                count=encoded.record_count,
            )
        )

    def _send_waiting(self) -> None:
        self._failure = None
        for leader, partitions in self._by_leader().items():
            if leader == NO_NODE:
                self._failure = Refused(str(partitions[0]), ErrorCode.LEADER_NOT_AVAILABLE)
                continue
            try:
                connection = self._cluster.lane(leader, LANE)
                connection.send(
                    ApiKey.PRODUCE, self._request(partitions), timeout_s=self._cluster.timeout_s
                )
                self._asked.append(connection)
            except (Unreachable, TimedOut) as error:
                self._failure = error

    def _by_leader(self) -> dict[NodeId, list[TopicPartition]]:
        grouped: defaultdict[NodeId, list[TopicPartition]] = defaultdict(list)
        for at in self._waiting:
            partitions = self.topic(at.topic).partitions
            known = at.partition < len(partitions)
            grouped[partitions[at.partition].leader if known else NO_NODE].append(at)
        return grouped

    def _request(self, partitions: list[TopicPartition]) -> ProduceRequest:
        topics: defaultdict[str, list[PartitionProduceData]] = defaultdict(list)
        for at in partitions:
            topics[at.topic].append(PartitionProduceData(at.partition, self._waiting[at]))
        data = tuple(
            TopicProduceData(name, self.topic(name).topic_id, tuple(of))
            for name, of in topics.items()
        )
        timeout_ms = int(self._cluster.timeout_s * 1000)
        return ProduceRequest(self._transactional_id, ACKS_ALL, timeout_ms, data)

    def _receive(self) -> None:
        asked, self._asked = self._asked, []
        names = {topic.topic_id: name for name, topic in self._topics.items()}
        for connection in asked:
            try:
                response = connection.receive(
                    ProduceResponse, timeout_s=self._cluster.timeout_s + 5
                )
            except (Unreachable, TimedOut) as error:
                self._failure = error
                continue
            for topic in response.responses:
                for answer in topic.partition_responses:
                    name = topic.name or names[topic.topic_id]
                    at = TopicPartition(name, answer.partition_index)
                    self._settle(at, known_code(answer.error_code), answer.error_message)

    def _settle(self, at: TopicPartition, error: ErrorCode, message: str | None) -> None:
        if error in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self._waiting.pop(at, None)
            return
        refused = Refused(str(at), error, message)
        if error not in RETRIABLE:
            raise refused
        self._failure = refused

    def _refresh(self) -> None:
        for name in {at.topic for at in self._waiting}:
            try:
                self._topics[name] = self._cluster.topic(name)
            except UnknownTopic:
                raise  # deleted under our hands: no retry brings it back
            except ClientError as error:
                self._failure = error  # the next round fails again, until it is enough
