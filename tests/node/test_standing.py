"""DescribeReplicas: what a node tells of its replicas and of those that follow it."""

from __future__ import annotations

from typing import Any

from asking import LIST_OFFSETS, create, node_with, produce
from cotidal.api.registry import OURS
from cotidal.core.partition.follower import follow
from cotidal.core.partition.progress import NEVER, Progress
from cotidal.core.partition.replica import on_log_failed
from cotidal.messages.rpc.describe_replicas import DescribeReplicasRequest, EpochStart, FencedBroker
from cotidal.messages.rpc.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from cotidal.node import throttles
from cotidal.node.publishing import _refresh_brokers
from cotidal.values import BrokerEpoch, LeaderEpoch, Millis, NodeId, Offset, TopicPartition
from cotidal.wire.codec import decode_response, encode_response
from lone_node import LoneNode

(DESCRIBE_REPLICAS,) = OURS


def ask(node: LoneNode, *topics: str) -> Any:
    reply = node.ask(DESCRIBE_REPLICAS, 0, DescribeReplicasRequest(topics or None))
    return decode_response(
        DESCRIBE_REPLICAS, 0, b"".join(encode_response(DESCRIBE_REPLICAS, 0, reply))
    )


def test_a_leader_tells_its_log_and_itself() -> None:
    node = node_with()
    node.ask(*produce(b"a", b"b"))
    told = ask(node)
    assert told.broker_id == 1
    (topic,) = told.topics
    (partition,) = topic.partitions
    assert (topic.name, partition.partition_index) == ("orders", 0)
    assert (partition.start_offset, partition.high_watermark, partition.end_offset) == (0, 2, 2)
    assert partition.epochs == (EpochStart(0, 0),)
    assert (partition.leader_id, partition.leader_epoch, partition.min_isr) == (1, 0, 1)
    assert partition.followers == ()
    assert partition.offline_reason is None


def test_only_the_topics_asked_for_are_told() -> None:
    node = node_with()
    create(node, "other", 2)
    assert [topic.name for topic in ask(node, "other", "none").topics] == ["other"]
    assert len(ask(node, "other").topics[0].partitions) == 2
    assert {topic.name for topic in ask(node).topics} == {"orders", "other"}


def test_a_follower_is_told_with_the_times_of_its_fetches_counted_back() -> None:
    node = node_with()
    state = node.node._state
    hosted = state.hosted[TopicPartition("orders", 0)]
    assert hosted.replica.leadership is not None
    progress = Progress(caught_up=NEVER)
    hosted.replica.leadership.followers = {
        NodeId(2): progress,
        NodeId(3): Progress(caught_up=NEVER),
    }
    progress.on_fetched(
        offset=Offset(0),
        start_offset=Offset(0),
        leader_end=Offset(7),
        broker_epoch=BrokerEpoch(1),
        now=Millis(node.now),
    )
    throttles.on_sent(state, hosted, NodeId(2), 4_100)
    node.pass_time(1_200)
    seen, unseen = ask(node).topics[0].partitions[0].followers
    assert (seen.broker_id, seen.end_offset, seen.fetched_ms_ago) == (2, 0, 1_200)
    assert seen.caught_up_ms_ago == -1
    assert seen.bytes_per_second == 4_100 * 1_000 // 1_200
    assert (unseen.broker_id, unseen.end_offset, unseen.fetched_ms_ago) == (3, -1, -1)
    assert unseen.bytes_per_second == -1


def test_a_replica_whose_log_failed_says_why() -> None:
    node = node_with()
    replica = node.node._state.hosted[TopicPartition("orders", 0)].replica
    on_log_failed(replica, "no space left")
    (partition,) = ask(node).topics[0].partitions
    assert (partition.offline_reason, partition.leader_id) == ("no space left", -1)


def test_a_fenced_broker_is_told_with_the_time_since_that_is_known_here() -> None:
    node = node_with()
    state = node.node._state
    brokers = state.controller.committed.brokers
    brokers[NodeId(2)] = brokers[NodeId(1)]._replace(node_id=NodeId(2), fenced=True)
    _refresh_brokers(state)
    node.pass_time(3_000)
    _refresh_brokers(state)
    assert ask(node).fenced_brokers == (FencedBroker(2, 3_000),)
    brokers[NodeId(2)] = brokers[NodeId(2)]._replace(fenced=False)
    _refresh_brokers(state)
    assert ask(node).fenced_brokers == ()


def test_a_follower_tells_where_its_log_ends_to_a_debugger_only() -> None:
    node = node_with()
    node.ask(*produce(b"a", b"b"))
    replica = node.node._state.hosted[TopicPartition("orders", 0)].replica
    follow(replica, leader=NodeId(2), epoch=LeaderEpoch(9))

    def ends(asker: int) -> list[tuple[int, int]]:
        found = []
        for timestamp in (-2, -1):
            wanted = ListOffsetsPartition(0, -1, timestamp)
            request = ListOffsetsRequest(asker, topics=(ListOffsetsTopic("orders", (wanted,)),))
            told = node.ask(LIST_OFFSETS, 9, request).topics[0].partitions[0]
            found.append((told.error_code, told.offset))
        return found

    assert ends(-2) == [(0, 0), (0, 2)]
    assert ends(-1) == [(6, -1), (6, -1)]
