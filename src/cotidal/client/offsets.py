"""Finding offsets: the ends of partitions, and the first record at or after a time (ListOffsets).

Questions go to the leader of each partition, all leaders at once; what a leader cannot answer
during an election is asked again until the cluster's time is up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import assert_never

from cotidal.client.backoff import Backoff
from cotidal.client.cluster import Cluster
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
from cotidal.values import NO_NODE, NO_OFFSET, NodeId, Offset, TopicPartition

Wanted = Mapping[TopicPartition, int]
"""The time to look for in each partition; the two ends have times of their own."""


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
    found: dict[TopicPartition, Offset] = {}
    backoff = Backoff(timeout_s=cluster.timeout_s)
    while missing := {at: time for at, time in wanted.items() if at not in found}:
        failure = _ask_leaders(cluster, missing, found)
        if failure is not None and not backoff.wait():
            raise failure
    return found


def _ask_leaders(
    cluster: Cluster, wanted: Wanted, found: dict[TopicPartition, Offset]
) -> ClientError | None:
    """One round of questions: answers go into ``found``, what may pass is returned."""
    metadata = cluster.metadata(sorted({partition.topic for partition in wanted}))
    failure: ClientError | None = None
    for leader, led in partitions_by_leader(metadata, wanted).items():
        if leader == NO_NODE:
            failure = Refused(str(led[0]), ErrorCode.LEADER_NOT_AVAILABLE)
            continue
        try:
            response = cluster.connection(leader).call(
                ApiKey.LIST_OFFSETS,
                _request({partition: wanted[partition] for partition in led}),
                ListOffsetsResponse,
                timeout_s=cluster.timeout_s,
            )
        except (Unreachable, TimedOut) as error:
            failure = error
            continue
        failure = _read_answers(response, found) or failure
    return failure


def _read_answers(
    response: ListOffsetsResponse, found: dict[TopicPartition, Offset]
) -> Refused | None:
    passing: Refused | None = None
    for topic in response.topics:
        for answer in topic.partitions:
            at = TopicPartition(topic.name, answer.partition_index)
            if not answer.error_code:
                found[at] = Offset(answer.offset)
                continue
            refused = Refused(str(at), known_code(answer.error_code))
            if refused.error not in RETRIABLE:
                raise refused
            passing = refused
    return passing


def _request(wanted: Wanted) -> ListOffsetsRequest:
    topics: defaultdict[str, list[ListOffsetsPartition]] = defaultdict(list)
    for (topic, partition), timestamp in wanted.items():
        topics[topic].append(ListOffsetsPartition(partition_index=partition, timestamp=timestamp))
    return ListOffsetsRequest(
        replica_id=NO_NODE,
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
