"""A client at the wrong broker is told so, and who leads (KIP-951)."""

from __future__ import annotations

from typing import Any

import pytest

from asking import fetch, node_with, produce
from cotidal.core.cluster.registered import Endpoint
from cotidal.core.partition.progress import NEVER, Progress
from cotidal.errors import ErrorCode
from cotidal.messages.records.metadata import PartitionChangeRecord
from cotidal.messages.rpc import (
    delete_records,
    list_offsets,
    offset_for_leader_epoch,
    write_txn_markers,
)
from cotidal.messages.rpc.fetch import LeaderIdAndEpoch, NodeEndpoint
from cotidal.node import doubts
from cotidal.node.publishing import publish
from cotidal.node.redirects import not_here
from cotidal.values import BrokerEpoch, NodeId, TopicPartition, Uuid
from lone_node import LoneNode

OTHER = NodeId(2)
ORDERS = TopicPartition("orders", 0)
AWAY = TopicPartition("orders", 1)
NOWHERE = TopicPartition("orders", 2)
LED_THERE = LeaderIdAndEpoch(OTHER, 1)
THERE = NodeEndpoint(OTHER, "far.example", 9999, "far")
NOBODY = LeaderIdAndEpoch()
WRONG = ErrorCode.NOT_LEADER_OR_FOLLOWER


def beside_another() -> LoneNode:
    """Node 1 of two, with a topic of two partitions."""
    node = node_with(partitions=2)
    brokers = node.node._state.controller.committed.brokers
    me = brokers[NodeId(1)]
    brokers[OTHER] = me._replace(
        node_id=OTHER,
        epoch=BrokerEpoch(9),
        rack="far",
        endpoints=(
            Endpoint("OTHER", "elsewhere.example", 1),
            Endpoint(me.endpoints[0].name, "far.example", 9999),
        ),
    )
    return node


def hand_over(node: LoneNode) -> None:
    """Node 2 leads both; node 1 has a replica of the first only."""
    state = node.node._state
    topic_id = state.controller.committed.topics["orders"].topic_id
    records = (
        PartitionChangeRecord(0, topic_id, isr=(1, 2), leader=2, replicas=(1, 2)),
        PartitionChangeRecord(1, topic_id, isr=(2,), leader=2, replicas=(2,)),
    )
    for record in records:
        state.controller.committed.replay(record)
    publish(state, records)
    assert list(state.hosted) == [ORDERS]


@pytest.fixture
def node() -> LoneNode:
    node = beside_another()
    hand_over(node)
    return node


def ask_to_write(node: LoneNode, partition: int, version: int = 12) -> Any:
    key, _, request = produce(b"x", partition=partition)
    return node.ask(key, version, request)


def ask_to_read(node: LoneNode, *partitions: int, version: int = 17) -> Any:
    key, _, request = fetch(partitions=partitions)
    if version >= 13:
        topic_id = node.node._state.controller.committed.topics["orders"].topic_id
        topics = tuple(topic._replace(topic="", topic_id=topic_id) for topic in request.topics)
        request = request._replace(topics=topics)
    return node.ask(key, version, request)


@pytest.mark.parametrize("partition", [ORDERS, AWAY])
def test_whoever_writes_here_is_told_who_leads(node: LoneNode, partition: TopicPartition) -> None:
    reply = ask_to_write(node, partition.partition)
    (told,) = reply.responses[0].partition_responses
    assert (told.error_code, tuple(told.current_leader)) == (WRONG, tuple(LED_THERE))
    assert str(partition) in told.error_message
    assert [tuple(each) for each in reply.node_endpoints] == [tuple(THERE)]


def test_whoever_waits_for_an_acknowledgement_is_told_who_leads_now() -> None:
    node = beside_another()
    replica = node.node._state.hosted[ORDERS].replica
    assert replica.leadership is not None
    replica.leadership.isr = (NodeId(1), OTHER)
    replica.leadership.followers[OTHER] = Progress(caught_up=NEVER)
    key, _, request = produce(b"x")
    node.send((key, 12, request))
    before = len(node.replies)
    hand_over(node)
    node.send(fetch(partitions=(1,)))  # what was wanted is done with the next step
    reply: Any = node.replies[before].message
    (told,) = reply.responses[0].partition_responses
    assert (told.error_code, tuple(told.current_leader)) == (WRONG, tuple(LED_THERE))
    assert [tuple(each) for each in reply.node_endpoints] == [tuple(THERE)]


def test_whoever_reads_where_no_replica_is_is_told_who_leads(node: LoneNode) -> None:
    reply = ask_to_read(node, 1)
    (told,) = reply.responses[0].partitions
    assert (told.error_code, told.current_leader) == (WRONG, LED_THERE)
    assert reply.node_endpoints == (THERE,)


def test_a_leader_of_several_is_named_once(node: LoneNode) -> None:
    key, _, request = produce(b"x")
    (topic,) = request.topic_data
    (data,) = topic.partition_data
    both = topic._replace(partition_data=(data, data._replace(partition_index=1)))
    reply = node.ask(key, 12, request._replace(topic_data=(both,)))
    leaders = [tuple(each.current_leader) for each in reply.responses[0].partition_responses]
    assert leaders == [tuple(LED_THERE)] * 2
    assert len(reply.node_endpoints) == 1
    node.node._state.hosted.clear()
    fetched = ask_to_read(node, 0, 1)
    assert [each.current_leader for each in fetched.responses[0].partitions] == [LED_THERE] * 2
    assert fetched.node_endpoints == (THERE,)


def test_whoever_is_late_is_told_the_epoch(node: LoneNode) -> None:
    key, _, request = fetch()
    state = node.node._state
    topic_id = state.controller.committed.topics["orders"].topic_id
    (topic,) = request.topics
    asked = topic.partitions[0]._replace(current_leader_epoch=0)
    topics = (topic._replace(topic="", topic_id=topic_id, partitions=(asked,)),)
    reply = node.ask(key, 17, request._replace(topics=topics))
    (told,) = reply.responses[0].partitions
    assert told.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert told.current_leader == LED_THERE
    assert reply.node_endpoints == (THERE,)


def test_versions_that_have_no_room_for_it_are_told_the_error_alone(node: LoneNode) -> None:
    reply = ask_to_write(node, 0, version=9)
    (told,) = reply.responses[0].partition_responses
    assert (told.error_code, reply.node_endpoints) == (WRONG, ())
    for version in (12, 15):
        fetched = ask_to_read(node, 1, version=version)
        (data,) = fetched.responses[0].partitions
        assert (data.error_code, data.current_leader) == (WRONG, NOBODY)
        assert fetched.node_endpoints == ()


def test_nobody_is_sent_to_a_leader_that_cannot_be_reached(node: LoneNode) -> None:
    state = node.node._state
    brokers = state.controller.committed.brokers
    there = brokers[OTHER]

    def named() -> Any:
        reply = ask_to_read(node, 1)
        assert reply.responses[0].partitions[0].error_code == WRONG
        assert bool(reply.node_endpoints) == (
            reply.responses[0].partitions[0].current_leader != NOBODY
        )
        return reply.node_endpoints

    assert named()
    brokers[OTHER] = there._replace(fenced=True)
    assert not named()
    brokers[OTHER] = there._replace(endpoints=there.endpoints[:1])
    assert not named(), "it has no endpoint under this listener's name"
    brokers[OTHER] = there
    doubts.on_lost(state, OTHER, refused=True)
    assert not named(), "it has just dropped its connections"
    node.pass_time(doubts.DOUBT_MS)
    assert named()


def test_without_a_leader_nobody_is_named(node: LoneNode) -> None:
    partitions = node.node._state.controller.committed.topics["orders"].partitions
    partitions[1] = partitions[1]._replace(leader=NodeId(-1))
    reply = ask_to_read(node, 1)
    assert reply.responses[0].partitions[0].current_leader == NOBODY
    assert reply.node_endpoints == ()


def test_a_partition_that_does_not_exist_is_unknown(node: LoneNode) -> None:
    state = node.node._state
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not_here(state, NOWHERE).error == unknown
    assert not_here(state, TopicPartition("nothing", 0)).error == unknown
    assert not_here(state, NOWHERE, by_id=True).error == unknown, "its topic is known"
    assert not_here(state, TopicPartition("", 0), by_id=True).error == ErrorCode.UNKNOWN_TOPIC_ID
    assert not_here(state, TopicPartition("", 0)).error == unknown


def test_a_topic_id_that_nobody_knows_is_told_apart_from_a_missing_partition(
    node: LoneNode,
) -> None:
    key, _, request = produce(b"x", partition=2)
    (topic,) = request.topic_data
    known = node.node._state.controller.committed.topics["orders"].topic_id

    def error(topic_id: Uuid) -> int:
        asked = topic._replace(name="", topic_id=topic_id)
        reply = node.ask(key, 13, request._replace(topic_data=(asked,)))
        return int(reply.responses[0].partition_responses[0].error_code)

    assert error(known) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert error(Uuid(bytes(15) + b"\x07")) == ErrorCode.UNKNOWN_TOPIC_ID


def test_where_nothing_can_be_written_it_does_not_matter_how(node: LoneNode) -> None:
    key, _, request = produce(b"x", partition=2)
    reply = node.ask(key, 12, request._replace(acks=5))
    error = reply.responses[0].partition_responses[0].error_code
    assert error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_whoever_asks_for_ends_or_deletes_where_no_replica_is_looks_for_the_leader(
    node: LoneNode,
) -> None:
    ends = list_offsets.ListOffsetsTopic("orders", (list_offsets.ListOffsetsPartition(1),))
    listed = node.ask(2, 9, list_offsets.ListOffsetsRequest(topics=(ends,)))
    assert listed.topics[0].partitions[0].error_code == WRONG
    terms = offset_for_leader_epoch.OffsetForLeaderTopic(
        "orders", (offset_for_leader_epoch.OffsetForLeaderPartition(1),)
    )
    ended = node.ask(23, 4, offset_for_leader_epoch.OffsetForLeaderEpochRequest(topics=(terms,)))
    assert ended.topics[0].partitions[0].error_code == WRONG
    gone = delete_records.DeleteRecordsTopic(
        "orders", (delete_records.DeleteRecordsPartition(1, 0),)
    )
    deleted = node.ask(21, 2, delete_records.DeleteRecordsRequest(topics=(gone,)))
    assert deleted.topics[0].partitions[0].error_code == WRONG
    ended_there = write_txn_markers.WritableTxnMarkerTopic("orders", (1,))
    marker = write_txn_markers.WritableTxnMarker(7, 0, True, (ended_there,))
    marked = node.ask(27, 1, write_txn_markers.WriteTxnMarkersRequest(markers=(marker,)))
    assert marked.markers[0].topics[0].partitions[0].error_code == WRONG
