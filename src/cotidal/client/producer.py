"""Writing records to one topic: gathered per partition, sent as batches, one flush at a time.

A flush sends every partition's next batch to its leader, all leaders at once, and waits for the
answers before it sends the batch after it: the order of records within a partition survives any
retry. What the cluster may accept later (an election, too few in-sync replicas) is sent again
until ``timeout_s`` has passed without progress. An answer that is lost after the records were
written makes them written twice: this producer is not idempotent (yet).
"""

from __future__ import annotations

import os
import time
from collections import defaultdict, deque
from collections.abc import Sequence
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
from cotidal.client.partitioner import partition_for_key
from cotidal.errors import RETRIABLE, ErrorCode
from cotidal.messages.batch import Batches
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from cotidal.values import NodeId, Offset, WallMillis
from cotidal.wire.batch import read_batches
from cotidal.wire.compression import Compression
from cotidal.wire.records import Record, build_batch

ACKS_ALL: Final = -1
BATCH_BYTES: Final = 512 * 1024
"""Half of Kafka's default max.message.bytes; a larger record still travels, alone."""
RECORD_OVERHEAD_BYTES: Final = 24


class Acknowledged(NamedTuple):
    """A batch that was written; ``base_offset`` is -1 with acks=0, where nobody says."""

    partition: int
    base_offset: Offset
    records: int


class _Batch(NamedTuple):
    data: Batches
    records: int


class Producer:
    """``add`` records, then ``flush``: what it returns is written as ``acks`` promises."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        *,
        acks: int = ACKS_ALL,
        compression: Compression = Compression.NONE,
        partition: int | None = None,
        timeout_s: float = 30.0,
    ) -> None:
        self._cluster = cluster
        self._topic: Topic = cluster.topic(topic)
        self._acks = acks
        self._compression = compression
        self._timeout_s = timeout_s
        self._fixed = partition
        self._sticky = int.from_bytes(os.urandom(4), "big")
        self._gathered: defaultdict[int, list[Record]] = defaultdict(list)
        self.gathered_bytes = 0
        if partition is not None and not 0 <= partition < len(self._topic.partitions):
            raise Refused(
                f"partition {partition} of '{topic}'",
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"the topic has partitions 0 to {len(self._topic.partitions) - 1}",
            )

    def add(
        self,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp: WallMillis | None = None,
    ) -> None:
        """Gather one record for the next flush."""
        when = WallMillis(int(time.time() * 1000)) if timestamp is None else timestamp
        record = Record(timestamp=when, key=key, value=value, headers=tuple(headers))
        self._gathered[self._partition_of(key)].append(record)
        self.gathered_bytes += len(key or b"") + len(value or b"") + RECORD_OVERHEAD_BYTES

    def flush(self) -> list[Acknowledged]:
        """Write all that was gathered; raises when some of it cannot be written."""
        waiting = {
            partition: deque(self._batches(records))
            for partition, records in self._gathered.items()
        }
        self._gathered.clear()
        self.gathered_bytes = 0
        self._sticky += 1
        done: list[Acknowledged] = []
        backoff = Backoff(timeout_s=self._timeout_s)
        while waiting:
            written = len(done)
            failure = self._send_round(waiting, done)
            waiting = {partition: batches for partition, batches in waiting.items() if batches}
            if len(done) > written:
                backoff = Backoff(timeout_s=self._timeout_s)
            if failure is not None:
                if not backoff.wait():
                    raise failure
                self._refresh()
        return done

    def _partition_of(self, key: bytes | None) -> int:
        if self._fixed is not None:
            return self._fixed
        count = len(self._topic.partitions)
        return self._sticky % count if key is None else partition_for_key(key, partitions=count)

    def _batches(self, records: list[Record]) -> list[_Batch]:
        batches: list[_Batch] = []
        run: list[Record] = []
        size = 0
        for record in records:
            weight = len(record.key or b"") + len(record.value or b"") + RECORD_OVERHEAD_BYTES
            if run and size + weight > BATCH_BYTES:
                batches.append(self._batch(run))
                run, size = [], 0
            run.append(record)
            size += weight
        batches.append(self._batch(run))
        return batches

    def _batch(self, records: list[Record]) -> _Batch:
        data = build_batch(records, compression=self._compression)
        return _Batch(read_batches(data), len(records))

    def _send_round(
        self, waiting: dict[int, deque[_Batch]], done: list[Acknowledged]
    ) -> ClientError | None:
        """Send each partition's next batch, take off what was written, return what may pass."""
        failure: ClientError | None = None
        asked: list[Connection] = []
        for leader, partitions in self._by_leader(waiting).items():
            try:
                connection = self._leader_connection(leader, partitions)
                connection.send(
                    ApiKey.PRODUCE,
                    self._request({at: waiting[at][0] for at in partitions}),
                    timeout_s=self._timeout_s,
                    answered=self._acks != 0,
                )
            except (Unreachable, TimedOut, Refused) as error:
                failure = error
                continue
            if self._acks == 0:
                done += [
                    Acknowledged(at, Offset(-1), waiting[at].popleft().records) for at in partitions
                ]
            else:
                asked.append(connection)
        for connection in asked:
            try:
                response = connection.receive(ProduceResponse, timeout_s=self._timeout_s + 5)
            except (Unreachable, TimedOut) as error:
                failure = error
                continue
            failure = self._read_answers(response, waiting, done) or failure
        return failure

    def _read_answers(
        self,
        response: ProduceResponse,
        waiting: dict[int, deque[_Batch]],
        done: list[Acknowledged],
    ) -> Refused | None:
        passing: Refused | None = None
        for topic in response.responses:
            for answer in topic.partition_responses:
                at = answer.partition_index
                if not answer.error_code:
                    written = waiting[at].popleft()
                    done.append(Acknowledged(at, Offset(answer.base_offset), written.records))
                    continue
                subject = f"{self._topic.name}-{at}"
                refused = Refused(subject, known_code(answer.error_code), answer.error_message)
                if refused.error not in RETRIABLE:
                    raise refused
                passing = refused
        return passing

    def _by_leader(self, waiting: dict[int, deque[_Batch]]) -> dict[NodeId, list[int]]:
        grouped: defaultdict[NodeId, list[int]] = defaultdict(list)
        for at in waiting:
            grouped[self._topic.partitions[at].leader].append(at)
        return grouped

    def _leader_connection(self, leader: NodeId, partitions: list[int]) -> Connection:
        if not self._topic.partitions[partitions[0]].has_leader:
            subject = f"{self._topic.name}-{partitions[0]}"
            raise Refused(subject, ErrorCode.LEADER_NOT_AVAILABLE)
        return self._cluster.connection(leader)

    def _request(self, batches: dict[int, _Batch]) -> ProduceRequest:
        data = TopicProduceData(
            name=self._topic.name,
            topic_id=self._topic.topic_id,
            partition_data=tuple(
                PartitionProduceData(at, batch.data) for at, batch in batches.items()
            ),
        )
        return ProduceRequest(None, self._acks, int(self._timeout_s * 1000), (data,))

    def _refresh(self) -> None:
        try:
            self._topic = self._cluster.topic(self._topic.name)
        except UnknownTopic:
            raise  # deleted under our hands: no retry brings it back
        except ClientError:
            pass  # the next round fails again, and the back-off decides when it is enough
