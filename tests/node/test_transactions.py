"""Transactions through a whole node: begun, confirmed, written, ended, read."""

from __future__ import annotations

from typing import Any

import pytest

from asking import create, delete, fetch, read
from cotidal.errors import ErrorCode
from cotidal.messages.batch import TRANSACTIONAL_BIT
from cotidal.messages.rpc import (
    describe_transactions,
    end_txn,
    init_producer_id,
    list_transactions,
    write_txn_markers,
)
from cotidal.node.effects import Append
from cotidal.node.events import LogFailed
from cotidal.node.verification import AGAIN_MS, Verifying
from cotidal.values import ProducerEpoch, ProducerId, Sequence, TopicPartition
from cotidal.wire.batch import read_batches
from lone_node import LoneNode
from transacting import ID, SETTINGS, Producer, node_with_transactions

PRODUCE, FIND, INIT, ADD, END, MARK, DESCRIBE, LIST = 0, 10, 22, 24, 26, 27, 65, 66


@pytest.fixture
def node() -> LoneNode:
    return node_with_transactions()


def committed(node: LoneNode, partition: int = 0) -> list[bool]:
    """What a read_committed consumer is given of a partition: data, or a marker, batch by batch."""
    key, version, message = fetch(0, partitions=(partition,), max_wait_ms=0)
    answer = node.ask(key, version, message._replace(isolation_level=1))
    headers = read_batches(read(answer)).headers
    assert all(header.attributes & TRANSACTIONAL_BIT for header in headers)
    return [header.is_control for header in headers]


def status(node: LoneNode) -> str:
    request = describe_transactions.DescribeTransactionsRequest((ID,))
    return str(node.ask(DESCRIBE, 0, request).transaction_states[0].transaction_state)


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_is_read_when_it_has_ended(node: LoneNode, commit: bool) -> None:
    producer = Producer(node)
    assert producer.add(0, 1) == [0, 0]
    assert producer.write() == producer.write() == 0
    assert committed(node) == [], "its end is open"
    assert status(node) == "Ongoing"
    assert producer.end(commit=commit).error_code == 0
    assert committed(node) == [False, False, True]
    assert committed(node, 1) == [True]
    assert status(node) == ("CompleteCommit" if commit else "CompleteAbort")


@pytest.mark.parametrize(("producer_id", "epoch"), [(5, -1), (-1, 5)])
def test_a_producer_id_comes_with_its_epoch(node: LoneNode, producer_id: int, epoch: int) -> None:
    for id_ in (ID, None):
        request = init_producer_id.InitProducerIdRequest(id_, 60_000, producer_id, epoch)
        assert node.ask(INIT, 4, request).error_code == ErrorCode.INVALID_REQUEST


def test_a_batch_of_a_partition_that_was_not_added_is_refused(node: LoneNode) -> None:
    producer = Producer(node)
    producer.add(1)
    assert producer.write(partition=0) == ErrorCode.INVALID_TXN_STATE
    assert producer.write(partition=1) == 0


def test_from_produce_12_on_the_partition_is_added_for_the_client(node: LoneNode) -> None:
    producer = Producer(node)
    assert producer.write(version=12) == 0
    answer = producer.end(version=5)
    assert (answer.error_code, answer.producer_epoch) == (0, producer.epoch + 1)
    assert committed(node) == [False, True]


def test_batches_that_come_together_open_a_transaction_in_their_order(node: LoneNode) -> None:
    """The sequences of later ones follow on the first, which waits for its coordinator's word."""
    producer = Producer(node)
    before = len(node.replies)
    node.send(*(producer.request(version=12) for _ in range(3)))
    answers = [reply.message for reply in node.replies[before:]]
    errors = [each.responses[0].partition_responses[0].error_code for each in answers]
    assert errors == [0, 0, 0]
    assert producer.end(version=5).error_code == 0
    assert committed(node) == [False, False, False, True]


def test_a_batch_that_waits_for_its_coordinator_is_asked_about_once_with_all_behind_it(
    node: LoneNode,
) -> None:
    """The second comes while the first is being asked about, in a read of its own."""
    producer = Producer(node)
    before = len(node.replies)
    node.hold = {Append}  # the coordinator's record is not written yet
    node.send(producer.request(version=12))
    node.send(producer.request(version=12))
    asked = [each for each in node.node._state.calls.values() if isinstance(each, Verifying)]
    assert len(asked) == 1
    assert len(node.replies) == before
    node.release()
    answers = [reply.message for reply in node.replies[before:]]
    assert [each.responses[0].partition_responses[0].error_code for each in answers] == [0, 0]


def begin_again_before_the_markers(node: LoneNode) -> list[Any]:
    """A producer of version 2 is told of its end, and writes on; nothing reaches the disk then."""
    producer = Producer(node)
    assert producer.write(version=12) == 0
    before = len(node.replies)
    node.hold = {Append}
    end = end_txn.EndTxnRequest(ID, producer.producer_id, producer.epoch, committed=True)
    node.send((END, 5, end))
    node.release_first()
    (ended,) = [reply.message for reply in node.replies[before:]]
    producer.epoch, producer.sequence = ended.producer_epoch, 0
    node.send(producer.request(version=12))
    return node.replies


def test_the_next_transaction_waits_for_the_markers_of_the_last(node: LoneNode) -> None:
    """Told to come again, a client would stay away for longer than they take."""
    replies = begin_again_before_the_markers(node)
    before = len(replies)
    node.pass_time(10)
    assert len(replies) == before, "the marker is not written"
    node.release()
    node.pass_time(max(AGAIN_MS))
    (written,) = [reply.message for reply in replies[before:]]
    assert written.responses[0].partition_responses[0].error_code == 0
    assert status(node) == "Ongoing"
    assert committed(node) == [False, True], "and the first is committed"


def test_the_next_transaction_does_not_wait_for_ever(node: LoneNode) -> None:
    replies = begin_again_before_the_markers(node)
    before = len(replies)
    node.pass_time(sum(AGAIN_MS) - 1)
    assert len(replies) == before
    node.pass_time(1)
    (refused,) = [reply.message for reply in replies[before:]]
    error = refused.responses[0].partition_responses[0].error_code
    assert error == ErrorCode.NOT_ENOUGH_REPLICAS
    assert node.node._state.postponed == []


def test_the_end_of_a_transaction_need_not_reach_a_topic_that_was_deleted(node: LoneNode) -> None:
    create(node, "gone", 1)
    producer = Producer(node)
    producer.add(0)
    producer.add(0, topic="gone")
    node.ask(*delete("gone"))
    assert producer.end().error_code == 0
    assert status(node) == "CompleteCommit"


def test_a_marker_whose_log_fails_is_refused(node: LoneNode) -> None:
    producer = Producer(node)
    producer.add(0)
    producer.write()
    before = len(node.replies)
    node.hold = {Append}
    topics = (write_txn_markers.WritableTxnMarkerTopic("orders", (0,)),)
    marker = write_txn_markers.WritableTxnMarker(
        producer.producer_id, producer.epoch, True, topics, 0
    )
    node.send((MARK, 2, write_txn_markers.WriteTxnMarkersRequest((marker,))))
    assert len(node.replies) == before, "it is not committed"
    partition = TopicPartition("orders", 0)
    topic_id = node.node._state.hosted[partition].replica.topic_id
    node.tell(LogFailed(partition, topic_id, "disk full"))
    (answer,) = [reply.message for reply in node.replies[before:]]
    result = answer.markers[0].topics[0].partitions[0]
    assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_batch_that_is_put_off_keeps_its_place() -> None:
    """No coordinator can be asked. What comes later must not be written before it."""
    node = LoneNode(SETTINGS).start()
    create(node, "orders", 2)
    producer = Producer.of(node, producer_id=7)
    assert producer.write() == ErrorCode.NOT_ENOUGH_REPLICAS
    producers = node.node._state.hosted[TopicPartition("orders", 0)].replica.producers
    later = producers.transactions.guard(ProducerId(7), ProducerEpoch(0), Sequence(4))
    guard = producers.transactions.guarded(ProducerId(7), later)
    assert guard is not None
    assert guard.lowest_sequence == 0


def test_a_batch_that_comes_after_the_end_opens_nothing(node: LoneNode) -> None:
    producer = Producer(node)
    producer.add(0)
    producer.write()
    producer.end()
    assert producer.write() == ErrorCode.INVALID_TXN_STATE
    assert committed(node) == [False, True]


def test_the_next_holder_of_the_id_fences_the_one_before(node: LoneNode) -> None:
    old = Producer(node)
    old.add(0)
    old.write()
    request = init_producer_id.InitProducerIdRequest(ID, 60_000)
    busy = node.ask(INIT, 4, request)
    assert busy.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert node.ask(INIT, 4, request).error_code == 0
    assert old.write() == ErrorCode.INVALID_PRODUCER_EPOCH
    assert old.end().error_code == ErrorCode.PRODUCER_FENCED
    assert old.end(version=1).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert committed(node) == [False, True]


def test_a_transaction_that_takes_too_long_is_aborted(node: LoneNode) -> None:
    producer = Producer(node)
    producer.add(0)
    producer.write()
    node.pass_time(80_000)
    assert status(node) == "CompleteAbort"
    assert committed(node) == [False, True]
    assert producer.end().error_code == ErrorCode.PRODUCER_FENCED


def test_a_marker_that_is_refused_is_sent_again_later(node: LoneNode) -> None:
    producer = Producer(node)
    producer.add(0)
    producer.write()
    leadership = node.node._state.hosted[TopicPartition("orders", 0)].replica.leadership
    assert leadership is not None
    leadership.min_isr = 2
    assert producer.end().error_code == 0
    assert status(node) == "PrepareCommit"
    leadership.min_isr = 1
    node.pass_time(200)
    assert status(node) == "CompleteCommit"


def test_partitions_that_do_not_exist_are_not_added(node: LoneNode) -> None:
    producer = Producer(node)
    unknown, known = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
    assert producer.add(0, 9) == [known, unknown]
    assert producer.add(0, topic="nowhere") == [unknown]


@pytest.mark.parametrize("version", [1, 2])
def test_an_operator_can_end_a_transaction_by_its_marker(node: LoneNode, version: int) -> None:
    producer = Producer(node)
    producer.add(0)
    producer.write()
    marker = write_txn_markers.WritableTxnMarker(
        producer.producer_id,
        producer.epoch,
        False,
        (write_txn_markers.WritableTxnMarkerTopic("orders", (0, 9)),),
        0,
    )
    answer = node.ask(MARK, version, write_txn_markers.WriteTxnMarkersRequest((marker,)))
    results = answer.markers[0].topics[0].partitions
    assert [each.error_code for each in results] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert committed(node) == [False, True]


def test_transactions_are_listed_by_their_coordinator(node: LoneNode) -> None:
    for id_ in (ID, "other"):
        Producer(node, id_).add(0)

    def listed(**which: Any) -> list[str]:
        answer = node.ask(LIST, 2, list_transactions.ListTransactionsRequest(**which))
        assert answer.error_code == which.pop("error", 0)
        return sorted(each.transactional_id for each in answer.transaction_states)

    assert listed() == ["other", ID]
    assert listed(transactional_id_pattern="sh.*") == [ID]
    assert listed(state_filters=("Empty", "Unheard")) == []
    bad = list_transactions.ListTransactionsRequest(transactional_id_pattern="(")
    assert node.ask(LIST, 2, bad).error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_an_id_may_not_be_empty_nor_unknown(node: LoneNode) -> None:
    empty = node.ask(INIT, 4, init_producer_id.InitProducerIdRequest("", 60_000))
    assert empty.error_code == ErrorCode.INVALID_REQUEST
    stranger = Producer(node)
    stranger.id = "stranger"
    assert stranger.end().error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert stranger.add(0) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
