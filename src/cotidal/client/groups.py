"""Consumer groups from outside: list, describe, committed offsets, reset, delete.

Each group is asked of its coordinator, which is looked for first; while it moves or loads its log,
the question is asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeVar

from cotidal.client.backoff import Backoff
from cotidal.client.cluster import Cluster
from cotidal.client.connection import Connection
from cotidal.client.failures import Refused, TimedOut, Unreachable, known_code
from cotidal.errors import ErrorCode, MalformedFrame
from cotidal.messages.records.group import ConsumerProtocolAssignment
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from cotidal.messages.rpc.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from cotidal.messages.rpc.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from cotidal.messages.rpc.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from cotidal.messages.rpc.list_groups import ListGroupsRequest, ListGroupsResponse
from cotidal.messages.rpc.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from cotidal.messages.rpc.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from cotidal.values import ZERO_UUID, NodeId, Offset, TopicPartition
from cotidal.wire.codec import decode_record

DEAD: Final = "Dead"
GROUP: Final = 0
TRANSACTION: Final = 1
"""Kinds of coordinators."""
NOT_A_MEMBER: Final = -1
ASSIGNMENT_VERSION_MAX: Final = 3
_ELSEWHERE: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)

Answer = TypeVar("Answer")


class Group(NamedTuple):
    name: str
    state: str
    protocol_type: str
    coordinator: NodeId
    kind: str = "classic"
    """Or "consumer": assigned by its coordinator (KIP-848)."""


class Member(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...] | None = None
    """What it is to have; None: what it has."""
    epoch: int | None = None
    """Of a member of a consumer group."""


class DescribedGroup(NamedTuple):
    name: str
    state: str
    protocol: str
    """The assignor."""
    members: tuple[Member, ...]
    kind: str = "classic"
    epoch: int | None = None
    target_epoch: int | None = None
    """Of a consumer group: less than its epoch while a target is to be made."""


def at_coordinator(
    cluster: Cluster,
    group: str,
    ask: Callable[[Connection], tuple[Answer, int]],
    *,
    kind: int = GROUP,
    passing: frozenset[ErrorCode] = frozenset(),
) -> Answer:
    """``ask`` gives an answer and its error code; again while the coordinator is elsewhere, and
    after a code that ``passing`` names."""
    subject = f"group '{group}'" if kind == GROUP else f"transactional id '{group}'"
    backoff = Backoff(timeout_s=cluster.timeout_s)
    while True:
        try:
            answer, code = ask(cluster.connection(find_coordinator(cluster, group, kind=kind)))
            error = known_code(code)
            if error is ErrorCode.NONE:
                return answer
            failure: Refused | Unreachable | TimedOut = Refused(subject, error)
            if error not in _ELSEWHERE and error not in passing:
                raise failure
        except (Unreachable, TimedOut) as lost:
            failure = lost
        if not backoff.wait():
            raise failure


def find_coordinator(cluster: Cluster, group: str, *, kind: int = GROUP) -> NodeId:
    cluster.metadata([])  # where brokers are
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=(group,))
    backoff = Backoff(timeout_s=cluster.timeout_s)
    while True:
        (found,) = cluster.ask(
            ApiKey.FIND_COORDINATOR, request, FindCoordinatorResponse
        ).coordinators
        error = known_code(found.error_code)
        if error is ErrorCode.NONE:
            return NodeId(found.node_id)
        if error not in _ELSEWHERE or not backoff.wait():
            raise Refused(f"the coordinator of '{group}'", error, found.error_message)


def list_groups(cluster: Cluster) -> list[Group]:
    """Of all brokers, by name."""
    found: dict[str, Group] = {}
    for broker in cluster.metadata([]).brokers:
        response = cluster.connection(broker.node_id).call(
            ApiKey.LIST_GROUPS, ListGroupsRequest(), ListGroupsResponse, timeout_s=cluster.timeout_s
        )
        if response.error_code:
            raise Refused(f"broker {broker.node_id}", known_code(response.error_code))
        for each in response.groups:
            found[each.group_id] = Group(
                each.group_id,
                each.group_state,
                each.protocol_type,
                broker.node_id,
                each.group_type or "classic",
            )
    return [found[name] for name in sorted(found)]


def describe_group(cluster: Cluster, group: str) -> DescribedGroup:
    """Of either kind. Refused with GROUP_ID_NOT_FOUND if there is none."""
    try:
        return describe_consumers(cluster, group)
    except Refused as refused:
        if refused.error is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
    return describe_classic(cluster, group)


def describe_consumers(cluster: Cluster, group: str) -> DescribedGroup:
    """A group of the consumer protocol."""

    def ask(connection: Connection) -> tuple[DescribedGroup, int]:
        request = ConsumerGroupDescribeRequest((group,))
        (told,) = connection.call(
            ApiKey.CONSUMER_GROUP_DESCRIBE,
            request,
            ConsumerGroupDescribeResponse,
            timeout_s=cluster.timeout_s,
        ).groups
        members = tuple(
            Member(
                each.member_id,
                each.instance_id,
                each.client_id,
                each.client_host.lstrip("/"),
                _named(each.assignment),
                _named(each.target_assignment),
                each.member_epoch,
            )
            for each in told.members
        )
        described = DescribedGroup(
            group,
            told.group_state,
            told.assignor_name,
            members,
            "consumer",
            told.group_epoch,
            told.assignment_epoch,
        )
        return described, told.error_code

    return at_coordinator(cluster, group, ask)


def _named(assignment: Assignment) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )


def describe_classic(cluster: Cluster, group: str) -> DescribedGroup:
    def ask(connection: Connection) -> tuple[DescribedGroup, int]:
        request = DescribeGroupsRequest((group,))
        (told,) = connection.call(
            ApiKey.DESCRIBE_GROUPS, request, DescribeGroupsResponse, timeout_s=cluster.timeout_s
        ).groups
        members = tuple(
            Member(
                each.member_id,
                each.group_instance_id,
                each.client_id,
                each.client_host.lstrip("/"),
                read_assignment(each.member_assignment),
            )
            for each in told.members
        )
        described = DescribedGroup(group, told.group_state, told.protocol_data, members)
        missing = told.group_state == DEAD and not told.error_code
        return described, ErrorCode.GROUP_ID_NOT_FOUND if missing else told.error_code

    return at_coordinator(cluster, group, ask)


def read_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """What a consumer is assigned; nothing where that cannot be read."""
    if len(data) < 2:
        return ()
    version = min(int.from_bytes(data[:2], "big"), ASSIGNMENT_VERSION_MAX)
    try:
        told = decode_record(ConsumerProtocolAssignment, version, data, 2)
    except MalformedFrame:
        return ()
    return tuple(
        TopicPartition(topic.topic, partition)
        for topic in told.assigned_partitions
        for partition in topic.partitions
    )


def committed_offsets(cluster: Cluster, group: str) -> dict[TopicPartition, Offset]:
    names = {topic.topic_id: topic.name for topic in cluster.metadata().topics}

    def ask(connection: Connection) -> tuple[dict[TopicPartition, Offset], int]:
        request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group, topics=None),))
        (told,) = connection.call(
            ApiKey.OFFSET_FETCH, request, OffsetFetchResponse, timeout_s=cluster.timeout_s
        ).groups
        found = {
            TopicPartition(
                topic.name or names.get(topic.topic_id, ""), each.partition_index
            ): Offset(each.committed_offset)
            for topic in told.topics
            for each in topic.partitions
        }
        return found, told.error_code

    return at_coordinator(cluster, group, ask)


def commit_offsets(
    cluster: Cluster,
    group: str,
    offsets: Mapping[TopicPartition, Offset],
    *,
    generation: int = NOT_A_MEMBER,
    member_id: str = "",
) -> None:
    """As a member, or (by default) as somebody from outside: then the group must be empty."""
    ids = {topic.name: topic.topic_id for topic in cluster.metadata().topics}
    by_topic: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, partition), offset in offsets.items():
        one = OffsetCommitRequestPartition(partition, offset)
        by_topic.setdefault(topic, []).append(one)
    request = OffsetCommitRequest(
        group,
        generation,
        member_id,
        topics=tuple(
            OffsetCommitRequestTopic(name, ids.get(name, ZERO_UUID), tuple(own))
            for name, own in by_topic.items()
        ),
    )

    def ask(connection: Connection) -> tuple[None, int]:
        response = connection.call(
            ApiKey.OFFSET_COMMIT, request, OffsetCommitResponse, timeout_s=cluster.timeout_s
        )
        codes = (each.error_code for topic in response.topics for each in topic.partitions)
        return None, next((code for code in codes if code), ErrorCode.NONE)

    at_coordinator(cluster, group, ask)


def delete_group(cluster: Cluster, group: str) -> None:
    def ask(connection: Connection) -> tuple[None, int]:
        request = DeleteGroupsRequest((group,))
        (told,) = connection.call(
            ApiKey.DELETE_GROUPS, request, DeleteGroupsResponse, timeout_s=cluster.timeout_s
        ).results
        return None, told.error_code

    at_coordinator(cluster, group, ask)
