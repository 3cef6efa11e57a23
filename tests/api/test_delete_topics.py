from __future__ import annotations

import pytest

from cotidal.api.delete_topics import decide
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.delete_topics import DeleteTopicsRequest, DeleteTopicState
from cotidal.values import Uuid


def by_state(*states):
    return DeleteTopicsRequest(topics=tuple(DeleteTopicState(*state) for state in states))


def test_topics_go_by_name_in_older_versions(cluster, asked):
    request = DeleteTopicsRequest(topic_names=("orders", "none"))
    reply = cluster.commit(decide(request, asked(5), cluster.controller))
    assert [(each.name, each.error_code) for each in reply.responses] == [
        ("orders", ErrorCode.NONE),
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert list(cluster.image.topics) == ["lonely"]


def test_topics_go_by_name_or_by_id_from_version_6_on(cluster, asked):
    orders, lonely = (cluster.image.topics[name].topic_id for name in ("orders", "lonely"))
    request = by_state((None, orders), ("lonely",), (None, Uuid(b"?" * 16)))
    reply = cluster.commit(decide(request, asked(6), cluster.controller))
    first, second, third = reply.responses
    assert (first.name, first.topic_id) == ("orders", orders)
    assert (second.name, second.topic_id) == ("lonely", lonely)
    assert (third.name, third.error_code) == (None, ErrorCode.UNKNOWN_TOPIC_ID)
    assert cluster.image.topics == {}


def test_topic_that_is_not_named_in_one_way_is_refused(cluster, asked):
    orders = cluster.image.topics["orders"].topic_id
    request = by_state(("orders", orders), (None,), ("lonely",), ("lonely",))
    decision = decide(request, asked(6), cluster.controller)
    assert decision.records == ()
    assert {each.error_code for each in decision.reply.responses} == {ErrorCode.INVALID_REQUEST}
    assert len(decision.reply.responses) == 4


def test_same_topic_by_name_and_by_id_is_refused(cluster, asked):
    orders = cluster.image.topics["orders"].topic_id
    decision = decide(by_state(("orders",), (None, orders)), asked(6), cluster.controller)
    assert decision.records == ()


@pytest.mark.parametrize(
    ("version", "error"),
    [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)],
)
def test_deletion_may_be_forbidden(make_cluster, asked, version, error):
    cluster = make_cluster({"delete.topic.enable": "false"})
    request = DeleteTopicsRequest(topic_names=("orders", "none"))
    decision = decide(request, asked(version), cluster.controller)
    assert decision.records == ()
    assert [each.error_code for each in decision.reply.responses] == [error, error]
