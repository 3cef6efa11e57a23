"""Clients that ask for too much, or never come back: bounded, and answered with Kafka's errors."""

from __future__ import annotations

from typing import Any

import pytest

from asking import create, fetch, read
from cotidal.errors import ErrorCode
from cotidal.messages.rpc import (
    find_coordinator,
    init_producer_id,
    join_group,
    list_groups,
    offset_commit,
    sync_group,
)
from cotidal.node import events as ev
from cotidal.wire.batch import read_batches
from lone_node import LoneNode
from transacting import Producer, node_with_transactions

COMMIT, FIND, JOIN, SYNC, LIST, INIT = 8, 10, 11, 14, 16, 22
SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
}
TEN_MB = 10 * 1024 * 1024
SESSION_MS = 10_000


@pytest.fixture
def node() -> LoneNode:
    started = LoneNode(SETTINGS).start()
    create(started, "orders", 2)
    request = find_coordinator.FindCoordinatorRequest(coordinator_keys=("g",))
    assert started.ask(FIND, 4, request).coordinators[0].error_code == 0
    return started


def joining(group: str, member_id: str = "", metadata: bytes = b"") -> Any:
    protocols = (join_group.JoinGroupRequestProtocol("range", metadata),)
    return join_group.JoinGroupRequest(
        group, SESSION_MS, SESSION_MS, member_id, None, "consumer", protocols
    )


def joined(node: LoneNode, group: str, metadata: bytes = b"", *, connection: int = 1) -> Any:
    """The answer to a new member; a group of one has it at once."""
    given = node.ask(JOIN, 9, joining(group, metadata=metadata), connection=connection)
    assert given.error_code == ErrorCode.MEMBER_ID_REQUIRED
    node.send((JOIN, 9, joining(group, given.member_id, metadata)), connection=connection)
    node.pass_time(0)
    return node.replies[-1].message


def committing(group: str, partitions: int = 1, metadata: str = "") -> Any:
    parts = tuple(
        offset_commit.OffsetCommitRequestPartition(0, 1, -1, metadata) for _ in range(partitions)
    )
    topic = offset_commit.OffsetCommitRequestTopic("orders", partitions=parts)
    return offset_commit.OffsetCommitRequest(group, topics=(topic,))


def listed(node: LoneNode) -> int:
    return len(node.ask(LIST, 5, list_groups.ListGroupsRequest()).groups)


def commit_errors(node: LoneNode, request: Any) -> set[int]:
    reply = node.ask(COMMIT, 8, request)
    return {each.error_code for topic in reply.topics for each in topic.partitions}


def test_a_commit_with_ten_megabytes_of_metadata_is_refused(node: LoneNode) -> None:
    before = sum(log.end for log in node.logs.values())
    errors = commit_errors(node, committing("g", metadata="x" * TEN_MB))
    assert errors == {ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert sum(log.end for log in node.logs.values()) == before, "nothing of it is written"


def test_a_commit_of_too_many_long_texts_is_refused_as_a_whole(node: LoneNode) -> None:
    errors = commit_errors(node, committing("g", partitions=2_560, metadata="x" * 4_096))
    assert errors == {ErrorCode.INVALID_COMMIT_OFFSET_SIZE}
    assert commit_errors(node, committing("g")) == {0}, "the group is none the worse"


def test_a_member_that_brings_ten_megabytes_has_no_assignment_and_hurts_nobody(
    node: LoneNode,
) -> None:
    answer = joined(node, "g", b"x" * TEN_MB)
    assert answer.error_code == 0
    assignment = (sync_group.SyncGroupRequestAssignment(answer.member_id, b"all"),)
    request = sync_group.SyncGroupRequest(
        "g", answer.generation_id, answer.member_id, assignments=assignment
    )
    refused = node.ask(SYNC, 5, request)
    assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    node.connect(2)
    assert joined(node, "h", connection=2).error_code == 0


def test_a_thousand_groups_live_and_end_with_their_sessions(node: LoneNode) -> None:
    for number in range(1_000):
        assert joined(node, f"group-{number}").error_code == 0
    assert listed(node) == 1_000
    node.pass_time(SESSION_MS + 2 * 600_000)  # a sweep of what is empty, every ten minutes
    assert listed(node) == 0


def test_a_client_that_joins_again_and_again_leaves_no_members_behind(node: LoneNode) -> None:
    """It never joins with the id that it is given, on connections that it drops."""
    for number in range(2, 302):
        node.connect(number)
        node.ask(JOIN, 9, joining("g"), connection=number)
        node.tell(ev.ConnectionLost(ev.ConnectionId(number)))
    node.pass_time(SESSION_MS * 2)
    assert joined(node, "g").error_code == 0
    assert len(node.replies[-1].message.members) == 1


def committed_batches(node: LoneNode) -> int:
    key, version, message = fetch(0, max_wait_ms=0)
    answer = node.ask(key, version, message._replace(isolation_level=1))
    return len(read_batches(read(answer)).headers)


def test_a_transaction_left_open_for_ever_is_ended_for_its_producer() -> None:
    """Its time is up after a minute; the next sweep aborts it, and readers go on."""
    node = node_with_transactions()
    producer = Producer(node)
    producer.add(0)
    assert producer.write() == 0
    assert committed_batches(node) == 0
    node.pass_time(60_000 - 1)
    assert committed_batches(node) == 0
    node.pass_time(30_000)
    assert committed_batches(node) == 2, "what it wrote, and the marker that says it is void"
    assert producer.end().error_code in (
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
    )


def test_nobody_may_ask_for_a_transaction_without_end() -> None:
    node = node_with_transactions()
    request = init_producer_id.InitProducerIdRequest("greedy", 2**31 - 1)
    assert node.ask(INIT, 4, request).error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
