from __future__ import annotations

import pytest

from cotidal.api import elect_leaders
from cotidal.api.elect_leaders import decide
from cotidal.core.cluster.decide.reassignment import decide_reassign
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.elect_leaders import ElectLeadersRequest, TopicPartitions

PREFERRED, UNCLEAN = 0, 1


def ask(*topics, kind=PREFERRED):
    return ElectLeadersRequest(kind, tuple(TopicPartitions(*topic) for topic in topics))


def results(reply):
    return {
        (topic.topic, each.partition_id): each.error_code
        for topic in reply.replica_election_results
        for each in topic.partition_result
    }


def prefer_another(cluster):
    """orders-0 is led by 1 and would now rather be led by 2."""
    cluster.commit_records(decide_reassign(cluster.controller, "orders", 0, (2, 1, 3)))


def test_each_partition_is_elected_or_refused_by_itself(cluster, asked):
    prefer_another(cluster)
    request = ask(("orders", (0, 1, 9, 0)), ("lonely", (0,)), ("none", (0,)))
    reply = cluster.commit(decide(request, asked(2), cluster.controller))
    assert cluster.image.partition("orders", 0).leader == 2
    codes = [
        each.error_code
        for topic in reply.replica_election_results
        for each in topic.partition_result
    ]
    assert codes == [
        ErrorCode.NONE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_all_partitions_are_meant_where_none_is_named(cluster, asked):
    prefer_another(cluster)
    request = ElectLeadersRequest(PREFERRED, None)
    reply = cluster.commit(decide(request, asked(2), cluster.controller))
    assert results(reply) == {
        ("orders", 0): ErrorCode.NONE,
        ("lonely", 0): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    }


def test_unclean_election_needs_somebody(cluster, asked):
    request = ask(("lonely", (0,)), ("orders", (0,)), kind=UNCLEAN)
    reply = decide(request, asked(2), cluster.controller).reply
    assert results(reply) == {
        ("lonely", 0): ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ("orders", 0): ErrorCode.ELECTION_NOT_NEEDED,
    }


def test_unknown_type_is_refused_as_a_whole(cluster, asked):
    reply = decide(ask(("orders", (0,)), kind=7), asked(2), cluster.controller).reply
    assert reply == (0, ErrorCode.INVALID_REQUEST, ())


@pytest.mark.plain
def test_one_request_elects_a_bounded_number(cluster, asked, monkeypatch):
    monkeypatch.setattr(elect_leaders, "PARTITIONS_PER_DECISION_MAX", 1)
    prefer_another(cluster)
    cluster.commit_records(decide_reassign(cluster.controller, "orders", 1, (1, 2, 3)))
    reply = decide(ask(("orders", (0, 1))), asked(2), cluster.controller).reply
    assert results(reply) == {
        ("orders", 0): ErrorCode.NONE,
        ("orders", 1): ErrorCode.POLICY_VIOLATION,
    }
