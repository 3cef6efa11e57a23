"""What each broker tells of the replicas that it has, and the cluster of those that are silent.

A broker of our own answers DescribeReplicas (docs/adr/0004). Of another one the ends of each
replica's log are asked for as Kafka's debugging tools do (ListOffsets with replica id -2), and of a
leader its high watermark; epochs and the progress of followers it has no way to tell.

A broker that cannot be asked is left out: what its replicas hold is not known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from cotidal.client.cluster import Cluster
from cotidal.client.connection import Connection
from cotidal.client.failures import ProtocolMismatch, TimedOut, Unreachable
from cotidal.client.metadata import Metadata
from cotidal.client.start import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.describe_replicas import DescribeReplicasRequest, DescribeReplicasResponse
from cotidal.messages.rpc.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from cotidal.values import EpochEntry, LeaderEpoch, NodeId, Offset, TopicPartition

CONSUMER: Final = -1
DEBUGGER: Final = -2
"""As which any replica, not only a leader, tells where its log ends."""
FENCED_SINCE: Final = 2
"""DescribeCluster tells of fenced brokers from this version on."""


class Held(NamedTuple):
    """One replica's log, as its own broker tells it."""

    start_offset: Offset
    end_offset: Offset
    high_watermark: Offset | None
    epochs: tuple[EpochEntry, ...] | None
    """None where the broker does not tell."""
    offline_reason: str | None = None


class Follower(NamedTuple):
    """A follower, as its leader sees it."""

    end_offset: Offset | None
    fetched_ms_ago: int | None
    """None: not since this leader took over."""
    caught_up_ms_ago: int | None
    bytes_per_second: int | None
    throttled: bool


class Led(NamedTuple):
    """What a leader knows besides its log."""

    min_isr: int
    followers: Mapping[NodeId, Follower]


class Told(NamedTuple):
    """The answer of one broker."""

    held: Mapping[TopicPartition, Held]
    led: Mapping[TopicPartition, Led]
    fenced_for_ms: Mapping[NodeId, int]


class Registered(NamedTuple):
    """A broker that the controller knows, whether it serves or not."""

    node_id: NodeId
    host: str
    port: int
    rack: str | None
    is_fenced: bool


class Eligible(NamedTuple):
    """Who may lead beside the ISR (KIP-966)."""

    elr: tuple[NodeId, ...]
    last_known: tuple[NodeId, ...]


NOBODY: Final = Eligible((), ())


def ask_brokers(
    cluster: Cluster, metadata: Metadata, topics: Sequence[str]
) -> tuple[dict[NodeId, Told], dict[NodeId, str]]:
    """The answers of those that answer, and why the others do not."""
    answers: dict[NodeId, Told] = {}
    silent: dict[NodeId, str] = {}
    asked: list[tuple[NodeId, Connection]] = []
    for broker in metadata.brokers:
        try:
            connection = cluster.connection(broker.node_id)
            if connection.serves(ApiKey.DESCRIBE_REPLICAS):
                request = DescribeReplicasRequest(tuple(topics))
                connection.send(ApiKey.DESCRIBE_REPLICAS, request, timeout_s=cluster.timeout_s)
                asked.append((broker.node_id, connection))
            else:
                answers[broker.node_id] = _ask_any(cluster, connection, metadata, broker.node_id)
        except (Unreachable, TimedOut) as failure:
            silent[broker.node_id] = str(failure)
    for node_id, connection in asked:
        try:
            response = connection.receive(DescribeReplicasResponse, timeout_s=cluster.timeout_s)
        except (Unreachable, TimedOut) as failure:
            silent[node_id] = str(failure)
        else:
            answers[node_id] = _read(response)
    return answers, silent


def registered_brokers(cluster: Cluster, metadata: Metadata) -> tuple[Registered, ...]:
    """Fenced ones too, where the cluster tells of them."""
    from cotidal.messages.rpc.describe_cluster import (
        DescribeClusterRequest,
        DescribeClusterResponse,
    )

    connection = cluster.any_connection()
    serves = connection.serves(ApiKey.DESCRIBE_CLUSTER)
    if not serves or connection.version(ApiKey.DESCRIBE_CLUSTER) < FENCED_SINCE:
        return tuple(
            Registered(broker.node_id, *broker.address, broker.rack, is_fenced=False)
            for broker in metadata.brokers
        )
    response = cluster.ask(
        ApiKey.DESCRIBE_CLUSTER,
        DescribeClusterRequest(include_fenced_brokers=True),
        DescribeClusterResponse,
    )
    return tuple(
        sorted(
            Registered(NodeId(each.broker_id), each.host, each.port, each.rack, each.is_fenced)
            for each in response.brokers
        )
    )


def eligible_leaders(cluster: Cluster, topics: Sequence[str]) -> dict[TopicPartition, Eligible]:
    """Of each partition of these topics; nothing where the cluster does not know KIP-966."""
    from cotidal.messages.rpc import describe_topic_partitions as rpc

    found: dict[TopicPartition, Eligible] = {}
    cursor: rpc.DescribeTopicPartitionsRequestCursor | None = None
    while topics:
        request = rpc.DescribeTopicPartitionsRequest(
            topics=tuple(rpc.TopicRequest(name) for name in topics), cursor=cursor
        )
        key = ApiKey.DESCRIBE_TOPIC_PARTITIONS
        try:
            response = cluster.ask(key, request, rpc.DescribeTopicPartitionsResponse)
        except ProtocolMismatch:
            break
        for topic in response.topics:
            for partition in topic.partitions:
                found[TopicPartition(topic.name or "", partition.partition_index)] = Eligible(
                    tuple(map(NodeId, partition.eligible_leader_replicas or ())),
                    tuple(map(NodeId, partition.last_known_elr or ())),
                )
        if response.next_cursor is None:
            break
        cursor = rpc.DescribeTopicPartitionsRequestCursor(*response.next_cursor)
    return found


def _read(response: DescribeReplicasResponse) -> Told:
    held: dict[TopicPartition, Held] = {}
    led: dict[TopicPartition, Led] = {}
    for topic in response.topics:
        for each in topic.partitions:
            at = TopicPartition(topic.name, each.partition_index)
            held[at] = Held(
                Offset(each.start_offset),
                Offset(each.end_offset),
                Offset(each.high_watermark),
                tuple(EpochEntry(LeaderEpoch(e), Offset(start)) for e, start in each.epochs),
                each.offline_reason,
            )
            if each.leader_id == response.broker_id:
                followers = {
                    NodeId(one.broker_id): Follower(
                        Offset(one.end_offset) if one.end_offset >= 0 else None,
                        _known(one.fetched_ms_ago),
                        _known(one.caught_up_ms_ago),
                        _known(one.bytes_per_second),
                        one.throttled,
                    )
                    for one in each.followers
                }
                led[at] = Led(each.min_isr, followers)
    fenced = {NodeId(node_id): for_ms for node_id, for_ms in response.fenced_brokers}
    return Told(held, led, fenced)


def _known(number: int) -> int | None:
    return None if number < 0 else number


def _ask_any(cluster: Cluster, connection: Connection, metadata: Metadata, node_id: NodeId) -> Told:
    """What any Kafka broker can tell of its replicas."""
    partitions = [
        (TopicPartition(topic.name, partition.partition), partition.leader)
        for topic in metadata.topics
        for partition in topic.partitions
        if node_id in partition.replicas
    ]
    every = [at for at, _ in partitions]
    led = [at for at, leader in partitions if leader == node_id]

    def find(of: Iterable[TopicPartition], time: int, asker: int) -> dict[TopicPartition, Offset]:
        request = ListOffsetsRequest(replica_id=asker, topics=_wanted(of, time))
        answer = connection.call(
            ApiKey.LIST_OFFSETS, request, ListOffsetsResponse, timeout_s=cluster.timeout_s
        )
        return {
            TopicPartition(topic.name, each.partition_index): Offset(each.offset)
            for topic in answer.topics
            for each in topic.partitions
            if not each.error_code
        }

    starts = find(every, EARLIEST_TIMESTAMP, DEBUGGER)
    ends = find(every, LATEST_TIMESTAMP, DEBUGGER)
    marks = find(led, LATEST_TIMESTAMP, CONSUMER)
    held = {at: Held(starts[at], ends[at], marks.get(at), None) for at in ends if at in starts}
    return Told(held, {}, {})


def _wanted(partitions: Iterable[TopicPartition], time: int) -> tuple[ListOffsetsTopic, ...]:
    by_topic: defaultdict[str, list[ListOffsetsPartition]] = defaultdict(list)
    for topic, partition in partitions:
        by_topic[topic].append(ListOffsetsPartition(partition_index=partition, timestamp=time))
    return tuple(ListOffsetsTopic(name, tuple(of)) for name, of in by_topic.items())
