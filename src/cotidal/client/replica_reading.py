"""Reading one replica of a partition, whoever leads it: a stretch of batches, or of records.

A follower is read like a leader, which any consumer may do (KIP-392). It serves what lies below the
high watermark that it knows, which comes with its next fetch: a moment later than the leader's.
Nothing waits here, and no session is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from cotidal.client.connection import Connection
from cotidal.client.failures import BadRecord, Refused, known_code
from cotidal.errors import RETRIABLE, ErrorCode, PeerError
from cotidal.messages.batch import NO_BATCHES, Batches, BatchHeader
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from cotidal.values import TopicPartition, Uuid
from cotidal.wire.records import Record, read_records

PIECE_BYTES: Final = 1024 * 1024


class Placed(NamedTuple):
    """A record, and the batch it stands in."""

    record: Record
    batch: BatchHeader


class Stretch(NamedTuple):
    """What was read from an offset on."""

    records: list[Placed]
    next_offset: int
    """Everything before it was looked at; where nothing more is served, the end."""
    read_bytes: int


def fetch_batches(
    connection: Connection, at: TopicPartition, topic_id: Uuid, offset: int, *, wait_ms: int = 0
) -> Batches | None:
    """Whole batches from the one that holds ``offset`` on. None: not now, perhaps in a moment."""
    wanted = FetchPartition(
        partition=at.partition, fetch_offset=offset, partition_max_bytes=PIECE_BYTES
    )
    topic = FetchTopic(at.topic, topic_id, (wanted,))
    request = FetchRequest(max_wait_ms=wait_ms, min_bytes=1, topics=(topic,))
    response = connection.call(ApiKey.FETCH, request, FetchResponse)
    answer = response.responses[0].partitions[0] if response.responses else None
    error = known_code(response.error_code if answer is None else answer.error_code)
    if error is not ErrorCode.NONE:
        if error in RETRIABLE:
            return None
        raise Refused(f"offset {offset} of {at}", error)
    return None if answer is None else answer.records or NO_BATCHES


def read_stretch(
    connection: Connection,
    at: TopicPartition,
    topic_id: Uuid,
    first: int,
    *,
    below: int,
    bytes_max: int,
) -> Stretch:
    """The records from ``first`` to before ``below``: as many as are served, and at least a batch
    even if it is larger than ``bytes_max``."""
    found: list[Placed] = []
    offset, size = first, 0
    while offset < below and size < bytes_max:
        batches = fetch_batches(connection, at, topic_id, offset)
        if batches is None or not batches.headers:
            if batches is not None and batches.fault:
                raise BadRecord(f"{at} at offset {offset}: {batches.fault}")
            break
        inside = _inside(at, batches, offset)
        found += [placed for placed in inside if placed.record.offset < below]
        size += len(batches.data)
        offset = max(offset + 1, min(below, batches.headers[-1].next_offset))
    return Stretch(found, offset, size)


def _inside(at: TopicPartition, batches: Batches, first: int) -> Iterator[Placed]:
    begin = 0
    for header in batches.headers:
        if header.next_offset > first:
            try:
                inside = read_records(batches.data, begin)
            except PeerError as error:
                raise BadRecord(f"{at} at offset {header.base_offset}: {error}") from error
            yield from (Placed(record, header) for record in inside if record.offset >= first)
        begin += header.size_bytes
