"""A leader sends a consumer to a replica in its rack, if it is told to (KIP-392)."""

from __future__ import annotations

from typing import Any

from asking import fetch, node_with, produce, read
from cotidal.core.partition.progress import Progress
from cotidal.values import BrokerEpoch, Millis, NodeId, Offset, ProducerId, TopicPartition
from lone_node import LoneNode

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
FOLLOWER = NodeId(2)


def leader_with_follower(**settings: str) -> LoneNode:
    """Node 1 leads a record; node 2, in rack "far", follows and has it."""
    node = node_with(**settings)
    node.ask(*produce(b"a"))
    state = node.node._state
    brokers = state.controller.committed.brokers
    brokers[FOLLOWER] = brokers[NodeId(1)]._replace(
        node_id=FOLLOWER, rack="far", epoch=BrokerEpoch(9)
    )
    leadership = state.hosted[TopicPartition("orders", 0)].replica.leadership
    assert leadership is not None
    leadership.isr = (NodeId(1), FOLLOWER)
    progress = leadership.followers[FOLLOWER] = Progress(caught_up=Millis(0))
    progress.end_offset, progress.start_offset = Offset(1), Offset(0)
    return node


def ask(node: LoneNode, rack: str, offset: int = 0, version: int = 12) -> Any:
    key, _, request = fetch(offset)
    return node.ask(key, version, request._replace(rack_id=rack)).responses[0].partitions[0]


def test_a_consumer_is_sent_to_the_replica_in_its_rack_and_gets_no_records() -> None:
    told = ask(leader_with_follower(replica_selector_class=RACK_AWARE), "far")
    assert told.preferred_read_replica == FOLLOWER
    assert not told.records.data
    assert told.error_code == 0


def test_whoever_is_sent_elsewhere_is_told_what_is_stable() -> None:
    node = leader_with_follower(replica_selector_class=RACK_AWARE)
    replica = node.node._state.hosted[TopicPartition("orders", 0)].replica
    replica.producers.transactions.open(ProducerId(7), Offset(0))
    assert ask(node, "far").last_stable_offset == 0 < replica.high_watermark


def test_whoever_names_no_rack_or_one_without_a_replica_stays_with_the_leader() -> None:
    node = leader_with_follower(replica_selector_class=RACK_AWARE)
    for rack in ("", "nowhere"):
        told = ask(node, rack)
        assert told.preferred_read_replica == -1
        assert told.records.data


def test_a_version_that_cannot_be_told_of_it_stays_with_the_leader() -> None:
    node = leader_with_follower(replica_selector_class=RACK_AWARE)
    assert ask(node, "far", version=10).records.data


def test_without_the_setting_everybody_reads_from_the_leader() -> None:
    assert ask(leader_with_follower(), "far").records.data


def test_a_fetch_that_would_wait_is_sent_on_at_once() -> None:
    node = leader_with_follower(replica_selector_class=RACK_AWARE)
    assert ask(node, "far", offset=1).preferred_read_replica == FOLLOWER


def test_a_session_tells_of_the_nearer_replica_every_time() -> None:
    node = leader_with_follower(replica_selector_class=RACK_AWARE)
    key, version, request = fetch(0, session=(0, 0))
    first = node.ask(key, version, request._replace(rack_id="far"))
    key, version, request = fetch(session=(first.session_id, 1), named=False)
    again = node.ask(key, version, request._replace(rack_id="far"))
    assert again.responses[0].partitions[0].preferred_read_replica == FOLLOWER
    assert read(again) == b""
