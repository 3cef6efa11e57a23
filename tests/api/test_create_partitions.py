from __future__ import annotations

from cotidal.api.create_partitions import decide
from cotidal.errors import ErrorCode
from cotidal.limits import PARTITIONS_PER_DECISION_MAX
from cotidal.messages.rpc.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)


def ask(*topics, **fields):
    return CreatePartitionsRequest(
        topics=tuple(CreatePartitionsTopic(*topic) for topic in topics), **fields
    )


def test_topic_gets_more_partitions(cluster, asked):
    reply = cluster.commit(decide(ask(("orders", 5, None)), asked(3), cluster.controller))
    assert reply.results[0].error_code == ErrorCode.NONE
    assert len(cluster.image.topics["orders"].partitions) == 5


def test_brokers_may_be_chosen_by_hand(cluster, asked):
    by_hand = (CreatePartitionsAssignment((3, 2, 1)),)
    cluster.commit(decide(ask(("orders", 4, by_hand)), asked(3), cluster.controller))
    assert cluster.image.partition("orders", 3).replicas == (3, 2, 1)


def test_each_topic_is_changed_or_refused_by_itself(cluster, asked):
    request = ask(("orders", 4, None), ("none", 4, None), ("lonely", 2, None), ("lonely", 3, None))
    reply = cluster.commit(decide(request, asked(3), cluster.controller))
    assert [(each.name, each.error_code) for each in reply.results] == [
        ("orders", ErrorCode.NONE),
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("lonely", ErrorCode.INVALID_REQUEST),
    ]


def test_no_assignment_where_some_are_needed_is_refused(cluster, asked):
    decision = decide(ask(("orders", 4, ())), asked(3), cluster.controller)
    assert decision.reply.results[0].error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_validate_only_writes_nothing(cluster, asked):
    request = ask(("orders", 5, None), ("none", 2, None), validate_only=True)
    decision = decide(request, asked(3), cluster.controller)
    assert decision.records == ()
    codes = [each.error_code for each in decision.reply.results]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_one_request_creates_a_bounded_number_of_partitions(cluster, asked):
    cluster.create("other", (1,))
    request = ask(("orders", PARTITIONS_PER_DECISION_MAX, None), ("other", 100, None))
    reply = decide(request, asked(3), cluster.controller).reply
    assert [each.error_code for each in reply.results] == [0, ErrorCode.POLICY_VIOLATION]
