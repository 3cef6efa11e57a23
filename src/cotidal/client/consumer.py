"""Reading assigned partitions from given offsets, from however many leaders.

One fetch is under way with each leader; ``poll`` waits for whichever answers first. Fetches carry
no session (KIP-227): a client that reads for a moment would only fill the broker's cache. Control
batches are passed over. Aborted transactions are not filtered out (read_uncommitted).

``positions`` is the offset that comes next in each partition: it moves past batches that hold no
record for us, so a log whose last records were compacted away still has an end.
"""

from __future__ import annotations

import select
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Final, NamedTuple

from cotidal.client.backoff import Backoff
from cotidal.client.cluster import Cluster
from cotidal.client.connection import Connection
from cotidal.client.failures import (
    BadRecord,
    ClientError,
    Refused,
    TimedOut,
    Unreachable,
    known_code,
)
from cotidal.client.metadata import Metadata
from cotidal.client.offsets import partitions_by_leader
from cotidal.errors import RETRIABLE, ErrorCode, PeerError
from cotidal.messages.batch import Batches
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from cotidal.values import NO_NODE, NodeId, Offset, TopicPartition, Uuid, WallMillis
from cotidal.wire.records import read_records

FETCH_BYTES: Final = 16 * 1024 * 1024
PARTITION_BYTES: Final = 4 * 1024 * 1024
FETCH_WAIT_MS: Final = 500
METADATA_AGE_MAX_S: Final = 60.0


class Fetched(NamedTuple):
    """One record, with where it stands."""

    topic: str
    partition: int
    offset: Offset
    timestamp: WallMillis
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    @property
    def at(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class Consumer:
    """``with Consumer(cluster, {partition: offset}) as consumer:``; then ``poll`` and ``poll``."""

    def __init__(
        self,
        cluster: Cluster,
        positions: Mapping[TopicPartition, Offset],
        *,
        timeout_s: float = 30.0,
    ) -> None:
        self.positions = dict(positions)
        self._cluster = cluster
        self._timeout_s = timeout_s
        self._backoff = Backoff(timeout_s=timeout_s)
        self._metadata: Metadata | None = None
        self._metadata_at = 0.0
        self._topic_names: dict[Uuid, str] = {}
        self._connections: dict[NodeId, Connection] = {}
        """Our own: a fetch that waits for records would hold up whoever shared them."""
        self._fetching: dict[NodeId, Connection] = {}
        """Leaders whose answer we wait for."""

    def __enter__(self) -> Consumer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def poll(self, *, timeout_s: float = 1.0) -> list[Fetched]:
        """Records from the first leader that has some; empty when none came in time."""
        deadline = time.monotonic() + timeout_s
        while True:
            if not self.positions:
                return []
            failure = self._fetch_from_leaders()
            remaining = max(0.0, deadline - time.monotonic()) if self._fetching else 0.0
            ready, _, _ = select.select(list(self._fetching.values()), [], [], remaining)
            records: list[Fetched] = []
            for connection in ready:
                try:
                    records += self._receive(connection)
                except (Unreachable, TimedOut, Refused) as error:
                    failure = error
            if failure is not None:
                self._recover(failure)
            elif ready:
                self._backoff = Backoff(timeout_s=self._timeout_s)
            if records or time.monotonic() >= deadline:
                return records

    def drop(self, partition: TopicPartition) -> None:
        """Read no further in this partition."""
        self.positions.pop(partition, None)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._fetching.clear()

    def _fetch_from_leaders(self) -> ClientError | None:
        """Have one fetch under way with each leader of a partition we read."""
        failure: ClientError | None = None
        for leader, partitions in partitions_by_leader(self._current(), self.positions).items():
            if leader in self._fetching:
                continue
            if leader == NO_NODE:
                failure = Refused(str(partitions[0]), ErrorCode.LEADER_NOT_AVAILABLE)
                continue
            try:
                connection = self._connection(leader)
                connection.send(ApiKey.FETCH, self._request(partitions), timeout_s=self._timeout_s)
            except (Unreachable, TimedOut) as error:
                failure = error
                continue
            self._fetching[leader] = connection
        return failure

    def _connection(self, leader: NodeId) -> Connection:
        known = self._connections.get(leader)
        if known is None or not known.is_open:
            known = self._connections[leader] = self._cluster.open_connection(leader)
        return known

    def _request(self, partitions: list[TopicPartition]) -> FetchRequest:
        topic_ids = {name: topic_id for topic_id, name in self._topic_names.items()}
        grouped: defaultdict[str, list[FetchPartition]] = defaultdict(list)
        for at in partitions:
            grouped[at.topic].append(
                FetchPartition(
                    partition=at.partition,
                    fetch_offset=self.positions[at],
                    partition_max_bytes=PARTITION_BYTES,
                )
            )
        return FetchRequest(
            max_wait_ms=FETCH_WAIT_MS,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            topics=tuple(
                FetchTopic(topic=name, topic_id=topic_ids[name], partitions=tuple(of))
                for name, of in grouped.items()
            ),
        )

    def _receive(self, connection: Connection) -> list[Fetched]:
        self._fetching = {
            leader: other for leader, other in self._fetching.items() if other is not connection
        }
        response = connection.receive(FetchResponse, timeout_s=self._timeout_s)
        if response.error_code:
            raise Refused("fetch", known_code(response.error_code))
        records: list[Fetched] = []
        passing: Refused | None = None
        for topic in response.responses:
            name = topic.topic or self._topic_names.get(topic.topic_id, "")
            for answer in topic.partitions:
                at = TopicPartition(name, answer.partition_index)
                if answer.error_code:
                    refused = Refused(str(at), known_code(answer.error_code))
                    if refused.error not in RETRIABLE:
                        raise refused
                    passing = refused
                elif answer.records is not None and at in self.positions:
                    records += self._read(at, answer.records)
        if passing is not None:
            self._metadata = None
            if not records:
                raise passing
        return records

    def _read(self, at: TopicPartition, batches: Batches) -> Iterator[Fetched]:
        """The records at or after our position: a batch may begin before it."""
        position = self.positions[at]
        begin = 0
        for header in batches.headers:
            end = begin + header.size_bytes
            if header.next_offset > position and not header.is_control:
                try:
                    inside = read_records(batches.data, begin)
                except PeerError as error:
                    raise BadRecord(f"{at} at offset {header.base_offset}: {error}") from error
                for record in inside:
                    if record.offset >= position:
                        yield Fetched(
                            at.topic,
                            at.partition,
                            Offset(record.offset),
                            WallMillis(record.timestamp),
                            record.key,
                            record.value,
                            record.headers,
                        )
            position = max(position, header.next_offset)
            self.positions[at] = position
            begin = end
        if batches.fault and not batches.headers:
            raise BadRecord(f"{at} at offset {position}: {batches.fault}")

    def _recover(self, failure: ClientError) -> None:
        """Wait a little and ask again who leads; give up when nothing went well for too long."""
        if isinstance(failure, Refused) and failure.error not in RETRIABLE:
            raise failure
        self._fetching = {
            leader: connection
            for leader, connection in self._fetching.items()
            if connection.is_open
        }
        if not self._backoff.wait():
            raise failure
        self._metadata = None

    def _current(self) -> Metadata:
        now = time.monotonic()
        if self._metadata is None or now - self._metadata_at > METADATA_AGE_MAX_S:
            topics = sorted({at.topic for at in self.positions})
            self._metadata = self._cluster.metadata(topics)
            self._metadata_at = now
            self._topic_names = {topic.topic_id: topic.name for topic in self._metadata.topics}
        return self._metadata
