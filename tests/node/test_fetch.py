"""Fetch through a whole node: read, park, wake, sessions."""

from __future__ import annotations

from asking import DELETE_TOPICS, fetch, node_with, produce, read
from cotidal.errors import ErrorCode
from cotidal.limits import FETCH_SESSION_IDLE_MS, FETCH_SESSIONS_MAX
from cotidal.messages.producers import AbortedTransaction
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from cotidal.messages.rpc.delete_topics import DeleteTopicsRequest, DeleteTopicState
from cotidal.messages.rpc.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from cotidal.node.effects import Read
from cotidal.node.events import ConnectionId, ConnectionLost, ReadDone
from cotidal.values import Offset, ProducerId
from cotidal.wire.batch import read_batches
from lone_node import LoneNode


def error(node: LoneNode) -> int:
    return int(node.replies[-1].message.responses[0].partitions[0].error_code)


def test_what_is_there_is_read_at_once() -> None:
    node = node_with()
    node.ask(*produce(b"a", b"b"))
    found = read_batches(read(node.ask(*fetch(0)))).headers
    assert [(batch.base_offset, batch.record_count) for batch in found] == [(0, 2)]


def test_an_offset_inside_a_batch_gets_the_whole_batch() -> None:
    node = node_with()
    node.ask(*produce(b"a", b"b", b"c"))
    assert read_batches(read(node.ask(*fetch(2)))).headers[0].base_offset == 0


def test_a_fetch_at_the_end_waits_and_is_woken_by_a_write() -> None:
    node = node_with()
    node.connect(2)
    before = len(node.replies)
    node.send(fetch(0), connection=2)
    assert len(node.replies) == before
    node.send(produce(b"a"))
    answers = {reply.connection: reply.message for reply in node.replies[before:]}
    assert len(read(answers[2])) > 0


def test_a_fetch_that_nobody_wakes_is_answered_empty_at_its_deadline() -> None:
    node = node_with()
    before = len(node.replies)
    node.send(fetch(0, max_wait_ms=500))
    node.pass_time(499)
    assert len(node.replies) == before
    node.pass_time(1)
    assert read(node.replies[before].message) == b""


def test_a_fetch_that_may_not_wait_is_answered_empty_at_once() -> None:
    assert read(node_with().ask(*fetch(0, max_wait_ms=0))) == b""


def test_small_writes_do_not_make_a_large_fetch_read_again() -> None:
    node = node_with()
    node.connect(2)
    node.ask(*produce(b"a"))
    node.send(fetch(0, min_bytes=2_000), connection=2)
    reads = node.reads
    for _ in range(10):
        node.ask(*produce(b"b"))
    assert node.reads == reads
    before = len(node.replies)
    node.send(produce(b"c" * 2_000))
    assert node.reads == reads + 1
    assert {reply.connection for reply in node.replies[before:]} == {1, 2}


def test_a_fetch_is_read_again_once_for_all_that_one_step_brought() -> None:
    node = node_with(partitions=3)
    node.connect(2)
    node.send(fetch(0, partitions=(0, 1, 2)), connection=2)
    node.send(*(produce(b"x", partition=p) for p in range(3)))
    assert node.reads <= 3


def test_an_error_is_told_without_waiting() -> None:
    node = node_with()
    node.ask(*fetch(9))
    assert error(node) == ErrorCode.OFFSET_OUT_OF_RANGE
    node.ask(*fetch(0, topic="nowhere"))
    assert error(node) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_what_a_fetch_reads_is_only_sent_on() -> None:
    node = node_with()
    node.ask(*produce(b"a"))
    assert held_read(node, 2).to_send


def test_what_the_disk_cannot_read_is_refused_and_nothing_is_served() -> None:
    node = node_with()
    node.ask(*produce(b"a"))
    node.hold = {Read}
    node.send(fetch(0))
    held = node.held.popleft()
    node.hold.clear()
    node.tell(ReadDone(held.token, ("crc mismatch at byte 61",)))
    assert error(node) == ErrorCode.KAFKA_STORAGE_ERROR
    assert read(node.replies[-1].message) == b""


def held_read(node: LoneNode, connection: int) -> Read:
    """A fetch from offset 0 whose records the disk has not read yet."""
    node.connect(connection)
    node.hold = {Read}
    node.send(fetch(0), connection=connection)
    node.hold.clear()
    held = node.held.popleft()
    assert isinstance(held, Read)
    return held


def test_records_deleted_while_they_are_read_are_out_of_range() -> None:
    node = node_with()
    node.ask(*produce(b"a"))
    held = held_read(node, 2)
    deleted = DeleteRecordsTopic("orders", (DeleteRecordsPartition(0, 1),))
    node.ask(ApiKey.DELETE_RECORDS, 2, DeleteRecordsRequest((deleted,), 1_000))
    node.tell(ReadDone(held.token, ("offset 0 is below the start of the log",)))
    assert error(node) == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_topic_deleted_while_it_is_read_is_unknown() -> None:
    node = node_with()
    node.ask(*produce(b"a"))
    held = held_read(node, 2)
    deletion = DeleteTopicsRequest(topics=(DeleteTopicState(name="orders"),), timeout_ms=1_000)
    node.send((DELETE_TOPICS, 6, deletion))
    node.tell(ReadDone(held.token, ("orders-0 has no open log on this node",)))
    assert error(node) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_deleting_a_topic_answers_its_parked_fetches() -> None:
    node = node_with()
    node.connect(2)
    before = len(node.replies)
    node.send(fetch(0), connection=2)
    deletion = DeleteTopicsRequest(topics=(DeleteTopicState(name="orders"),), timeout_ms=1_000)
    node.send((DELETE_TOPICS, 6, deletion))
    told = [reply for reply in node.replies[before:] if reply.connection == 2]
    partition = told[0].message.responses[0].partitions[0]
    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_lost_connection_leaves_no_parked_fetch() -> None:
    node = node_with()
    node.connect(2)
    node.send(fetch(0), connection=2)
    node.tell(ConnectionLost(ConnectionId(2)))
    before = len(node.replies)
    node.ask(*produce(b"a"))
    node.pass_time(1_000)
    assert len(node.replies) == before + 1


def test_topics_are_found_by_their_id_from_version_13_on() -> None:
    node = node_with()
    node.ask(*produce(b"a"))
    topic_id = node.node._state.controller.committed.topics["orders"].topic_id
    for known, expected in ((topic_id, 0), (b"?" * 16, ErrorCode.UNKNOWN_TOPIC_ID)):
        asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_bytes=1 << 20, topics=(FetchTopic(topic_id=known, partitions=(asked,)),)
        )
        node.ask(1, 17, request)
        assert error(node) == expected


def test_a_replica_that_is_not_assigned_is_told_that_it_knows_more_than_we() -> None:
    node = node_with()
    node.ask(1, 12, fetch(0)[2]._replace(replica_id=2))
    assert error(node) == ErrorCode.UNKNOWN_LEADER_EPOCH


# Sessions


def begin_session(node: LoneNode, partitions: tuple[int, ...] = (0,)) -> int:
    reply = node.ask(*fetch(0, partitions=partitions, session=(0, 0), max_wait_ms=0))
    assert reply.session_id > 0
    return int(reply.session_id)


def test_an_incremental_fetch_names_only_what_changed() -> None:
    node = node_with(partitions=2)
    session = begin_session(node, (0, 1))
    reply = node.ask(*fetch(named=False, session=(session, 1), max_wait_ms=0))
    assert reply.responses == ()
    node.ask(*produce(b"a", partition=1))
    reply = node.ask(*fetch(named=False, session=(session, 2), max_wait_ms=0))
    assert [p.partition_index for p in reply.responses[0].partitions] == [1]


def test_a_moved_high_watermark_is_news_even_without_data() -> None:
    node = node_with()
    session = begin_session(node)
    node.ask(*produce(b"a"))
    reply = node.ask(*fetch(1, session=(session, 1), max_wait_ms=0))
    assert reply.responses[0].partitions[0].high_watermark == 1
    reply = node.ask(*fetch(named=False, session=(session, 2), max_wait_ms=0))
    assert reply.responses == ()


def test_a_partition_that_was_forgotten_is_served_no_more() -> None:
    node = node_with(partitions=2)
    session = begin_session(node, (0, 1))
    key, version, request = fetch(named=False, session=(session, 1), max_wait_ms=0)
    forgotten = (ForgottenTopic("orders", partitions=(1,)),)
    node.ask(key, version, request._replace(forgotten_topics_data=forgotten))
    for number in (0, 1):
        node.ask(*produce(b"a", partition=number))
    reply = node.ask(*fetch(named=False, session=(session, 2), max_wait_ms=0))
    assert [p.partition_index for p in reply.responses[0].partitions] == [0]


def test_a_wrong_session_or_epoch_is_refused() -> None:
    node = node_with()
    session = begin_session(node)
    reply = node.ask(*fetch(session=(session, 5)))
    assert reply.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    reply = node.ask(*fetch(session=(session + 1, 1)))
    assert reply.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_names_and_ids_do_not_mix_in_a_session() -> None:
    node = node_with()
    session = begin_session(node)
    request = FetchRequest(session_id=session, session_epoch=1, max_bytes=1)
    assert node.ask(1, 13, request).error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_final_fetch_ends_its_session() -> None:
    node = node_with()
    session = begin_session(node)
    node.ask(*fetch(session=(session, -1), max_wait_ms=0))
    reply = node.ask(*fetch(named=False, session=(session, 1)))
    assert reply.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_partitions_that_had_data_go_to_the_back_of_the_line() -> None:
    node = node_with(partitions=2)
    session = begin_session(node, (0, 1))
    node.ask(*produce(b"a", partition=0))
    node.ask(*fetch(named=False, session=(session, 1), max_wait_ms=0))
    node.ask(*produce(b"b", partition=1))
    reply = node.ask(*fetch(named=False, session=(session, 2), max_wait_ms=0))
    assert [p.partition_index for p in reply.responses[0].partitions] == [1, 0]


def test_sessions_are_bounded_and_idle_ones_give_way() -> None:
    node = node_with()
    sessions = [begin_session(node) for _ in range(FETCH_SESSIONS_MAX)]
    full = node.ask(*fetch(0, session=(0, 0), max_wait_ms=0))
    assert full.session_id == 0
    node.now += FETCH_SESSION_IDLE_MS
    assert begin_session(node) > 0
    gone = node.ask(*fetch(named=False, session=(sessions[0], 1)))
    assert gone.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_no_answer_is_larger_than_fetch_max_bytes_and_none_waits_for_more() -> None:
    node = node_with(fetch_max_bytes="2000")
    node.send(produce(b"x" * 1_500))
    node.send(produce(b"x" * 1_500))
    node.hold = {Read}
    node.send(fetch(0, min_bytes=2**31 - 1))  # asks for up to 16 MiB
    assert [effect.max_bytes for effect in node.held] == [2_000]
    before = len(node.replies)
    node.release()
    assert len(node.replies) == before + 1


def test_a_reader_of_committed_records_is_told_which_to_leave_out() -> None:
    node = node_with()
    node.ask(*produce(b"a"))
    aborted = AbortedTransaction(ProducerId(7), Offset(0), Offset(4), Offset(5))
    for isolation_level, told in ((1, ((7, 0),)), (0, None)):
        node.hold = {Read}
        key, version, message = fetch(0)
        node.send((key, version, message._replace(isolation_level=isolation_level)))
        held = node.held.popleft()
        node.hold.clear()
        assert held.committed is bool(isolation_level)
        node.tell(ReadDone(held.token, (b"records",), ((aborted,),) if held.committed else ()))
        (partition,) = node.replies[-1].message.responses[0].partitions
        assert partition.aborted_transactions == told
