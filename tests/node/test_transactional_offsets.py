"""Offsets committed in transactions, through a whole node (T12, T20 to T22)."""

from __future__ import annotations

from typing import Any

import pytest

from asking import create
from cotidal.errors import ErrorCode
from cotidal.messages.rpc import (
    find_coordinator,
    join_group,
    offset_fetch,
    sync_group,
    write_txn_markers,
)
from cotidal.node import effects as fx
from cotidal.values import TopicPartition
from lone_node import LoneNode
from transacting import SETTINGS, Producer, node_with_transactions

FETCH, FIND, JOIN, SYNC, MARK = 9, 10, 11, 14, 27
CLIENT_VERSIONS = pytest.mark.parametrize("raising", [False, True], ids=["TV0", "TV2"])


@pytest.fixture
def node() -> LoneNode:
    node = node_with_transactions(group_initial_rebalance_delay_ms="0")
    find_group(node)
    return node


def find_group(node: LoneNode) -> None:
    found = node.ask(FIND, 4, find_coordinator.FindCoordinatorRequest(coordinator_keys=("g",)))
    assert found.coordinators[0].error_code == 0


def offset(node: LoneNode, *, stable: bool = True) -> int | ErrorCode:
    topic = offset_fetch.OffsetFetchRequestTopics("orders", partition_indexes=(0,))
    group = offset_fetch.OffsetFetchRequestGroup("g", topics=(topic,))
    request = offset_fetch.OffsetFetchRequest(groups=(group,), require_stable=stable)
    ((found,),) = (each.partitions for each in node.ask(FETCH, 8, request).groups[0].topics)
    return ErrorCode(found.error_code) if found.error_code else int(found.committed_offset)


def pend(producer: Producer, to: int, *, raising: bool, **fields: Any) -> int:
    """As a client of the one or the other transaction version does it."""
    if raising:
        return producer.commit(to, version=5, **fields)
    assert producer.add_offsets() == 0
    return producer.commit(to, version=3, **fields)


@CLIENT_VERSIONS
@pytest.mark.parametrize("commit", [False, True], ids=["abort", "commit"])
def test_offsets_are_committed_or_not_with_their_transaction(
    node: LoneNode, raising: bool, commit: bool
) -> None:
    producer = Producer(node)
    assert pend(producer, 5, raising=raising) == 0
    assert producer.commit(6, version=5 if raising else 3) == 0, "once more in the same one"
    assert offset(node) is ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert offset(node, stable=False) == -1
    assert producer.end(commit=commit, version=5 if raising else 3).error_code == 0
    assert offset(node) == (6 if commit else -1)
    assert offset(node.restart()) == (6 if commit else -1)


@CLIENT_VERSIONS
def test_what_is_pending_outlives_its_coordinator(node: LoneNode, raising: bool) -> None:
    producer = Producer(node)
    pend(producer, 5, raising=raising)
    producer.node = node.restart()
    assert offset(producer.node) is ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert producer.end(version=5 if raising else 3).error_code == 0
    assert offset(producer.node) == 5


def test_a_marker_that_comes_while_the_log_is_loaded_is_not_missed(node: LoneNode) -> None:
    producer = Producer(node)
    pend(producer, 5, raising=True)
    loading = node.restart(fx.Read)
    topic = write_txn_markers.WritableTxnMarkerTopic("__consumer_offsets", (0,))
    marker = write_txn_markers.WritableTxnMarker(
        producer.producer_id, producer.epoch + 1, True, (topic,), 9, 2
    )
    answer = loading.ask(MARK, 2, write_txn_markers.WriteTxnMarkersRequest((marker,)))
    assert answer.markers[0].topics[0].partitions[0].error_code == 0
    loading.release()
    assert offset(loading) == 5


def test_offsets_without_the_group_being_part_of_the_transaction_are_refused(
    node: LoneNode,
) -> None:
    producer = Producer(node)
    producer.add(0)
    assert producer.commit(5, version=3) == ErrorCode.INVALID_TXN_STATE
    assert producer.commit(5, version=4) == ErrorCode.TRANSACTION_ABORTABLE
    assert producer.commit(5, version=5) == 0, "from here on it is made part of it"
    assert producer.end(version=5).error_code == 0
    assert offset(node) == 5


def test_offsets_of_a_producer_that_was_fenced_are_refused(node: LoneNode) -> None:
    first, second = Producer(node), Producer(node)
    assert first.add_offsets() == ErrorCode.PRODUCER_FENCED
    assert first.add_offsets(version=1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert first.commit(5, version=5) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert pend(second, 6, raising=True) == 0
    assert first.commit(5, version=5) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert second.end(version=5).error_code == 0
    assert offset(node) == 6


def test_a_commit_that_comes_after_the_end_opens_nothing(node: LoneNode) -> None:
    producer = Producer(node)
    pend(producer, 5, raising=True)
    producer.end(version=5)
    assert producer.commit(9, version=5) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert offset(node) == 5


def test_unknown_topics_and_groups_without_a_name_are_refused(node: LoneNode) -> None:
    producer = Producer(node)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert producer.commit(5, version=5, topic="nothing") == unknown
    assert producer.commit(5, version=5, group_id="") == ErrorCode.INVALID_GROUP_ID


def test_a_member_of_an_earlier_generation_cannot_commit(node: LoneNode) -> None:
    protocol = join_group.JoinGroupRequestProtocol("range", b"")
    request = join_group.JoinGroupRequest(
        "g", 10_000, 10_000, protocol_type="consumer", protocols=(protocol,)
    )
    given = node.ask(JOIN, 4, request)
    node.send((JOIN, 4, request._replace(member_id=given.member_id)))
    node.pass_time(0)
    joined = node.replies[-1].message
    who = {"member_id": joined.member_id, "generation_id": joined.generation_id}
    node.ask(SYNC, 3, sync_group.SyncGroupRequest("g", joined.generation_id, joined.member_id))
    producer = Producer(node)
    stale = who | {"generation_id": joined.generation_id - 1}
    assert producer.commit(5, version=5, **stale) == ErrorCode.ILLEGAL_GENERATION
    assert producer.commit(5, version=5, **who) == 0


def test_offsets_are_added_before_their_topic_is_there() -> None:
    node = node_with_transactions()
    producer = Producer(node)
    assert producer.add_offsets() == 0
    find_group(node)
    assert producer.commit(5) == 0
    assert producer.end().error_code == 0
    assert offset(node) == 5


def test_no_coordinator_of_the_transaction_is_a_reason_to_ask_again() -> None:
    node = LoneNode(SETTINGS).start()
    create(node, "orders")
    find_group(node)
    stranger = Producer.of(node, producer_id=7)
    assert stranger.commit(5) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@CLIENT_VERSIONS
def test_what_is_added_without_being_looked_for_ends_all_the_same(raising: bool) -> None:
    """Nobody else adds it for a client of version 2: without that it would never end."""
    node = node_with_transactions(transaction_partition_verification_enable="false")
    find_group(node)
    producer = Producer(node)
    if not raising:
        producer.add(0)
    assert producer.write(version=12 if raising else 11) == 0
    assert pend(producer, 5, raising=raising) == 0
    assert producer.end(version=5 if raising else 3).error_code == 0
    assert offset(node) == 5
    replica = node.node._state.hosted[TopicPartition("orders", 0)].replica
    assert not replica.producers.transactions.is_open(producer.producer_id)
