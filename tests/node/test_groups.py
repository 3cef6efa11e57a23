"""Groups through a whole node: coordinators are loaded, written to, and given up."""

from __future__ import annotations

from typing import Any

import pytest

from asking import create, delete, produce, written
from cotidal.errors import ErrorCode
from cotidal.limits import COORDINATOR_LOAD_BYTES
from cotidal.messages.rpc import (
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from cotidal.node import effects as fx
from cotidal.node import events as ev
from cotidal.node.coordinators import LOAD_PATIENCE_MS
from cotidal.values import TopicPartition, Uuid
from cotidal.wire.codec import decode_response, encode_response
from cotidal.wire.records import Record, build_batch, read_records
from lone_node import LoneNode

COMMIT, FETCH, FIND, JOIN, BEAT, LEAVE, SYNC = 8, 9, 10, 11, 12, 13, 14
DESCRIBE, LIST, DELETE, DELETE_OFFSETS = 15, 16, 42, 47
OFFSETS = TopicPartition("__consumer_offsets", 0)
SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}


def node_with_groups(**settings: str) -> LoneNode:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    node = LoneNode(SETTINGS | given).start()
    create(node, "orders", 2)
    found = node.ask(FIND, 4, find_coordinator.FindCoordinatorRequest(coordinator_keys=("g",)))
    assert found.coordinators[0].error_code == 0
    return node


def committing(offset: int, group: str = "g", metadata: str = "", **fields: Any) -> Any:
    partition = offset_commit.OffsetCommitRequestPartition(0, offset, -1, metadata)
    topic = offset_commit.OffsetCommitRequestTopic("orders", partitions=(partition,))
    return offset_commit.OffsetCommitRequest(group, topics=(topic,))._replace(**fields)


def commit(node: LoneNode, offset: int, **fields: Any) -> int:
    reply = node.ask(COMMIT, 8, committing(offset, **fields))
    found: int = reply.topics[0].partitions[0].error_code
    return found


def fetching(group: str = "g") -> Any:
    topic = offset_fetch.OffsetFetchRequestTopics("orders", partition_indexes=(0,))
    one = offset_fetch.OffsetFetchRequestGroup(group, topics=(topic,))
    return offset_fetch.OffsetFetchRequest(groups=(one,))


def fetched(node: LoneNode, group: str = "g") -> tuple[int, int]:
    """(error, offset)."""
    (told,) = node.ask(FETCH, 8, fetching(group)).groups
    if told.error_code:
        return told.error_code, -1
    return 0, told.topics[0].partitions[0].committed_offset


def joining(member_id: str = "", **fields: Any) -> Any:
    protocols = (join_group.JoinGroupRequestProtocol("range", b"said"),)
    return join_group.JoinGroupRequest(
        "g", 10_000, 5_000, member_id, None, "consumer", protocols
    )._replace(**fields)


def member(node: LoneNode) -> Any:
    """A group of one, stable."""
    given = node.ask(JOIN, 9, joining())
    assert given.error_code == ErrorCode.MEMBER_ID_REQUIRED
    node.send((JOIN, 9, joining(given.member_id)))
    node.pass_time(0)
    joined = node.replies[-1].message
    assert joined.error_code == 0
    mine = sync_group.SyncGroupRequestAssignment(joined.member_id, b"mine")
    synced = node.ask(
        SYNC,
        5,
        sync_group.SyncGroupRequest("g", joined.generation_id, joined.member_id, None)._replace(
            assignments=(mine,)
        ),
    )
    assert (synced.error_code, synced.assignment) == (0, b"mine")
    return joined


def beat(node: LoneNode, joined: Any) -> int:
    asked = heartbeat.HeartbeatRequest("g", joined.generation_id, joined.member_id)
    found: int = node.ask(BEAT, 4, asked).error_code
    return found


def test_the_topic_of_the_coordinators_is_made_when_somebody_first_asks():
    node = LoneNode(SETTINGS | {"auto.create.topics.enable": "false"}).start()
    assert OFFSETS not in node.logs
    node.ask(FIND, 0, find_coordinator.FindCoordinatorRequest("g"))
    assert OFFSETS in node.logs
    opened = [each for each in node.node._state.hosted.values() if each.coordinated]
    assert opened[0].settings["cleanup.policy"] == "compact"


def test_offsets_survive_a_crash():
    node = node_with_groups()
    assert commit(node, 5) == commit(node, 6) == 0
    assert fetched(node) == (0, 6)
    after = node.restart()
    assert fetched(after) == (0, 6)


def test_members_survive_a_crash_of_their_coordinator():
    node = node_with_groups()
    joined = member(node)
    after = node.restart()
    assert beat(after, joined) == 0
    told = after.ask(DESCRIBE, 6, describe_groups.DescribeGroupsRequest(("g",))).groups[0]
    assert (told.group_state, told.protocol_data) == ("Stable", "range")
    assert told.members[0].member_assignment == b"mine"
    assert told.members[0].client_host == "/127.0.0.1"


def test_a_commit_is_answered_when_it_is_written():
    node = node_with_groups()
    node.hold = {fx.Append}
    before = len(node.replies)
    node.send((COMMIT, 8, committing(5)))
    assert len(node.replies) == before
    node.connect(2)
    node.send((FETCH, 8, fetching()), connection=2)
    assert len(node.replies) == before, "nobody may hear of it yet"
    node.release()
    assert len(node.replies) == before + 2
    assert node.replies[-1].message.groups[0].topics[0].partitions[0].committed_offset == 5


def test_a_commit_that_takes_too_long_is_refused():
    node = node_with_groups(offsets_commit_timeout_ms="2000")
    node.hold = {fx.Append}
    node.send((COMMIT, 8, committing(5)))
    before = len(node.replies)
    node.pass_time(2_000)
    assert len(node.replies) == before + 1
    told = node.replies[-1].message.topics[0].partitions[0].error_code
    assert told == ErrorCode.COORDINATOR_NOT_AVAILABLE
    node.release()
    assert fetched(node) == (0, 5), "it was written all the same"


def test_an_assignment_that_takes_too_long_is_refused_and_all_join_again():
    node = node_with_groups(offsets_commit_timeout_ms="2000")
    joined = member(node)
    node.send((JOIN, 9, joining(joined.member_id)))
    again = node.replies[-1].message
    node.hold = {fx.Append}
    asked = sync_group.SyncGroupRequest("g", again.generation_id, again.member_id)
    node.send((SYNC, 5, asked))
    before = len(node.replies)
    node.pass_time(2_000)
    assert len(node.replies) == before + 1
    assert node.replies[-1].message.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    node.release()
    assert beat(node, again) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_log_is_loaded_piece_by_piece_and_questions_wait_for_a_moment():
    node = node_with_groups()
    for offset in range(30):
        commit(node, offset, metadata="x" * 4_000)
    size = sum(len(data) for _, _, data in node.logs[OFFSETS].batches)
    assert size > COORDINATOR_LOAD_BYTES
    after = LoneNode(SETTINGS)
    after.logs, after.metadata = node.logs, list(node.metadata)
    after.hold = {fx.Read}
    states = [w.state for w in node.metadata if isinstance(w, fx.QuorumState)]
    batches = tuple(w for w in node.metadata if isinstance(w, fx.MetadataBatch))
    after.tell(ev.Started(states[-1], batches, Uuid(b"j" * 16), ev.WallMillis(1)))
    after.connect(1)
    after.send((FETCH, 8, fetching()))
    assert after.replies == [], "it waits"
    after.pass_time(LOAD_PATIENCE_MS)
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert after.replies[-1].message.groups[0].error_code == loading
    asked = heartbeat.HeartbeatRequest("g", 1, "m")
    after.send((BEAT, 4, asked))
    after.pass_time(LOAD_PATIENCE_MS)
    assert after.replies[-1].message.error_code == 0, "members go on meanwhile"
    after.send((FETCH, 8, fetching()))
    after.release()
    told = after.replies[-1].message.groups[0]
    assert told.topics[0].partitions[0].committed_offset == 29
    assert after.reads > 1


def test_records_that_cannot_be_read_do_not_stop_a_coordinator():
    node = node_with_groups()
    commit(node, 5)
    log = node.logs[OFFSETS]
    bad = build_batch([Record(b"\x00\x01garbage", b"\x00\x01"), Record(None, b"x")], base_offset=1)
    log.batches.append((1, 3, bad))
    log.end = 3
    after = node.restart()
    assert fetched(after) == (0, 5)
    notes = [each.text for each in after.other if isinstance(each, fx.Note)]
    assert any("unreadable" in text for text in notes)


def test_a_coordinator_that_is_deposed_tells_those_who_wait():
    node = node_with_groups(group_initial_rebalance_delay_ms="1000")
    node.send((JOIN, 0, joining()))
    before = len(node.replies)
    topic_id = node.logs[OFFSETS].topic_id
    node.tell(ev.LogFailed(OFFSETS, topic_id, "the disk is gone"))
    assert len(node.replies) == before + 1
    assert node.replies[-1].message.error_code == ErrorCode.NOT_COORDINATOR
    assert commit(node, 5) == ErrorCode.NOT_COORDINATOR


def test_groups_are_coordinated_elsewhere_when_their_topic_is_not_there():
    node = LoneNode(SETTINGS).start()
    create(node, "orders")
    assert commit(node, 5) == ErrorCode.NOT_COORDINATOR
    assert node.ask(LIST, 5, list_groups.ListGroupsRequest()).groups == ()


def test_offsets_of_a_topic_that_is_not_there_are_refused():
    node = node_with_groups()
    topic = offset_commit.OffsetCommitRequestTopic(
        "none", partitions=(offset_commit.OffsetCommitRequestPartition(0, 1),)
    )
    both = (topic, committing(5).topics[0])
    told = node.ask(COMMIT, 8, committing(5, topics=both)).topics
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [each.partitions[0].error_code for each in told] == [unknown, 0]
    assert fetched(node) == (0, 5)


def test_topics_are_named_by_their_ids_in_the_newest_versions():
    node = node_with_groups()
    topic_id = node.logs[TopicPartition("orders", 0)].topic_id
    partition = offset_commit.OffsetCommitRequestPartition(0, 5)
    none = Uuid(b"?" * 16)
    topics = tuple(
        offset_commit.OffsetCommitRequestTopic("", each, (partition,)) for each in (topic_id, none)
    )
    told = node.ask(COMMIT, 10, committing(5, topics=topics)).topics
    errors = [each.partitions[0].error_code for each in told]
    assert errors == [0, ErrorCode.UNKNOWN_TOPIC_ID]
    wanted = tuple(
        offset_fetch.OffsetFetchRequestTopics("", each, (0,)) for each in (topic_id, none)
    )
    for topics_wanted in (wanted, None):
        group = offset_fetch.OffsetFetchRequestGroup("g", topics=topics_wanted)
        (found,) = node.ask(FETCH, 10, offset_fetch.OffsetFetchRequest(groups=(group,))).groups
        assert found.topics[0].topic_id == topic_id
        assert found.topics[0].partitions[0].committed_offset == 5
    assert len(found.topics) == 1


def test_offsets_of_a_deleted_topic_are_gone():
    node = node_with_groups()
    commit(node, 5)
    node.ask(*delete("orders"))
    create(node, "orders")
    assert fetched(node) == (0, -1)


def test_offsets_of_a_topic_that_was_deleted_while_nobody_coordinated_are_gone():
    node = node_with_groups()
    commit(node, 5)
    node.hold = {fx.Append}
    node.ask(*delete("orders"))
    assert node.held, "what takes the offsets away is never written"
    after = node.restart()
    create(after, "orders")
    assert fetched(after) == (0, -1)


def test_members_of_no_group_are_unknown_each_by_itself():
    node = node_with_groups()
    gone = tuple(leave_group.MemberIdentity(name) for name in ("a", "b"))
    left = node.ask(LEAVE, 5, leave_group.LeaveGroupRequest("g", members=gone))
    assert left.error_code == 0
    assert [each.error_code for each in left.members] == [ErrorCode.UNKNOWN_MEMBER_ID] * 2
    assert node.ask(LEAVE, 5, leave_group.LeaveGroupRequest("g")).members == ()
    old = node.ask(LEAVE, 2, leave_group.LeaveGroupRequest("g", "a"))
    assert old.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_commit_for_topics_that_are_not_there_asks_no_coordinator():
    node = node_with_groups()
    partition = (offset_commit.OffsetCommitRequestPartition(0, 5),)
    topic = offset_commit.OffsetCommitRequestTopic("none", partitions=partition)
    request = offset_commit.OffsetCommitRequest("g", 7, "ghost", topics=(topic,))
    answer = node.ask(COMMIT, 9, request).topics[0].partitions[0]
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_member_leaves_and_its_group_can_be_deleted():
    node = node_with_groups()
    joined = member(node)
    commit(node, 5, generation_id_or_member_epoch=joined.generation_id, member_id=joined.member_id)
    asked = delete_groups.DeleteGroupsRequest(("g", "none"))
    errors = [each.error_code for each in node.ask(DELETE, 2, asked).results]
    assert errors == [ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND]
    gone = leave_group.MemberIdentity(joined.member_id)
    left = node.ask(LEAVE, 5, leave_group.LeaveGroupRequest("g", members=(gone,)))
    assert [each.error_code for each in left.members] == [0]
    listed = node.ask(LIST, 5, list_groups.ListGroupsRequest())
    assert listed.groups == (list_groups.ListedGroup("g", "consumer", "Empty", "classic"),)
    errors = [each.error_code for each in node.ask(DELETE, 2, asked).results]
    assert errors == [0, ErrorCode.GROUP_ID_NOT_FOUND]
    assert fetched(node) == (0, -1)
    assert fetched(node.restart()) == (0, -1)


def test_groups_are_listed_by_state_and_type():
    node = node_with_groups()
    commit(node, 1, group="simple")
    member(node)

    def names(**fields: Any) -> list[str]:
        asked = list_groups.ListGroupsRequest(**fields)
        return [each.group_id for each in node.ask(LIST, 5, asked).groups]

    assert sorted(names()) == ["g", "simple"]
    assert names(states_filter=("sTable",)) == ["g"]
    assert names(types_filter=("consumer",)) == []
    assert sorted(names(types_filter=("Classic",))) == ["g", "simple"]


def test_groups_need_names():
    node = node_with_groups()
    answer = node.ask(JOIN, 9, joining(group_id=""))
    assert answer.error_code == ErrorCode.INVALID_GROUP_ID


def test_what_is_written_are_kafkas_own_records():
    node = node_with_groups()
    commit(node, 5, metadata="note")
    ((_, _, data),) = node.logs[OFFSETS].batches
    (record,) = read_records(data)
    assert record.key == b"\x00\x01\x00\x01g\x00\x06orders\x00\x00\x00\x00"
    assert record.value is not None
    assert record.value.startswith(b"\x00\x04" + (5).to_bytes(8, "big"))


def test_commits_too_large_for_a_batch_are_refused():
    node = node_with_groups(message_max_bytes="400")
    assert commit(node, 5, metadata="x" * 400) == ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    assert fetched(node) == (0, -1)


def test_producers_do_not_write_where_coordinators_do():
    node = node_with_groups()
    assert written(node.ask(*produce(b"x")))[0] == 0
    refused = written(node.ask(*produce(b"x", topic="__consumer_offsets")))[0]
    assert refused == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert fetched(node.restart()) == (0, -1)


REQUESTS: dict[int, Any] = {
    COMMIT: committing(5),
    FETCH: fetching()._replace(
        group_id="g", topics=(offset_fetch.OffsetFetchRequestTopic("orders", (0, 1)),)
    ),
    FIND: find_coordinator.FindCoordinatorRequest("g", coordinator_keys=("g",)),
    JOIN: joining("ghost"),
    BEAT: heartbeat.HeartbeatRequest("g", 1, "m"),
    LEAVE: leave_group.LeaveGroupRequest("g", "m", (leave_group.MemberIdentity("m"),)),
    SYNC: sync_group.SyncGroupRequest("g", 1, "m"),
    DESCRIBE: describe_groups.DescribeGroupsRequest(("g", "none")),
    LIST: list_groups.ListGroupsRequest(),
    DELETE: delete_groups.DeleteGroupsRequest(("none",)),
    DELETE_OFFSETS: offset_delete.OffsetDeleteRequest(
        "g",
        (
            offset_delete.OffsetDeleteRequestTopic(
                "orders", (offset_delete.OffsetDeleteRequestPartition(0),)
            ),
        ),
    ),
}
VERSIONS = {
    COMMIT: (2, 10), FETCH: (1, 10), FIND: (0, 6), JOIN: (0, 9), BEAT: (0, 4), LEAVE: (0, 5),
    SYNC: (0, 5), DESCRIBE: (0, 6), LIST: (0, 5), DELETE: (0, 2), DELETE_OFFSETS: (0, 0),
}  # fmt: skip


@pytest.mark.parametrize("served", [True, False], ids=["coordinator", "not coordinator"])
@pytest.mark.parametrize(
    ("key", "version"),
    [(key, version) for key, (a, b) in VERSIONS.items() for version in range(a, b + 1)],
)
def test_every_answer_can_be_written_in_its_version(key, version, served):
    node = node_with_groups() if served else LoneNode(SETTINGS).start()
    if served:
        member(node)
        commit(node, 3, group="h")
    answer = node.ask(key, version, REQUESTS[key])
    written = b"".join(encode_response(key, version, answer))
    assert type(decode_response(key, version, written)) is type(answer)
