from __future__ import annotations

import pytest

from cotidal.api.describe_topic_partitions import answer
from cotidal.errors import ErrorCode
from cotidal.messages.records.metadata import PartitionChangeRecord
from cotidal.messages.rpc.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    TopicRequest,
)


def ask(*names, limit=2000, cursor=None):
    return DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name) for name in names),
        response_partition_limit=limit,
        cursor=None if cursor is None else DescribeTopicPartitionsRequestCursor(*cursor),
    )


def told(response):
    return [
        (topic.name, partition.partition_index)
        for topic in response.topics
        for partition in topic.partitions
    ]


EVERYTHING = [("lonely", 0), ("orders", 0), ("orders", 1), ("orders", 2)]


def test_topics_come_in_the_order_of_their_names(cluster, asked):
    response = answer(ask("orders", "lonely", "orders"), asked(0), cluster.view)
    assert told(response) == EVERYTHING
    assert response.next_cursor is None
    assert told(answer(ask(), asked(0), cluster.view)) == EVERYTHING


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5])
def test_cursor_leads_through_everything_once(cluster, asked, limit):
    seen, cursor = [], None
    for _ in range(10):
        response = answer(ask(limit=limit, cursor=cursor), asked(0), cluster.view)
        page = told(response)
        assert len(page) <= limit
        seen += page
        if response.next_cursor is None:
            break
        cursor = tuple(response.next_cursor)
    assert seen == EVERYTHING


def test_broker_bounds_what_is_asked_for(make_cluster, asked):
    cluster = make_cluster({"max.request.partition.size.limit": "2"})
    response = answer(ask(), asked(0), cluster.view)
    assert told(response) == EVERYTHING[:2]
    assert told(answer(ask(limit=-5), asked(0), cluster.view)) == EVERYTHING[:1]


def test_eligible_and_last_known_leaders_are_told(cluster, asked):
    topic_id = cluster.image.topics["orders"].topic_id
    cluster.image.replay(
        PartitionChangeRecord(0, topic_id, isr=(1,), eligible_leader_replicas=(2,))
    )
    (topic,) = answer(ask("orders"), asked(0), cluster.view).topics
    first = topic.partitions[0]
    assert (first.isr_nodes, first.eligible_leader_replicas, first.last_known_elr) == (
        (1,),
        (2,),
        (),
    )


def test_unknown_topic_is_told_among_the_others(cluster, asked):
    response = answer(ask("none", "a b"), asked(0), cluster.view)
    assert [(topic.name, topic.error_code) for topic in response.topics] == [
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


@pytest.mark.parametrize("cursor", [("orders", -1), ("lonely", 0)])
def test_cursor_that_makes_no_sense_is_told_on_each_topic(cluster, asked, cursor):
    response = answer(ask("orders", cursor=cursor), asked(0), cluster.view)
    assert [topic.error_code for topic in response.topics] == [ErrorCode.INVALID_REQUEST]
