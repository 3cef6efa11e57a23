"""Throttled replication (KIP-73): who is held back, for how long, and who never is."""

from __future__ import annotations

from typing import Any

import pytest

from asking import fetch, node_with, produce
from cotidal.core.partition.follower import follow
from cotidal.core.partition.progress import NEVER, Progress
from cotidal.core.partition.replica import Leadership
from cotidal.messages.rpc.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from cotidal.node import throttles
from cotidal.node.effects import PaceMoves
from cotidal.node.hosting import Hosted
from cotidal.values import BrokerEpoch, LeaderEpoch, NodeId, Offset, TopicPartition
from lone_node import LoneNode

FOLLOWER = NodeId(2)
ALTER_CONFIGS = 44
TOPIC, BROKER = 2, 4
RATE = 100
VALUE = b"x" * 1_000


def set_config(node: LoneNode, kind: int, name: str, **values: str | None) -> int:
    changes = tuple(
        AlterableConfig(key.replace("_", "."), 1 if value is None else 0, value)
        for key, value in values.items()
    )
    resource = AlterConfigsResource(kind, name, changes)
    reply = node.ask(ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest((resource,)))
    return int(reply.responses[0].error_code)


def hosted_of(node: LoneNode, partition: int = 0) -> Hosted:
    return node.node._state.hosted[TopicPartition("orders", partition)]


def leadership_of(node: LoneNode, partition: int = 0) -> Leadership:
    leadership = hosted_of(node, partition).replica.leadership
    assert leadership is not None
    return leadership


def throttled_leader(replicas: str = "0:1", *, partitions: int = 2) -> LoneNode:
    """Node 1 leads two partitions of one big record each; node 2 follows, not in sync, and the
    first partition is throttled."""
    node = node_with(partitions=partitions)
    brokers = node.node._state.controller.committed.brokers
    brokers[FOLLOWER] = brokers[NodeId(1)]._replace(node_id=FOLLOWER, epoch=BrokerEpoch(9))
    assert set_config(node, BROKER, "1", leader_replication_throttled_rate=str(RATE)) == 0
    assert set_config(node, TOPIC, "orders", leader_replication_throttled_replicas=replicas) == 0
    for partition in range(partitions):
        leadership_of(node, partition).followers[FOLLOWER] = Progress(caught_up=NEVER)
        for _ in range(3):
            node.ask(*produce(VALUE, acks=1, partition=partition))
    return node


def ask(node: LoneNode, *partitions: int, offset: int = 0, max_wait_ms: int = 0) -> None:
    key, version, request = fetch(offset, partitions=partitions, max_wait_ms=max_wait_ms)
    (topic,) = request.topics
    asked = tuple(each._replace(log_start_offset=0) for each in topic.partitions)
    request = request._replace(replica_id=FOLLOWER, topics=(topic._replace(partitions=asked),))
    node.send((key, version, request))


def told(node: LoneNode) -> dict[int, bool]:
    """Of the last answer: which partitions brought records."""
    message: Any = node.replies[-1].message
    return {each.partition_index: bool(each.records.data) for each in message.responses[0][2]}


def test_a_throttled_follower_gets_nothing_more_while_there_was_too_much() -> None:
    node = throttled_leader()
    ask(node, 0)
    assert told(node) == {0: True}
    ask(node, 0, offset=1)
    assert told(node) == {0: False}


def test_a_throttled_partition_does_not_keep_the_others_of_its_fetch() -> None:
    node = throttled_leader()
    ask(node, 0)
    ask(node, 0, 1)
    assert told(node) == {0: False, 1: True}


def test_what_a_throttled_follower_tells_of_its_progress_is_heard() -> None:
    node = throttled_leader()
    ask(node, 0)
    ask(node, 0, offset=2)
    assert leadership_of(node).followers[FOLLOWER].end_offset == 2


def test_a_follower_in_the_isr_is_not_held_back() -> None:
    node = throttled_leader()
    leadership_of(node).isr = (NodeId(1), FOLLOWER)
    for _ in range(3):
        ask(node, 0)
        assert told(node) == {0: True}


def test_a_fetch_that_is_held_back_goes_on_as_soon_as_it_may() -> None:
    node = throttled_leader()
    ask(node, 0)
    # Three batches of over 1,000 bytes at 100 a second: forgotten after 11 s, long before diluted.
    node.pass_time(10_000)
    before = len(node.replies)
    ask(node, 0, offset=1, max_wait_ms=5_000)
    assert len(node.replies) == before
    node.pass_time(999)
    assert len(node.replies) == before
    node.pass_time(2)
    assert told(node) == {0: True}


def test_a_fetch_that_is_held_back_for_longer_than_it_waits_is_answered_empty() -> None:
    node = throttled_leader()
    ask(node, 0)
    before = len(node.replies)
    ask(node, 0, offset=1, max_wait_ms=500)
    node.pass_time(499)
    assert len(node.replies) == before
    node.pass_time(1)
    assert told(node) == {0: False}


def test_a_rate_that_is_raised_or_taken_away_holds_at_once() -> None:
    node = throttled_leader()
    ask(node, 0)
    set_config(node, BROKER, "1", leader_replication_throttled_rate="1000000")
    ask(node, 0, offset=1)
    assert told(node) == {0: True}
    set_config(node, BROKER, "1", leader_replication_throttled_rate=str(RATE))
    ask(node, 0, offset=1)
    assert told(node) == {0: False}
    set_config(node, BROKER, "1", leader_replication_throttled_rate=None)
    ask(node, 0, offset=1)
    assert told(node) == {0: True}


def test_a_default_for_all_brokers_throttles_too() -> None:
    node = throttled_leader()
    set_config(node, BROKER, "1", leader_replication_throttled_rate=None)
    set_config(node, BROKER, "", leader_replication_throttled_rate=str(RATE))
    ask(node, 0)
    ask(node, 0, offset=1)
    assert told(node) == {0: False}


@pytest.mark.parametrize(
    ("replicas", "throttled"),
    [("*", (True, True)), ("1:1,0:2", (False, True)), ("0:11,11:1", (False, False))],
)
def test_a_list_names_partitions_of_this_broker_or_a_star_all(
    replicas: str, throttled: tuple[bool, bool]
) -> None:
    node = throttled_leader(replicas)
    assert tuple(hosted_of(node, each).throttled_leader for each in (0, 1)) == throttled
    set_config(node, TOPIC, "orders", leader_replication_throttled_replicas=None)
    assert not hosted_of(node, 1).throttled_leader


@pytest.mark.parametrize("wrong", ["0", "0:", "a:1", "0:1,*", "0:1:2", "-1:1"])
def test_a_list_that_names_no_replicas_is_refused(wrong: str) -> None:
    node = node_with()
    assert set_config(node, TOPIC, "orders", leader_replication_throttled_replicas=wrong) == 40


def throttled_follower() -> tuple[LoneNode, Hosted]:
    """Node 1 follows node 2, is behind it, and has fetched too much."""
    node = node_with()
    assert set_config(node, BROKER, "1", follower_replication_throttled_rate=str(RATE)) == 0
    set_config(node, TOPIC, "orders", follower_replication_throttled_replicas="*")
    hosted = hosted_of(node)
    follow(hosted.replica, leader=FOLLOWER, epoch=LeaderEpoch(9))
    assert hosted.replica.following is not None
    hosted.replica.following.leader_high_watermark = Offset(5)
    throttles.on_fetched(node.node._state, hosted, 5_000)
    return node, hosted


def test_a_follower_that_is_behind_does_not_ask_while_it_got_too_much() -> None:
    node, hosted = throttled_follower()
    state = node.node._state
    assert throttles.postpones(state, hosted)
    node.pass_time(11_000)
    state.now = node.now
    assert not throttles.postpones(state, hosted)


@pytest.mark.parametrize("high_watermark", [-1, 0])
def test_a_follower_that_is_in_sync_or_cannot_know_asks_all_the_same(high_watermark: int) -> None:
    node, hosted = throttled_follower()
    assert hosted.replica.following is not None
    hosted.replica.following.leader_high_watermark = Offset(high_watermark)
    assert not throttles.postpones(node.node._state, hosted)


def test_a_follower_whose_topic_is_not_throttled_counts_nothing() -> None:
    node, hosted = throttled_follower()
    set_config(node, TOPIC, "orders", follower_replication_throttled_replicas=None)
    assert not throttles.postpones(node.node._state, hosted)
    before = node.node._state.follower_throttle.rate.per_second(node.node._state.now)
    throttles.on_fetched(node.node._state, hosted, 5_000)
    assert node.node._state.follower_throttle.rate.per_second(node.node._state.now) == before


def test_the_disk_is_told_of_the_throttle_of_moves_whenever_it_changes() -> None:
    def told_to_the_disk(node: LoneNode) -> list[int]:
        return [each.bytes_per_second for each in node.other if isinstance(each, PaceMoves)]

    node = node_with()
    assert told_to_the_disk(node) == []
    change = {"replica_alter_log_dirs_io_max_bytes_per_second": str(RATE)}
    assert set_config(node, BROKER, "1", **change) == 0
    assert set_config(node, TOPIC, "orders", retention_ms="1") == 0
    assert told_to_the_disk(node) == [RATE]
    assert told_to_the_disk(node.restart()) == [RATE]
    assert set_config(node, BROKER, "1", **dict.fromkeys(change)) == 0
    assert told_to_the_disk(node) == [RATE, 2**63 - 1]
