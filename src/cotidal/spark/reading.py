"""Ranges of partitions, read on an executor: fetched, filtered, decoded into Arrow batches.

The next fetch is under way while the last one is decoded. A leader that dies or moves is looked for
again until nothing has come for ``timeout_s``; reading goes on at the record where it stood. With a
rack the leader may name a replica nearer by (KIP-392); one that fails is left for the leader.

What was planned is what is read, or it is told: records that were deleted before they were read,
and records that an unclean election took and others replaced (their epoch is later than that of
the leader which named the end), raise DataLost with their range, unless failOnDataLoss is false.
"""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

from cotidal.client.backoff import Backoff
from cotidal.client.cluster import Cluster
from cotidal.client.connection import Connection
from cotidal.client.failures import (
    BadRecord,
    ClientError,
    Refused,
    TimedOut,
    UnknownTopic,
    Unreachable,
    known_code,
)
from cotidal.client.offsets import earliest_offsets, end_offsets, epoch_ends
from cotidal.errors import RETRIABLE, ErrorCode, PeerError
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from cotidal.spark.columns import record_batch
from cotidal.spark.decoding import Section, decode, section
from cotidal.spark.failures import DataLost
from cotidal.spark.options import SourceOptions
from cotidal.spark.ranges import OffsetRange
from cotidal.spark.visibility import visible_batches
from cotidal.values import NO_NODE, NodeId, Offset

FETCH_WAIT_MS: Final = 500
RACK_VARIABLE: Final = "COTIDAL_RACK"
"""Where an executor says in which rack it runs, if kafka.client.rack does not."""
GONE_ATTEMPTS_MAX: Final = 5
"""So often a topic may seem to be gone: a broker may not have heard of it yet."""


def read_ranges(
    options: SourceOptions, ranges: Iterable[OffsetRange], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The work of a task: one range after the other, as Arrow batches of bounded size, in order."""
    with Cluster(options.bootstrap, timeout_s=options.timeout_s) as cluster:
        for wanted in ranges:
            yield from _read_range(RangeFetcher(cluster, options, wanted), options, wanted, schema)


def _read_range(
    fetcher: RangeFetcher, options: SourceOptions, wanted: OffsetRange, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    with_headers = "headers" in schema.names
    for sections in _gather(fetcher, options):
        try:
            decoded = decode(sections, with_headers=with_headers)
        except PeerError as error:
            first = sections[0].header.base_offset
            raise BadRecord(f"{wanted.at} from offset {first} on: {error}") from error
        whole = record_batch(decoded, schema, topic=wanted.topic, partition=wanted.partition)
        # A batch may begin before the range, or what is lost of it, and end after it.
        for begin, end in fetcher.readable():
            first, last = decoded.offsets.searchsorted((begin, end)).tolist()
            for at in range(first, last, options.batch_rows):
                yield whole.slice(at, min(options.batch_rows, last - at))


def _gather(fetcher: RangeFetcher, options: SourceOptions) -> Iterator[list[Section]]:
    """Batches together, until they are worth an Arrow batch."""
    sections: list[Section] = []
    rows = size_bytes = 0
    for each in fetcher.sections():
        if sections and size_bytes + len(each.records) > options.batch_bytes:
            yield sections
            sections, rows, size_bytes = [], 0, 0
        sections.append(each)
        rows += each.header.record_count
        size_bytes += len(each.records)
        if rows >= options.batch_rows:
            yield sections
            sections, rows, size_bytes = [], 0, 0
    if sections:
        yield sections


class RangeFetcher:
    """``sections`` yields what a reader of this range may see, batch by batch."""

    def __init__(self, cluster: Cluster, options: SourceOptions, wanted: OffsetRange) -> None:
        self._cluster = cluster
        self._options = options
        self._wanted = wanted
        self._rack = options.rack or os.environ.get(RACK_VARIABLE, "")
        self._position = wanted.begin
        self._connection: Connection | None = None
        self._nearer = NO_NODE
        """The replica that the leader told us to read from."""
        self._is_asked = False
        self._backoff = Backoff(timeout_s=options.timeout_s)
        self._gone = 0
        self._is_replaced = False
        self._lost: list[tuple[Offset, Offset]] = []

    def sections(self) -> Iterator[Section]:
        try:
            while self._position < self._wanted.end:
                try:
                    answer = self._fetch()
                except (Unreachable, TimedOut, Refused) as error:
                    self._recover(error)
                    continue
                yield from self._read(answer)
        finally:
            self._leave()

    def readable(self) -> list[tuple[Offset, Offset]]:
        """The range, without what was lost of it so far."""
        edges = [self._wanted.begin, *itertools.chain(*self._lost), self._wanted.end]
        return list(zip(edges[::2], edges[1::2], strict=True))

    def _read(self, answer: PartitionData) -> Iterator[Section]:
        batches = answer.records
        if answer.preferred_read_replica >= 0 and not (batches and batches.headers):
            self._leave()
            self._nearer = NodeId(answer.preferred_read_replica)
            return
        if batches is None or not batches.headers:
            if batches is not None and batches.fault:
                raise BadRecord(f"{self._wanted.at} at offset {self._position}: {batches.fault}")
            self._wait_for_records()
            return
        self._backoff = Backoff(timeout_s=self._options.timeout_s)
        self._gone = 0
        before = self._position
        self._position = Offset(max(before, batches.headers[-1].next_offset))
        if self._position < self._wanted.end:
            self._ask_ahead()
        aborted = answer.aborted_transactions or () if self._options.read_committed else ()
        for header, begin in visible_batches(batches, aborted):
            if header.base_offset >= self._wanted.end:
                return
            self._check_epoch(header.base_offset, header.leader_epoch)
            if header.next_offset > before and header.record_count:
                data = batches.data[begin : begin + header.size_bytes]
                try:
                    yield section(header, data)
                except PeerError as error:
                    at = f"{self._wanted.at} at offset {header.base_offset}"
                    raise BadRecord(f"{at}: {error}") from error

    def _fetch(self) -> PartitionData:
        connection = self._connected()
        if not self._is_asked:
            connection.send(ApiKey.FETCH, self._request(), timeout_s=self._options.timeout_s)
        self._is_asked = False
        response = connection.receive(FetchResponse, timeout_s=self._options.timeout_s)
        if response.error_code:
            raise Refused("fetch", known_code(response.error_code))
        answer = response.responses[0].partitions[0]
        if answer.error_code:
            raise Refused(str(self._wanted.at), known_code(answer.error_code))
        return answer

    def _ask_ahead(self) -> None:
        """The next fetch is answered while the last one is decoded."""
        if self._connection is None:
            return
        try:
            self._connection.send(ApiKey.FETCH, self._request(), timeout_s=self._options.timeout_s)
            self._is_asked = True
        except (Unreachable, TimedOut):
            self._leave()

    def _connected(self) -> Connection:
        if self._connection is not None and self._connection.is_open:
            return self._connection
        self._is_asked = False
        topic = self._cluster.topic(self._wanted.topic)
        if topic.topic_id != self._wanted.topic_id:
            raise UnknownTopic(self._wanted.topic)
        leader = next(
            (each.leader for each in topic.partitions if each.partition == self._wanted.partition),
            NO_NODE,
        )
        if leader == NO_NODE:
            raise Refused(str(self._wanted.at), ErrorCode.LEADER_NOT_AVAILABLE)
        node = self._nearer if self._nearer != NO_NODE else leader
        self._connection = self._cluster.open_connection(node)
        return self._connection

    def _request(self) -> FetchRequest:
        partition = FetchPartition(
            partition=self._wanted.partition,
            fetch_offset=self._position,
            partition_max_bytes=self._options.fetch_bytes,
        )
        topic = FetchTopic(self._wanted.topic, self._wanted.topic_id, (partition,))
        return FetchRequest(
            max_wait_ms=FETCH_WAIT_MS,
            min_bytes=1,
            max_bytes=self._options.fetch_bytes,
            isolation_level=int(self._options.read_committed),
            topics=(topic,),
            rack_id=self._rack,
        )

    def _recover(self, failure: ClientError) -> None:
        """Wait a little, then find the leader again; or find that it is no use."""
        self._leave()
        was_nearer, self._nearer = self._nearer != NO_NODE, NO_NODE
        match failure:
            case Refused(error=ErrorCode.OFFSET_OUT_OF_RANGE):
                if not was_nearer:  # a replica nearer by may lag: its leader decides
                    self._out_of_range()
                return
            case Refused(error=ErrorCode.UNKNOWN_TOPIC_ID | ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                self._gone += 1
                if self._gone >= GONE_ATTEMPTS_MAX:
                    self._skip_to(self._wanted.end, "the topic was deleted while it was read")
                    return
            case Refused(error=error) if error not in RETRIABLE:
                raise failure
            case _:
                pass
        if not self._backoff.wait():
            raise failure

    def _leave(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self._is_asked = False

    # What is no longer there

    def _check_epoch(self, offset: Offset, epoch: int) -> None:
        planned = self._wanted.leader_epoch
        if 0 <= planned < epoch and not self._is_replaced:
            self._is_replaced = True
            why = f"an election that was not clean replaced them: epoch {planned} by {epoch}"
            self._tell(offset, self._wanted.end, why)

    def _wait_for_records(self) -> None:
        """The range is not readable yet, or no longer: a new leader says where its log ends."""
        wanted = self._wanted
        if wanted.leader_epoch >= 0:
            end = epoch_ends(self._cluster, {wanted.at: wanted.leader_epoch})[wanted.at].offset
            if end < wanted.end:
                self._position = max(self._position, min(end, wanted.end))
                self._skip_to(wanted.end, f"the log was truncated to offset {end}")
                return
        self._wait()

    def _out_of_range(self) -> None:
        wanted = self._wanted
        first = earliest_offsets(self._cluster, [wanted.at])[wanted.at]
        last = end_offsets(self._cluster, [wanted.at])[wanted.at]
        if self._position < first:
            self._skip_to(min(first, wanted.end), f"the log begins at offset {first}")
        elif self._position > last:
            self._position = last
            self._skip_to(wanted.end, f"the log ends before offset {last}")
        else:
            self._wait()

    def _wait(self) -> None:
        if not self._backoff.wait():
            at = f"{self._wanted.at} from offset {self._position} on"
            raise TimedOut(at, seconds=self._options.timeout_s)

    def _skip_to(self, end: Offset, why: str) -> None:
        self._tell(self._position, end, why)
        self._lost.append((self._position, end))
        self._position = end

    def _tell(self, begin: Offset, end: Offset, why: str) -> None:
        """DataLost, or a warning where the job has said that it goes on."""
        told = f"offsets {begin} to {end - 1} of {self._wanted.at} are lost: {why}"
        if self._options.fail_on_data_loss:
            raise DataLost(f"{told}; set failOnDataLoss to false to go on without them")
        logging.getLogger("cotidal.spark").warning(told)
