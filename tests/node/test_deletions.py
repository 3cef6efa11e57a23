"""DeleteRecords: answered when all replicas have let go."""

from __future__ import annotations

from typing import Any

import pytest

from asking import DELETE_RECORDS, FOLLOWER, fetch, leader_and_follower
from cotidal.core.partition.leader import low_watermark
from cotidal.core.partition.replica import Leadership, Replica
from cotidal.errors import ErrorCode
from cotidal.limits import FETCH_WAIT_MAX_MS
from cotidal.messages.rpc.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from cotidal.node.partition_effects import move
from cotidal.values import BrokerEpoch, Offset, TopicPartition
from lone_node import LoneNode

TIMEOUT_MS = 4_321
"""At which nothing else is due."""
Led = tuple[LoneNode, Replica, Leadership]


@pytest.fixture
def led() -> Led:
    """Both have the one record, and it is committed."""
    node, replica, leadership = leader_and_follower()
    leadership.active = {**leadership.active, FOLLOWER: BrokerEpoch(9)}
    node.connect(2)
    poll(node, start=0)
    node.pass_time(500)
    assert replica.high_watermark == 1
    return node, replica, leadership


def poll(node: LoneNode, *, start: int, wait_ms: int = 500) -> None:
    """The follower has the record, and begins at ``start``."""
    key, version, request = fetch(1, max_wait_ms=wait_ms)
    (topic,) = request.topics
    partition = topic.partitions[0]._replace(log_start_offset=start)
    topics = (topic._replace(partitions=(partition,)),)
    node.send((key, version, request._replace(replica_id=FOLLOWER, topics=topics)), connection=2)


def delete(node: LoneNode, offset: int = 1, *, timeout_ms: int = TIMEOUT_MS) -> None:
    topic = DeleteRecordsTopic("orders", (DeleteRecordsPartition(0, offset),))
    node.send((DELETE_RECORDS, 2, DeleteRecordsRequest((topic,), timeout_ms)))


def told(node: LoneNode, connection: int = 1) -> list[Any]:
    return [each.message for each in node.replies if each.connection == connection]


def answers(node: LoneNode) -> list[tuple[int, int]]:
    return [
        (each.topics[0].partitions[0].low_watermark, each.topics[0].partitions[0].error_code)
        for each in told(node)
        if isinstance(each, DeleteRecordsResponse)
    ]


def test_it_waits_for_a_follower_and_hurries_its_poll(led: Led) -> None:
    node, replica, _ = led
    poll(node, start=0)
    polls = len(told(node, connection=2))
    delete(node)
    assert (replica.start_offset, low_watermark(replica)) == (1, 0)
    assert answers(node) == []
    (heard,) = told(node, connection=2)[polls:]
    assert heard.responses[0].partitions[0].log_start_offset == 1
    poll(node, start=0)  # its disk has not done it yet
    assert answers(node) == []
    node.pass_time(500)
    poll(node, start=1)
    assert answers(node) == [(1, 0)]
    delete(node)
    assert answers(node) == [(1, 0), (1, 0)], "all begin there already"


def test_who_asks_again_hurries_the_follower_again(led: Led) -> None:
    node, _, _ = led
    delete(node)
    node.pass_time(TIMEOUT_MS)
    poll(node, start=0)
    polls = len(told(node, connection=2))
    delete(node)
    assert len(told(node, connection=2)) == polls + 1
    poll(node, start=1)
    assert answers(node) == [(-1, ErrorCode.REQUEST_TIMED_OUT), (1, 0)]


def test_a_follower_whose_broker_is_gone_is_not_waited_for(led: Led) -> None:
    node, _, leadership = led
    delete(node)
    assert answers(node) == []
    leadership.active = {key: each for key, each in leadership.active.items() if key != FOLLOWER}
    hosted = node.node._state.hosted[TopicPartition("orders", 0)]
    move(node.node._state, hosted, lambda replica: ())
    node.pass_time(TIMEOUT_MS - 1)
    assert answers(node) == [(1, 0)]


def test_what_takes_too_long_is_told_so_and_goes_on(led: Led) -> None:
    node, replica, _ = led
    delete(node)
    node.pass_time(TIMEOUT_MS - 1)
    assert answers(node) == []
    node.pass_time(1)
    assert answers(node) == [(-1, ErrorCode.REQUEST_TIMED_OUT)]
    assert replica.start_offset == 1
    assert not node.node._state.parked_deletes
    assert not node.node._state.hosted[TopicPartition("orders", 0)].deletions
    delete(node, offset=-1)
    poll(node, start=1)
    assert answers(node)[1:] == [(1, 0)]
    assert low_watermark(replica) == Offset(1)


def test_nobody_waits_for_ever_whatever_he_asked_for(led: Led) -> None:
    node, _, _ = led
    delete(node, timeout_ms=(1 << 31) - 1)
    node.pass_time(FETCH_WAIT_MAX_MS)
    assert answers(node) == [(-1, ErrorCode.REQUEST_TIMED_OUT)]
