"""A node sums its metadata log up, starts from that, hands it on in pieces, and loads another's."""

from __future__ import annotations

from typing import Any

from asking import create, delete, node_with, produce, written
from cotidal.api.quorum_talk import METADATA_TOPIC_ID
from cotidal.core.quorum.log_view import SnapshotId
from cotidal.errors import ErrorCode
from cotidal.messages.batch import NO_BATCHES
from cotidal.messages.rpc.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochRequestPartitionData,
    BeginQuorumEpochRequestTopicData,
    LeaderEndpoint,
)
from cotidal.messages.rpc.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    PartitionData,
    ReplicaState,
)
from cotidal.messages.rpc.fetch import SnapshotId as FetchedId
from cotidal.messages.rpc.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotRequestPartitionSnapshot,
    FetchSnapshotRequestSnapshotId,
    FetchSnapshotRequestTopicSnapshot,
)
from cotidal.node import effects as fx
from cotidal.node.effects import Endpoint
from cotidal.node.events import ConnectionId, ConnectionOpened, Replied
from cotidal.values import LeaderEpoch, NodeId, Offset, Uuid
from lone_node import LoneNode

FETCH, BEGIN_EPOCH, FETCH_SNAPSHOT = 1, 53, 59
OTHER = Uuid(b"o" * 16)
OFTEN = {"metadata_log_max_record_bytes_between_snapshots": "600"}
CONTROLLER_SIDE = 9


def busy_node(topics: int = 10) -> LoneNode:
    node = node_with(**OFTEN)
    for number in range(topics):
        create(node, f"t{number}")
    return node


def with_controller_side(node: LoneNode) -> LoneNode:
    node.tell(ConnectionOpened(ConnectionId(CONTROLLER_SIDE), "CONTROLLER", "node 2"))
    return node


def image(node: LoneNode) -> Any:
    return node.node._state.controller.committed


def epoch(node: LoneNode) -> int:
    return node.node._state.quorum.machine.state.epoch


def test_a_node_sums_up_its_log_now_and_then_and_keeps_the_newest_two() -> None:
    node = busy_node()
    assert len(node.snapshots) == 2
    older, newer = sorted(node.snapshots)
    assert node.node._state.quorum.machine.state.log.start_offset == older.end_offset
    assert 0 < older.end_offset < newer.end_offset <= node.node._state.quorum.applied


def test_a_node_starts_from_its_newest_snapshot_and_the_log_after_it() -> None:
    node = busy_node()
    node.ask(*delete("t3"))
    assert written(node.ask(*produce(b"before", topic="t4"))) == (0, 0)
    after = node.restart()
    assert image(after).topics.keys() == image(node).topics.keys()
    assert "t3" not in image(after).topics
    assert written(after.ask(*produce(b"after", topic="t4"))) == (0, 1)


def test_a_node_that_never_had_much_to_say_has_no_snapshot() -> None:
    assert node_with().snapshots == {}


def piece(
    node: LoneNode, id_: SnapshotId, position: int, max_bytes: int = 100
) -> tuple[int, int, Any]:
    partition = FetchSnapshotRequestPartitionSnapshot(
        partition=0,
        current_leader_epoch=epoch(node),
        snapshot_id=FetchSnapshotRequestSnapshotId(*id_),
        position=position,
        replica_directory_id=OTHER,
    )
    topic = FetchSnapshotRequestTopicSnapshot("__cluster_metadata", (partition,))
    return FETCH_SNAPSHOT, 1, FetchSnapshotRequest(None, 2, max_bytes, (topic,))


def test_a_snapshot_is_handed_out_in_pieces() -> None:
    node = with_controller_side(busy_node())
    newest = max(node.snapshots)
    data = b""
    while True:
        reply = node.ask(*piece(node, newest, len(data)), connection=CONTROLLER_SIDE)
        (told,) = reply.topics[0].partitions
        assert (told.error_code, told.position) == (0, len(data))
        assert 0 < len(told.unaligned_records) <= 100
        data += told.unaligned_records
        if len(data) == told.size:
            break
    assert data == node.snapshots[newest]


def error_of(node: LoneNode, id_: SnapshotId, position: int = 0) -> int:
    reply = node.ask(*piece(node, id_, position), connection=CONTROLLER_SIDE)
    return int(reply.topics[0].partitions[0].error_code)


def test_a_piece_of_nothing_and_one_beyond_the_end_are_refused() -> None:
    node = with_controller_side(busy_node())
    newest = max(node.snapshots)
    size = len(node.snapshots[newest])
    other = SnapshotId(newest.end_offset, LeaderEpoch(newest.epoch + 1))
    assert error_of(node, other) == ErrorCode.SNAPSHOT_NOT_FOUND
    assert error_of(node, newest, size) == ErrorCode.POSITION_OUT_OF_RANGE
    assert error_of(node, newest, -1) == ErrorCode.POSITION_OUT_OF_RANGE


def test_a_snapshot_that_goes_while_a_piece_is_read_is_not_found() -> None:
    node = with_controller_side(busy_node())
    newest = max(node.snapshots)
    node.hold.add(fx.ReadSnapshot)
    node.send(piece(node, newest, 0), connection=CONTROLLER_SIDE)
    del node.snapshots[newest]
    node.release()
    (told,) = node.replies[-1].message.topics[0].partitions
    assert (told.error_code, told.unaligned_records) == (ErrorCode.SNAPSHOT_NOT_FOUND, b"")


def test_who_is_behind_the_start_of_the_log_is_told_of_the_newest_snapshot() -> None:
    node = with_controller_side(busy_node())
    asked = FetchPartition(
        partition=0,
        current_leader_epoch=epoch(node),
        fetch_offset=0,
        last_fetched_epoch=0,
        partition_max_bytes=1 << 20,
        replica_directory_id=OTHER,
    )
    topic = FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(asked,))
    request = FetchRequest(replica_state=ReplicaState(2, -1), topics=(topic,))
    reply = node.ask(FETCH, 18, request, connection=CONTROLLER_SIDE)
    (told,) = reply.responses[0].partitions
    assert tuple(told.snapshot_id) == max(node.snapshots)
    assert (told.error_code, told.records) == (0, NO_BATCHES)


# the other side


def follower() -> LoneNode:
    """A voter with an empty disk that has been told that node 2 leads."""
    voters = tuple((NodeId(id_), Endpoint("CONTROLLER", f"c{id_}", 9093)) for id_ in (1, 2, 3))
    node = with_controller_side(LoneNode(voters=voters).begin())
    partition = BeginQuorumEpochRequestPartitionData(0, Uuid(bytes(16)), 2, 5)
    topic = BeginQuorumEpochRequestTopicData("__cluster_metadata", (partition,))
    endpoints = (LeaderEndpoint("CONTROLLER", "c2", 9093),)
    begin = BeginQuorumEpochRequest(None, 1, (topic,), endpoints)
    node.ask(BEGIN_EPOCH, 1, begin, connection=CONTROLLER_SIDE)
    return node


def last_call(node: LoneNode, api_key: int) -> fx.Call:
    return next(
        effect
        for effect in reversed(node.other)
        if isinstance(effect, fx.Call) and effect.api_key == api_key
    )


def told_to_load(node: LoneNode, id_: SnapshotId) -> None:
    partition = PartitionData(
        partition_index=0,
        high_watermark=id_.end_offset + 4,
        log_start_offset=id_.end_offset - 2,
        current_leader=LeaderIdAndEpoch(2, 5),
        snapshot_id=FetchedId(*id_),
        records=NO_BATCHES,
    )
    topic = FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=(partition,))
    node.tell(Replied(last_call(node, FETCH).token, FetchResponse(responses=(topic,))))


def test_a_follower_loads_a_snapshot_and_goes_on_from_its_end() -> None:
    leader = with_controller_side(busy_node())
    newest = max(leader.snapshots)
    id_ = SnapshotId(newest.end_offset, LeaderEpoch(4))
    node = follower()
    told_to_load(node, id_)
    asked = last_call(node, FETCH_SNAPSHOT).message.topics[0].partitions[0]
    assert (tuple(asked.snapshot_id), asked.position) == (id_, 0)
    assert (asked.current_leader_epoch, asked.replica_directory_id) == (5, Uuid(b"d" * 16))
    size = len(leader.snapshots[newest])
    for position in (0, 100):
        told = leader.ask(
            *piece(leader, newest, position, 100 if position == 0 else size),
            connection=CONTROLLER_SIDE,
        )
        (sent,) = told.topics[0].partitions
        partition = sent._replace(
            snapshot_id=sent.snapshot_id._replace(epoch=4),
            current_leader=sent.current_leader._replace(leader_id=2, leader_epoch=5),
        )
        answer = told._replace(
            topics=(told.topics[0]._replace(partitions=(partition,)),), node_endpoints=()
        )
        assert image(node).topics == {}
        node.tell(Replied(last_call(node, FETCH_SNAPSHOT).token, answer))
    assert fx.InstallSnapshot(id_) in node.metadata
    assert node.snapshots[id_] == leader.snapshots[newest]
    assert "t0" in image(node).topics
    assert image(node).brokers == image(leader).brokers
    wanted = last_call(node, FETCH).message.topics[0].partitions[0]
    assert (wanted.fetch_offset, wanted.last_fetched_epoch) == (id_.end_offset, 4)
    assert node.node._state.quorum.applied == Offset(id_.end_offset)
