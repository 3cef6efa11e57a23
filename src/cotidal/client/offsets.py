"""Finding offsets: the ends of partitions, the first record at or after a time (ListOffsets), and
where the records of an epoch end (OffsetForLeaderEpoch).

Questions go to the leader of each partition, all leaders at once; what a leader cannot answer
during an election is asked again until the cluster's time is up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, assert_never

from cotidal.client.backoff import Backoff
from cotidal.client.cluster import Cluster
from cotidal.client.connection import Connection
from cotidal.client.failures import ClientError, Refused, TimedOut, Unreachable, known_code
from cotidal.client.metadata import Metadata
from cotidal.client.start import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    AtOffset,
    AtTime,
    BeforeEnd,
    Start,
)
from cotidal.errors import RETRIABLE, ErrorCode
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from cotidal.messages.rpc.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from cotidal.values import NO_NODE, NO_OFFSET, LeaderEpoch, NodeId, Offset, TopicPartition

Wanted = Mapping[TopicPartition, int]
"""The time to look for in each partition; the two ends have times of their own."""


class Position(NamedTuple):
    """An offset, and the epoch of the leader that gave it, or of its end that of the one asked."""

    offset: Offset
    leader_epoch: LeaderEpoch


class Answer(NamedTuple):
    at: TopicPartition
    error_code: int
    position: Position


Ask = Callable[[Connection, Wanted], Iterable[Answer]]
"""Asks one leader about its partitions."""


def earliest_offsets(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, Offset]:
    return find_offsets(cluster, dict.fromkeys(partitions, EARLIEST_TIMESTAMP))


def end_offsets(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, Offset]:
    """High watermarks: the offsets that the next readable records will have."""
    return find_offsets(cluster, dict.fromkeys(partitions, LATEST_TIMESTAMP))


def start_offsets(
    cluster: Cluster, partitions: Iterable[TopicPartition], start: Start
) -> dict[TopicPartition, Offset]:
    """Where a consumer begins in each partition. A time after the last record is the end."""
    wanted = list(partitions)
    match start:
        case AtTime(timestamp):
            found = find_offsets(cluster, dict.fromkeys(wanted, timestamp))
            late = [partition for partition, offset in found.items() if offset == NO_OFFSET]
            return found | end_offsets(cluster, late) if late else found
        case AtOffset(offset):
            first, last = earliest_offsets(cluster, wanted), end_offsets(cluster, wanted)
            for partition in wanted:
                if not first[partition] <= offset <= last[partition]:
                    raise Refused(
                        f"offset {offset} of {partition}",
                        ErrorCode.OFFSET_OUT_OF_RANGE,
                        f"the log begins at {first[partition]} and ends before {last[partition]}",
                    )
            return dict.fromkeys(wanted, Offset(offset))
        case BeforeEnd(count_back):
            first, last = earliest_offsets(cluster, wanted), end_offsets(cluster, wanted)
            return {
                partition: Offset(max(first[partition], last[partition] - count_back))
                for partition in wanted
            }
        case _:
            assert_never(start)


def find_offsets(cluster: Cluster, wanted: Wanted) -> dict[TopicPartition, Offset]:
    """The first offset at or after each time; NO_OFFSET where there is none."""
    return {at: found.offset for at, found in find_positions(cluster, wanted).items()}


def find_positions(
    cluster: Cluster, wanted: Wanted, *, read_committed: bool = False
) -> dict[TopicPartition, Position]:
    """The same, with the epoch. ``read_committed``: the end is the last stable offset."""

    def ask(connection: Connection, of: Wanted) -> Iterator[Answer]:
        response = connection.call(
            ApiKey.LIST_OFFSETS,
            _request(of, read_committed=read_committed),
            ListOffsetsResponse,
            timeout_s=cluster.timeout_s,
        )
        for topic in response.topics:
            for answer in topic.partitions:
                at = TopicPartition(topic.name, answer.partition_index)
                found = Position(Offset(answer.offset), LeaderEpoch(answer.leader_epoch))
                yield Answer(at, answer.error_code, found)

    return _ask_until_known(cluster, wanted, ask)


def epoch_ends(
    cluster: Cluster, epochs: Mapping[TopicPartition, LeaderEpoch]
) -> dict[TopicPartition, Position]:
    """Where each epoch ends now: the greatest epoch up to it, and the offset after its records.

    A log that ended an epoch further on than this has lost records (KIP-320). NO_OFFSET: the
    leader knows no such epoch.
    """

    def ask(connection: Connection, of: Wanted) -> Iterator[Answer]:
        topics: defaultdict[str, list[OffsetForLeaderPartition]] = defaultdict(list)
        for (topic, partition), epoch in of.items():
            topics[topic].append(
                OffsetForLeaderPartition(partition=partition, leader_epoch=LeaderEpoch(epoch))
            )
        response = connection.call(
            ApiKey.OFFSET_FOR_LEADER_EPOCH,
            OffsetForLeaderEpochRequest(
                replica_id=NO_NODE,
                topics=tuple(
                    OffsetForLeaderTopic(name, tuple(asked)) for name, asked in topics.items()
                ),
            ),
            OffsetForLeaderEpochResponse,
            timeout_s=cluster.timeout_s,
        )
        for told in response.topics:
            for answer in told.partitions:
                at = TopicPartition(told.topic, answer.partition)
                end = Position(Offset(answer.end_offset), LeaderEpoch(answer.leader_epoch))
                yield Answer(at, answer.error_code, end)

    return _ask_until_known(cluster, epochs, ask)


def _ask_until_known(cluster: Cluster, wanted: Wanted, ask: Ask) -> dict[TopicPartition, Position]:
    found: dict[TopicPartition, Position] = {}
    backoff = Backoff(timeout_s=cluster.timeout_s)
    while missing := {at: asked for at, asked in wanted.items() if at not in found}:
        failure = _ask_leaders(cluster, missing, found, ask)
        if failure is not None and not backoff.wait():
            raise failure
    return found


def _ask_leaders(
    cluster: Cluster, wanted: Wanted, found: dict[TopicPartition, Position], ask: Ask
) -> ClientError | None:
    """One round of questions: answers go into ``found``, what may pass is returned."""
    metadata = cluster.metadata(sorted({partition.topic for partition in wanted}))
    failure: ClientError | None = None
    for leader, led in partitions_by_leader(metadata, wanted).items():
        if leader == NO_NODE:
            failure = Refused(str(led[0]), ErrorCode.LEADER_NOT_AVAILABLE)
            continue
        try:
            asked = {partition: wanted[partition] for partition in led}
            for answer in ask(cluster.connection(leader), asked):
                if not answer.error_code:
                    found[answer.at] = answer.position
                    continue
                refused = Refused(str(answer.at), known_code(answer.error_code))
                if refused.error not in RETRIABLE:
                    raise refused
                failure = refused
        except (Unreachable, TimedOut) as error:
            failure = error
    return failure


def _request(wanted: Wanted, *, read_committed: bool) -> ListOffsetsRequest:
    topics: defaultdict[str, list[ListOffsetsPartition]] = defaultdict(list)
    for (topic, partition), timestamp in wanted.items():
        topics[topic].append(ListOffsetsPartition(partition_index=partition, timestamp=timestamp))
    return ListOffsetsRequest(
        replica_id=NO_NODE,
        isolation_level=int(read_committed),
        topics=tuple(ListOffsetsTopic(name, tuple(of)) for name, of in topics.items()),
    )


def partitions_by_leader(
    metadata: Metadata, partitions: Iterable[TopicPartition]
) -> dict[NodeId, list[TopicPartition]]:
    """Who is to be asked about what; NO_NODE for partitions that nobody leads now."""
    leaders = {
        TopicPartition(topic.name, partition.partition): partition.leader
        for topic in metadata.topics
        for partition in topic.partitions
    }
    named = {broker.node_id for broker in metadata.brokers}
    grouped: defaultdict[NodeId, list[TopicPartition]] = defaultdict(list)
    for partition in partitions:
        leader = leaders.get(partition, NO_NODE)
        grouped[leader if leader in named else NO_NODE].append(partition)
    return dict(grouped)
