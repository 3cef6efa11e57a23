"""What a follower's fetch does at its leader, and what it is answered."""

from __future__ import annotations

from typing import Any

from asking import FOLLOWER, fetch, leader_and_follower, produce
from cotidal.node.events import Ticked
from cotidal.values import WallMillis
from lone_node import LoneNode


def ask(node: LoneNode, offset: int, *, last_epoch: int = -1) -> Any:
    key, version, request = fetch(offset, max_wait_ms=0)
    (topic,) = request.topics
    partition = topic.partitions[0]._replace(last_fetched_epoch=last_epoch, log_start_offset=0)
    request = request._replace(
        replica_id=FOLLOWER, topics=(topic._replace(partitions=(partition,)),)
    )
    return node.ask(key, version, request).responses[0].partitions[0]


def test_an_answer_carries_the_high_watermark_from_before_its_own_fetch() -> None:
    node, replica, _ = leader_and_follower()
    first = ask(node, 0)
    assert first.records.data
    assert (first.high_watermark, replica.high_watermark) == (0, 0)
    second = ask(node, 1)
    assert (second.high_watermark, replica.high_watermark) == (0, 1)
    assert ask(node, 1).high_watermark == 1


def test_a_follower_reads_beyond_the_high_watermark() -> None:
    node, replica, _ = leader_and_follower()
    assert replica.high_watermark == 0
    assert ask(node, 0).records.data


def test_a_diverging_fetch_moves_nothing_of_what_the_leader_knows() -> None:
    node, replica, leadership = leader_and_follower()
    told = ask(node, 5, last_epoch=0)
    assert told.diverging_epoch == (0, 1)
    assert not told.records.data
    assert leadership.followers[FOLLOWER].end_offset == 0
    assert replica.high_watermark == 0


def test_acks_one_does_not_wait_for_a_follower() -> None:
    node, replica, _ = leader_and_follower()
    before = len(node.replies)
    node.send(produce(b"b", acks=1), produce(b"c", acks=-1))
    (told,) = node.replies[before:]
    assert told.message.responses[0].partition_responses[0][:3] == (0, 0, 1)
    assert replica.high_watermark == 0


def test_a_fetch_completes_what_waited_for_it() -> None:
    node, _, _ = leader_and_follower()
    before = len(node.replies)
    node.send(produce(b"b"), connection=1)
    assert len(node.replies) == before
    node.connect(2)
    for offset in (0, 2):
        node.send(fetch_of_follower(offset, max_wait_ms=0), connection=2)
    told = [reply.message for reply in node.replies if reply.connection == 1][-1]
    assert told.responses[0].partition_responses[0][:3] == (0, 0, 1)


def fetch_of_follower(offset: int, **asked: int) -> tuple[int, int, Any]:
    key, version, request = fetch(offset, **asked)
    return key, version, request._replace(replica_id=FOLLOWER)


def poll(node: LoneNode, offset: int, *, min_bytes: int = 1) -> Any:
    """What a follower is told when its time is up."""
    before = len(node.replies)
    node.send(fetch_of_follower(offset, max_wait_ms=500, min_bytes=min_bytes))
    assert len(node.replies) == before
    node.pass_time(500)
    (reply,) = node.replies[before:]
    return reply.message.responses[0].partitions[0]


def test_a_poll_that_nothing_woke_tells_where_the_high_watermark_is_by_then() -> None:
    node, replica, _ = leader_and_follower()
    told = poll(node, 1)
    assert not told.records.data
    assert (told.high_watermark, replica.high_watermark) == (1, 1)


def test_a_poll_that_is_half_over_ends_when_the_node_is_awake_and_a_consumer_s_does_not() -> None:
    node, _, _ = leader_and_follower()
    node.ask(*fetch_of_follower(1, max_wait_ms=0))  # what it has is committed
    key, version, request = fetch(1, max_wait_ms=500)
    node.connect(2)
    before = len(node.replies)
    node.send(fetch_of_follower(1, max_wait_ms=500))
    node.send((key, version, request), connection=2)
    for passed, told in ((249, []), (1, [1])):
        node.now += passed
        node.tell(Ticked(WallMillis(1)))
        assert [reply.connection for reply in node.replies[before:]] == told


def test_a_poll_that_waits_for_more_ends_with_what_there_is() -> None:
    node, _, _ = leader_and_follower()
    assert poll(node, 0, min_bytes=1 << 20).records.data


def test_a_poll_in_a_session_tells_nothing_twice() -> None:
    node, _, _ = leader_and_follower()
    first = fetch(1, max_wait_ms=0, session=(0, 0))
    session = node.ask(*first[:2], first[2]._replace(replica_id=FOLLOWER)).session_id
    told = []
    for epoch in (1, 2):
        key, version, request = fetch(1, max_wait_ms=500, session=(session, epoch), named=False)
        node.send((key, version, request._replace(replica_id=FOLLOWER)))
        node.pass_time(500)
        told.append(node.replies[-1].message.responses)
    assert [[each.high_watermark for each in topic.partitions] for topic in told[0]] == [[1]]
    assert told[1] == ()
