"""Produce through a whole node: one Append per partition and step, answers when acks allow."""

from __future__ import annotations

from asking import create, creation, delete, node_with, produce, written
from cotidal.errors import ErrorCode
from cotidal.messages.batch import Batches
from cotidal.messages.rpc.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from cotidal.node.effects import Append, CloseConnection, OpenLog
from cotidal.node.events import (
    Appended,
    ConnectionId,
    ConnectionLost,
    LogFailed,
    LogOpened,
    StartMoved,
)
from cotidal.values import ZERO_UUID, Offset, TopicPartition, WallMillis
from lone_node import batches

ORDERS = TopicPartition("orders", 0)


def test_records_get_consecutive_offsets() -> None:
    node = node_with()
    assert written(node.ask(*produce(b"a", b"b"))) == (0, 0)
    assert written(node.ask(*produce(b"c"))) == (0, 2)
    assert node.logs[ORDERS].end == 3


def test_all_requests_of_one_read_become_one_append() -> None:
    node = node_with()
    node.send(*(produce(b"x") for _ in range(50)))
    assert node.appends == 1
    assert [written(reply.message)[1] for reply in node.replies[-50:]] == list(range(50))


def test_replies_keep_the_order_of_requests() -> None:
    node = node_with()
    node.send(produce(b"x"), produce(b"x", topic="nowhere"), produce(b"x"))
    errors = [written(reply.message)[0] for reply in node.replies[-3:]]
    assert errors == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0]
    correlations = [reply.correlation_id for reply in node.replies]
    assert correlations == sorted(correlations)


def test_nothing_is_acknowledged_before_it_is_written() -> None:
    node = node_with()
    node.hold = {Append}
    before = len(node.replies)
    node.send(produce(b"x", acks=1), produce(b"x", acks=-1))
    assert len(node.replies) == before
    node.release()
    assert [written(reply.message) for reply in node.replies[before:]] == [(0, 0), (0, 1)]


def test_a_duplicate_waits_with_its_original() -> None:
    node = node_with()
    node.hold = {Append}
    before = len(node.replies)
    batch = batches(b"x", producer_id=7, producer_epoch=0, base_sequence=0)
    node.send(produce(records=batch))
    node.send(produce(records=batch))
    assert len(node.replies) == before
    node.release()
    assert [written(reply.message) for reply in node.replies[before:]] == [(0, 0), (0, 0)]
    assert node.logs[ORDERS].end == 1


def test_a_duplicate_of_what_is_written_is_answered_at_once() -> None:
    node = node_with()
    batch = batches(b"x", producer_id=7, producer_epoch=0, base_sequence=0)
    node.ask(*produce(records=batch))
    assert written(node.ask(*produce(records=batch))) == (0, 0)


def test_a_duplicate_behind_later_batches_is_answered_with_its_original() -> None:
    node = node_with()
    node.hold = {Append}
    first = batches(b"x", producer_id=7, producer_epoch=0, base_sequence=0)
    second = batches(b"y", producer_id=7, producer_epoch=0, base_sequence=1)
    before = len(node.replies)
    node.send(produce(records=first), produce(records=second), produce(records=first))
    node.release()
    assert [written(r.message) for r in node.replies[before:]] == [(0, 0), (0, 1), (0, 0)]


def test_producer_state_survives_a_restart() -> None:
    node = node_with()
    batch = batches(b"x", producer_id=7, producer_epoch=0, base_sequence=0)
    node.ask(*produce(records=batch))
    after = node.restart()
    assert written(after.ask(*produce(records=batch))) == (0, 0)
    assert after.logs[ORDERS].end == 1


def test_each_partition_is_answered_for_itself() -> None:
    node = node_with(partitions=2)
    request = ProduceRequest(
        acks=-1,
        timeout_ms=1_000,
        topic_data=(
            TopicProduceData(
                name="orders",
                partition_data=(
                    PartitionProduceData(0, batches(b"a")),
                    PartitionProduceData(1, Batches((), b"", fault="crc")),
                    PartitionProduceData(2, batches(b"a")),
                ),
            ),
        ),
    )
    answers = node.ask(0, 9, request).responses[0].partition_responses
    assert [answer.error_code for answer in answers] == [
        0,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_unknown_acks_are_refused() -> None:
    node = node_with()
    assert written(node.ask(*produce(b"x", acks=2)))[0] == ErrorCode.INVALID_REQUIRED_ACKS


def test_acks_zero_gets_no_reply_but_is_written() -> None:
    node = node_with()
    before = len(node.replies)
    node.send(produce(b"x", acks=0))
    assert len(node.replies) == before
    assert node.logs[ORDERS].end == 1


def test_a_refused_acks_zero_closes_its_connection() -> None:
    node = node_with()
    node.send(produce(b"x", acks=0, topic="nowhere"))
    assert isinstance(node.other[-1], CloseConnection)


def test_a_produce_that_waits_too_long_is_told_so_and_may_still_be_written() -> None:
    node = node_with()
    node.hold = {Append}
    node.send(produce(b"x", timeout_ms=300))
    before = len(node.replies)
    node.pass_time(1_000)
    assert written(node.replies[before].message)[0] == ErrorCode.REQUEST_TIMED_OUT
    node.release()
    assert len(node.replies) == before + 1
    assert node.logs[ORDERS].end == 1


def test_a_short_time_out_does_not_wait_for_a_long_one() -> None:
    node = node_with()
    node.connect(2)
    node.hold = {Append}
    node.send(produce(b"x", timeout_ms=30_000))
    node.send(produce(b"x", timeout_ms=300), connection=2)
    before = len(node.replies)
    node.pass_time(500)
    assert [reply.connection for reply in node.replies[before:]] == [2]


def test_a_lost_connection_leaves_nothing_parked() -> None:
    node = node_with()
    node.hold = {Append}
    node.send(produce(b"x"))
    before = len(node.replies)
    node.tell(ConnectionLost(ConnectionId(1)))
    node.release()
    assert len(node.replies) == before
    assert node.logs[ORDERS].end == 1


def test_a_failed_log_fails_what_waits_for_it_and_leaves_the_others() -> None:
    node = node_with(partitions=2)
    node.hold = {Append}
    before = len(node.replies)
    node.send(produce(b"x"))
    node.tell(LogFailed(ORDERS, node.logs[ORDERS].topic_id, "no space left"))
    answer = node.replies[before].message.responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "no space left" in answer.error_message
    node.hold.clear()
    node.held.clear()
    assert written(node.ask(*produce(b"x")))[0] == ErrorCode.KAFKA_STORAGE_ERROR
    assert written(node.ask(*produce(b"x", partition=1))) == (0, 0)


def test_an_append_that_ends_after_its_topic_is_deleted_is_ignored() -> None:
    node = node_with()
    gone = TopicPartition("gone", 0)
    node.tell(Appended(gone, ZERO_UUID, Offset(1), WallMillis(-1), False))


def test_an_append_that_ends_after_its_topic_is_created_anew_is_ignored() -> None:
    """Only the topic's id tells that it is not the new one's: that has no record yet."""
    node = node_with()
    old = node.logs[ORDERS].topic_id
    node.ask(*delete("orders"))
    node.hold = {Append}
    create(node, "orders")
    before = len(node.replies)
    node.send(produce(b"new", acks=1))
    node.tell(Appended(ORDERS, old, Offset(1), WallMillis(-1), False))
    assert len(node.replies) == before
    node.release()
    assert written(node.replies[before].message) == (0, 0)


def test_a_log_that_opens_after_its_topic_is_created_anew_is_ignored() -> None:
    node = node_with()
    old = node.logs[ORDERS].topic_id
    node.ask(*delete("orders"))
    node.hold = {OpenLog}
    before = len(node.replies)
    node.send(creation("orders"))
    node.tell(LogOpened(ORDERS, old, Offset(0), Offset(9), Offset(9), (), None, (), ZERO_UUID))
    node.tell(LogFailed(ORDERS, old, "too late"))
    assert len(node.replies) == before
    node.release()
    assert written(node.ask(*produce(b"x"))) == (0, 0)


def test_a_log_start_that_moves_after_its_topic_is_created_anew_is_ignored() -> None:
    node = node_with()
    old = node.logs[ORDERS].topic_id
    node.ask(*delete("orders"))
    create(node, "orders")
    node.ask(*produce(b"x"))
    node.tell(StartMoved(ORDERS, old, Offset(1)))
    answer = node.ask(*produce(b"y")).responses[0].partition_responses[0]
    assert (answer.base_offset, answer.log_start_offset) == (1, 0)


def test_a_topic_that_stamps_time_tells_it() -> None:
    node = node_with()
    create(node, "stamped", message_timestamp_type="LogAppendTime")
    answer = node.ask(*produce(b"x", topic="stamped")).responses[0].partition_responses[0]
    assert answer.log_append_time_ms > 0
    plain = node.ask(*produce(b"x")).responses[0].partition_responses[0]
    assert plain.log_append_time_ms == -1
