"""A log that fails takes its replica out of service, and nothing else."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from asking import (
    DELETE_RECORDS,
    LIST_OFFSETS,
    METADATA,
    create,
    creation,
    delete,
    fetch,
    node_with,
    produce,
    written,
)
from cotidal.core.cluster.registered import LOST_DIRECTORY
from cotidal.errors import ErrorCode
from cotidal.invariants import EPOCHS_ASCEND, HIGH_WATERMARK_IN_LOG, OFFSETS_CONTIGUOUS
from cotidal.messages.rpc.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from cotidal.messages.rpc.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from cotidal.messages.rpc.metadata import MetadataRequest, MetadataRequestTopic
from cotidal.node.effects import (
    AdvanceStart,
    Append,
    Fault,
    FindTime,
    Note,
    OpenLog,
    Read,
    Retain,
    TruncateTo,
)
from cotidal.node.events import Appended, DirectoryFailed, LogFailed, LogOpened, ReadDone, TimeFound
from cotidal.values import (
    EpochEntry,
    LeaderEpoch,
    NodeId,
    Offset,
    TopicPartition,
    Uuid,
    WallMillis,
)
from lone_node import LoneNode

ORDERS = TopicPartition("orders", 0)
FULL = "orders-0: could not append to 00000000000000000000.log at offset 1: No space left on device"
FAILED = ErrorCode.KAFKA_STORAGE_ERROR


def fail(node: LoneNode, damaged_at: int | None = None) -> None:
    at = None if damaged_at is None else Offset(damaged_at)
    node.tell(LogFailed(ORDERS, node.logs[ORDERS].topic_id, FULL, at))


def delete_records(before: int) -> tuple[int, int, DeleteRecordsRequest]:
    asked = DeleteRecordsTopic("orders", (DeleteRecordsPartition(0, before),))
    return DELETE_RECORDS, 2, DeleteRecordsRequest(topics=(asked,), timeout_ms=1_000)


def list_offsets(timestamp: int) -> tuple[int, int, ListOffsetsRequest]:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    return LIST_OFFSETS, 7, ListOffsetsRequest(-1, 0, (ListOffsetsTopic("orders", (asked,)),))


def error_of(reply: Any) -> int:
    """Of the one partition that was asked for."""
    topic = (reply.responses if hasattr(reply, "responses") else reply.topics)[0]
    code: int = topic.partitions[0].error_code
    return code


def partition_of(node: LoneNode) -> Any:
    told = node.node._state.controller.committed.partition(*ORDERS)
    assert told is not None
    return told


def notes(node: LoneNode, level: str) -> list[str]:
    return [each.text for each in node.other if isinstance(each, Note) and each.level == level]


def test_it_is_told_once_in_a_sentence_with_what_to_do() -> None:
    node = node_with()
    fail(node)
    fail(node)
    (told,) = notes(node, "error")
    assert told == (
        f"{FULL}; this replica is offline: mend the disk and restart this node to open it again"
    )


@pytest.mark.parametrize(
    ("held", "request_"),
    [(AdvanceStart, delete_records(1)), (Append, None), (FindTime, list_offsets(5))],
)
def test_whatever_waits_for_the_log_fails(held: type, request_: Any) -> None:
    node = node_with()
    node.ask(*produce(b"x"))
    node.hold = {held}
    before = len(node.replies)
    node.send(produce(b"y") if request_ is None else request_)
    assert len(node.replies) == before
    fail(node)
    if held is FindTime:
        node.tell(TimeFound(node.held[0].token, None))
    (reply,) = [each.message for each in node.replies[before:]]
    code = written(reply)[0] if request_ is None else error_of(reply)
    assert code == FAILED


def test_a_fetch_that_waits_fails() -> None:
    node = node_with()
    node.connect(2)
    before = len(node.replies)
    node.send(fetch(0), connection=2)
    assert len(node.replies) == before
    fail(node)
    assert error_of(node.replies[before].message) == FAILED


def test_a_fetch_that_is_being_read_fails() -> None:
    node = node_with()
    node.ask(*produce(b"x"))
    node.hold = {Read}
    before = len(node.replies)
    node.send(fetch(0))
    fail(node, damaged_at=0)
    node.tell(ReadDone(node.held[0].token, ("damaged",)))
    assert error_of(node.replies[before].message) == FAILED


def test_later_requests_are_refused_and_other_partitions_go_on() -> None:
    node = node_with(partitions=2)
    node.ask(*produce(b"x"))
    fail(node)
    assert written(node.ask(*produce(b"x")))[0] == FAILED
    for request in (fetch(0), delete_records(1), list_offsets(5), list_offsets(-1)):
        assert error_of(node.ask(*request)) == FAILED
    assert written(node.ask(*produce(b"x", partition=1))) == (0, 0)


def test_the_controller_is_told_and_nobody_leads() -> None:
    node = node_with(partitions=2)
    fail(node)
    told = partition_of(node)
    assert (told.leader, told.isr) == (-1, ())
    assert told.directories == (LOST_DIRECTORY,)
    request = MetadataRequest(topics=(MetadataRequestTopic(name="orders"),))
    (topic,) = node.ask(METADATA, 12, request).topics
    leaders = {each.partition_index: each.leader_id for each in topic.partitions}
    assert leaders == {0: -1, 1: 1}


def test_a_log_that_opens_again_after_a_restart_is_led_again() -> None:
    node = node_with()
    node.ask(*produce(b"x"))
    fail(node)
    after = node.restart()
    told = partition_of(after)
    assert (told.leader, told.isr) == (1, (1,))
    assert told.directories == (b"d" * 16,)
    assert written(after.ask(*produce(b"y"))) == (0, 1)


def test_the_last_replica_is_not_cut_however_damaged() -> None:
    node = node_with()
    node.ask(*produce(b"x"))
    fail(node, damaged_at=0)
    node.pass_time(10_000)
    assert not any(isinstance(effect, TruncateTo) for effect in node.other)
    assert partition_of(node).leader == -1


def test_nothing_more_is_asked_of_a_log_that_has_failed() -> None:
    node = node_with(log_retention_check_interval_ms="1000")
    node.ask(*produce(b"x", producer_id=7, producer_epoch=0, base_sequence=0))
    fail(node)
    node.other.clear()
    node.pass_time(10_000)
    asked = [e for e in node.other if isinstance(e, Retain | AdvanceStart | TruncateTo)]
    assert asked == []


def test_a_topic_whose_log_has_failed_can_be_deleted() -> None:
    node = node_with()
    fail(node)
    node.ask(*delete("orders"))
    create(node, "orders")
    assert written(node.ask(*produce(b"x"))) == (0, 0)


def break_promise(node: LoneNode) -> None:
    """The high watermark lies past the end from now on."""
    node.node._state.hosted[ORDERS].replica.high_watermark = Offset(99)


def faults(node: LoneNode) -> list[str]:
    return [effect.promise for effect in node.other if isinstance(effect, Fault)]


def test_a_broken_promise_of_a_partition_takes_that_partition_offline() -> None:
    node = node_with(partitions=2)
    node.ask(*produce(b"x"))
    break_promise(node)
    before = len(node.replies)
    node.send(delete_records(1), produce(b"x", partition=1))
    deletion, other = (each.message for each in node.replies[before:])
    assert error_of(deletion) == FAILED
    assert written(other) == (0, 0)
    assert faults(node) == [HIGH_WATERMARK_IN_LOG]
    (told,) = notes(node, "error")
    assert told.startswith(f"orders-0: {HIGH_WATERMARK_IN_LOG} does not hold; this replica is off")
    assert partition_of(node).leader == -1
    assert written(node.ask(*produce(b"x")))[0] == FAILED


def test_a_broken_promise_fails_whatever_waited_for_the_partition() -> None:
    node = node_with()
    node.hold = {Append}
    before = len(node.replies)
    node.send(produce(b"x"), produce(b"y"))
    topic_id = node.logs[ORDERS].topic_id
    node.tell(Appended(ORDERS, topic_id, Offset(9), WallMillis(-1), False))
    assert [written(each.message)[0] for each in node.replies[before:]] == [FAILED, FAILED]
    assert faults(node) == [OFFSETS_CONTIGUOUS]
    node.tell(Appended(ORDERS, topic_id, Offset(1), WallMillis(-1), False))
    assert faults(node) == [OFFSETS_CONTIGUOUS]


def test_a_log_that_opens_with_a_broken_promise_takes_no_role() -> None:
    node = node_with(partitions=2)
    node.hold = {OpenLog}
    node.send(creation("new"))
    new = TopicPartition("new", 0)
    (opening,) = [effect for effect in node.held if effect.partition == new]
    epochs = (EpochEntry(LeaderEpoch(2), Offset(0)), EpochEntry(LeaderEpoch(1), Offset(5)))
    ends = (Offset(0), Offset(9), Offset(0))
    node.tell(LogOpened(new, opening.topic_id, *ends, epochs, None, (), node.directory))
    assert faults(node) == [EPOCHS_ASCEND]
    assert written(node.ask(*produce(b"x", topic="new")))[0] == FAILED
    assert written(node.ask(*produce(b"x"))) == (0, 0)


LEFT, RIGHT = Uuid(b"l" * 16), Uuid(b"r" * 16)


def node_with_two_directories() -> LoneNode:
    """orders-0 is in the left one, orders-1 in the right one."""
    node = LoneNode(log_dirs=(LEFT, RIGHT)).start()
    node.hold = {OpenLog}
    node.send(creation("orders", 2))
    opening, node.held = list(node.held), deque()
    node.hold.clear()
    for effect, node.directory in zip(opening, (LEFT, RIGHT), strict=True):
        for event in node._obey(effect):
            node.tell(event)
    return node


def directories(node: LoneNode) -> list[Uuid]:
    image = node.node._state.controller.committed
    return [each.directories[0] for each in image.topics["orders"].partitions.values()]


def test_the_controller_is_told_where_each_log_is() -> None:
    node = node_with_two_directories()
    assert directories(node) == [LEFT, RIGHT]
    assert node.node._state.controller.committed.brokers[NodeId(1)].log_dirs == (LEFT, RIGHT)


def test_a_directory_that_fails_takes_its_replicas_offline_and_no_others() -> None:
    node = node_with_two_directories()
    node.hold = {Append}
    before = len(node.replies)
    node.send(produce(b"x"), produce(b"x", partition=1))
    node.tell(DirectoryFailed(LEFT, "the log directory /l is offline: Input/output error"))
    assert [written(each.message)[0] for each in node.replies[before:]] == [FAILED]
    node.held.popleft()
    node.release()
    assert written(node.replies[-1].message) == (0, 0)
    assert notes(node, "error") == [
        "the log directory /l is offline: Input/output error; 1 replica in it went offline: mend"
        " the disk and restart this node to open it again"
    ]
    node.pass_time(100)
    image = node.node._state.controller.committed
    assert image.brokers[NodeId(1)].log_dirs == (RIGHT,)
    assert [each.leader for each in image.topics["orders"].partitions.values()] == [-1, 1]
    assert directories(node) == [LEFT, RIGHT], "what is known of the log may come back with it"


def test_a_log_that_fails_after_its_directory_is_not_told_again() -> None:
    node = node_with_two_directories()
    node.tell(DirectoryFailed(LEFT, "gone"))
    node.pass_time(100)
    fail(node)
    node.pass_time(100)
    assert directories(node) == [LEFT, RIGHT]
    assert len(notes(node, "error")) == 1
