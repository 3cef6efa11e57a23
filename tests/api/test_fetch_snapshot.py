"""A question for a piece of a snapshot survives the way there and back, and so does its answer."""

from __future__ import annotations

from cotidal.api import fetch_snapshot
from cotidal.api.quorum_talk import from_request, from_response, to_request, to_response
from cotidal.core.quorum.dialogue import ChunkRange, ChunkReply, FetchChunk, FetchedChunk, Hint
from cotidal.core.quorum.log_view import SnapshotId
from cotidal.core.quorum.voters import ReplicaKey
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.quorum import Endpoint
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from cotidal.values import LeaderEpoch, NodeId, Offset, Uuid

ID = SnapshotId(Offset(47), LeaderEpoch(3))
HINT = Hint(NodeId(2), LeaderEpoch(5), (Endpoint("CONTROLLER", "c2", 9093),))
QUESTION = FetchChunk(
    replica=ReplicaKey(NodeId(3), Uuid(b"d" * 16)),
    epoch=LeaderEpoch(5),
    snapshot=ID,
    position=4096,
    max_bytes=1024,
)


def nothing_to_read(_):
    raise AssertionError("there are no batches in it")


def test_a_question_is_the_same_after_the_wire():
    asking = to_request(QUESTION, "cluster")
    assert (asking.api, asking.version) == (ApiKey.FETCH_SNAPSHOT, fetch_snapshot.VERSION)
    assert asking.message.cluster_id == "cluster"
    assert from_request(asking.message) == QUESTION


def test_a_piece_is_the_same_after_the_wire():
    reply = ChunkReply(ErrorCode.NONE, HINT, ID, 5000, 4096, ChunkRange(4096, 1024))
    response = to_response(FetchSnapshotRequest(), reply, b"bytes")
    assert from_response(response, nothing_to_read) == reply._replace(
        chunk=FetchedChunk(5, b"bytes")
    )


def test_an_error_brings_no_piece_but_says_who_leads():
    reply = ChunkReply(ErrorCode.SNAPSHOT_NOT_FOUND, HINT, ID)
    response = to_response(FetchSnapshotRequest(), reply)
    assert response.topics[0].partitions[0].error_code == 98
    assert from_response(response, nothing_to_read) == reply


def test_an_error_of_the_whole_is_an_error_of_the_piece():
    told = from_response(FetchSnapshotResponse(error_code=104), nothing_to_read)
    assert isinstance(told, ChunkReply)
    assert (told.error, told.chunk) == (ErrorCode.INCONSISTENT_CLUSTER_ID, None)


def test_a_request_for_no_partition_or_several_is_refused():
    assert isinstance(from_request(FetchSnapshotRequest()), Refusal)
    topics = to_request(QUESTION, "cluster").message.topics * 2
    assert isinstance(from_request(FetchSnapshotRequest(topics=topics)), Refusal)
