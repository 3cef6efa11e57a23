"""Also of ListPartitionReassignments: what one begins, the other lists."""

from __future__ import annotations

import pytest

from cotidal.api import alter_partition_reassignments, list_partition_reassignments
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from cotidal.messages.rpc.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)


def move(cluster, asked, *partitions, topic="orders", **fields):
    named = tuple(ReassignablePartition(*each) for each in partitions)
    request = AlterPartitionReassignmentsRequest(
        topics=(ReassignableTopic(topic, named),), **fields
    )
    decision = alter_partition_reassignments.decide(request, asked(1), cluster.controller)
    reply = cluster.commit(decision)
    return [each.error_code for each in reply.responses[0].partitions]


def listed(cluster, asked, topics=None):
    request = ListPartitionReassignmentsRequest(topics=topics)
    decision = list_partition_reassignments.decide(request, asked(0), cluster.controller)
    assert decision.records == ()
    return [(topic.name, *each) for topic in decision.reply.topics for each in topic.partitions]


def test_move_is_begun_listed_and_cancelled(cluster, asked):
    assert move(cluster, asked, (0, (2, 4)), (2, (4,))) == [ErrorCode.NONE] * 2
    first = ("orders", 0, (2, 4, 1, 3), (4,), (1, 3))
    second = ("orders", 2, (4, 3, 1, 2), (4,), (3, 1, 2))
    assert listed(cluster, asked) == [first, second]
    named = (ListPartitionReassignmentsTopics("orders", (1, 2)),)
    assert listed(cluster, asked, named) == [second]
    assert move(cluster, asked, (0, None)) == [ErrorCode.NONE]
    assert listed(cluster, asked) == [second]


def test_each_partition_is_moved_or_refused_by_itself(cluster, asked):
    assert move(cluster, asked, (0, (1, 2)), (0, (1,)), (1, None), (9, (1,)), (2, (1, 1))) == [
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    ]
    assert cluster.image.partition("orders", 0).replicas == (1, 2)


def test_unknown_topic_is_told(cluster, asked):
    codes = move(cluster, asked, (0, (1,)), topic="none")
    assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_request_may_forbid_to_change_the_number_of_replicas(cluster, asked):
    codes = move(cluster, asked, (0, (1, 2)), (1, (4, 1, 2)), allow_replication_factor_change=False)
    assert codes == [ErrorCode.INVALID_REPLICATION_FACTOR, ErrorCode.NONE]


@pytest.mark.plain
def test_one_request_moves_a_bounded_number(cluster, asked, monkeypatch):
    monkeypatch.setattr(alter_partition_reassignments, "PARTITIONS_PER_DECISION_MAX", 1)
    codes = move(cluster, asked, (0, (1, 2)), (1, (1, 2)))
    assert codes == [ErrorCode.NONE, ErrorCode.POLICY_VIOLATION]
