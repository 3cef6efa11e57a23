"""Elections and reassignments: what a cluster is asked for, and what comes of it. KIP-455, KIP-460.

Every partition is decided by itself: an answer says what became of each. A reassignment goes on
when it is answered; ``ongoing`` tells which do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from cotidal.client.admin import CHANGE_TIMEOUT_MS
from cotidal.client.cluster import Cluster
from cotidal.client.failures import known_code, raise_for
from cotidal.errors import MESSAGES, ErrorCode
from cotidal.messages.rpc.apis import ApiKey
from cotidal.values import NodeId, TopicPartition, by_topic


class Election(IntEnum):
    PREFERRED = 0
    UNCLEAN = 1


class Outcome(NamedTuple):
    """What became of one partition."""

    at: TopicPartition
    error: ErrorCode
    reason: str
    """The cluster's own sentence; empty where it was done."""


class Ongoing(NamedTuple):
    at: TopicPartition
    replicas: tuple[NodeId, ...]
    """The target, then those that will go."""
    adding: tuple[NodeId, ...]
    removing: tuple[NodeId, ...]


def elect_leaders(
    cluster: Cluster, election: Election, partitions: Sequence[TopicPartition] | None
) -> list[Outcome]:
    """Of these partitions; None: of all, and nothing is told of those that need no election."""
    from cotidal.messages.rpc.elect_leaders import (
        ElectLeadersRequest,
        ElectLeadersResponse,
        TopicPartitions,
    )

    wanted = None
    if partitions is not None:
        wanted = tuple(TopicPartitions(name, of) for name, of in by_topic(partitions).items())
    request = ElectLeadersRequest(election, wanted, CHANGE_TIMEOUT_MS)
    response = cluster.tell(ApiKey.ELECT_LEADERS, request, ElectLeadersResponse)
    raise_for(response.error_code, "the election")
    return [
        _outcome(TopicPartition(topic.topic, each[0]), each[1], each[2])
        for topic in response.replica_election_results
        for each in topic.partition_result
    ]


def reassign(
    cluster: Cluster, targets: Mapping[TopicPartition, tuple[NodeId, ...] | None]
) -> list[Outcome]:
    """Move each partition to its target; None cancels."""
    from cotidal.messages.rpc.alter_partition_reassignments import (
        AlterPartitionReassignmentsRequest,
        AlterPartitionReassignmentsResponse,
        ReassignablePartition,
        ReassignableTopic,
    )

    topics = tuple(
        ReassignableTopic(
            name, tuple(ReassignablePartition(p, targets[TopicPartition(name, p)]) for p in of)
        )
        for name, of in by_topic(targets).items()
    )
    request = AlterPartitionReassignmentsRequest(timeout_ms=CHANGE_TIMEOUT_MS, topics=topics)
    key = ApiKey.ALTER_PARTITION_REASSIGNMENTS
    response = cluster.tell(key, request, AlterPartitionReassignmentsResponse)
    raise_for(response.error_code, "the reassignment", response.error_message)
    return [
        _outcome(TopicPartition(topic.name, each[0]), each[1], each[2])
        for topic in response.responses
        for each in topic.partitions
    ]


def ongoing(cluster: Cluster) -> list[Ongoing]:
    """The reassignments that are under way."""
    from cotidal.messages.rpc.list_partition_reassignments import (
        ListPartitionReassignmentsRequest,
        ListPartitionReassignmentsResponse,
    )

    request = ListPartitionReassignmentsRequest(CHANGE_TIMEOUT_MS, None)
    key = ApiKey.LIST_PARTITION_REASSIGNMENTS
    response = cluster.ask(key, request, ListPartitionReassignmentsResponse)
    raise_for(response.error_code, "the reassignments", response.error_message)
    return sorted(
        Ongoing(
            TopicPartition(topic.name, each.partition_index),
            tuple(map(NodeId, each.replicas)),
            tuple(map(NodeId, each.adding_replicas)),
            tuple(map(NodeId, each.removing_replicas)),
        )
        for topic in response.topics
        for each in topic.partitions
    )


def _outcome(at: TopicPartition, code: int, message: str | None) -> Outcome:
    error = known_code(code)
    return Outcome(at, error, (message or MESSAGES[error]) if code else "")
