"""Changing who votes, through a node: who may be asked, what is refused, when it is answered."""

from __future__ import annotations

from typing import Any

import pytest

from cotidal.api.quorum_talk import METADATA_TOPIC_ID
from cotidal.core.quorum.log_view import SnapshotId
from cotidal.core.quorum.voters import key_of
from cotidal.errors import ErrorCode
from cotidal.messages.records.quorum import (
    Endpoint as VoterEndpoint,
)
from cotidal.messages.records.quorum import (
    KRaftVersionFeature,
    KRaftVersionRecord,
    VotersRecord,
    VotersRecordVoter,
)
from cotidal.messages.rpc.add_raft_voter import AddRaftVoterRequest, Listener
from cotidal.messages.rpc.api_versions import ApiVersionsResponse, SupportedFeatureKey
from cotidal.messages.rpc.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from cotidal.messages.rpc.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from cotidal.messages.rpc.remove_raft_voter import RemoveRaftVoterRequest
from cotidal.messages.rpc.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from cotidal.messages.rpc.update_raft_voter import Listener as UpdatedListener
from cotidal.messages.rpc.update_raft_voter import UpdateRaftVoterRequest
from cotidal.node import effects as fx
from cotidal.node.effects import Endpoint
from cotidal.node.events import CallFailed, ConnectionId, ConnectionOpened, Replied
from cotidal.values import LeaderEpoch, NodeId, Offset, Uuid
from cotidal.wire.codec import decode_response, encode_response
from cotidal.wire.metadata_snapshot import encode_metadata_snapshot
from lone_node import WALL, LoneNode

FETCH, DESCRIBE, FEATURES, ADD, REMOVE, UPDATE = 1, 55, 57, 80, 81, 82
CONTROLLER_SIDE = 9
MINE, OTHER = Uuid(b"d" * 16), Uuid(b"o" * 16)
FORMATTED = SnapshotId(Offset(0), LeaderEpoch(0))


def voter(node_id: int, directory: Uuid) -> VotersRecordVoter:
    point = VoterEndpoint("CONTROLLER", "localhost", 9092 + node_id)
    return VotersRecordVoter(node_id, directory, (point,), KRaftVersionFeature(0, 1))


def standalone() -> LoneNode:
    """A node that was formatted to vote alone, for now."""
    node = LoneNode()
    pieces = encode_metadata_snapshot(
        (),
        control=(KRaftVersionRecord(kraft_version=1), VotersRecord(voters=(voter(1, MINE),))),
        epoch=LeaderEpoch(0),
        log_wall=WALL,
        wall=WALL,
    )
    node.snapshots[FORMATTED] = b"".join(pieces)
    node.start_from_snapshots()
    node.tell(ConnectionOpened(ConnectionId(CONTROLLER_SIDE), "CONTROLLER", "node 2"))
    return node


def state(node: LoneNode) -> Any:
    return node.node._state.quorum.machine.state


def follows(node: LoneNode, offset: int | None = None) -> None:
    """Node 2 fetches at our end: it has caught up, and acknowledges what it has."""
    end = state(node).log.end_offset if offset is None else offset
    asked = FetchPartition(
        partition=0,
        current_leader_epoch=state(node).epoch,
        fetch_offset=end,
        last_fetched_epoch=state(node).log.last_epoch,
        partition_max_bytes=1 << 20,
        replica_directory_id=OTHER,
        high_watermark=state(node).high_watermark,
    )
    topic = FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(asked,))
    request = FetchRequest(replica_state=ReplicaState(2, -1), topics=(topic,))
    node.send((FETCH, 18, request), connection=CONTROLLER_SIDE)


def addition(**fields: Any) -> tuple[int, int, AddRaftVoterRequest]:
    request = AddRaftVoterRequest(
        cluster_id=None,
        timeout_ms=1_000,
        voter_id=2,
        voter_directory_id=OTHER,
        listeners=(Listener("CONTROLLER", "c2", 9093),),
    )
    return ADD, 1, request._replace(**fields)


def told(node: LoneNode) -> tuple[int, str | None]:
    """The last reply, which its API can write and read again."""
    reply = node.replies[-1]
    data = b"".join(encode_response(reply.api_key, reply.api_version, reply.message))
    assert decode_response(reply.api_key, reply.api_version, data) == reply.message
    return reply.message.error_code, reply.message.error_message


def supports(node: LoneNode, *features: SupportedFeatureKey, error: int = 0) -> None:
    """The new voter answers what it was asked about."""
    call = node.other[-1]
    assert isinstance(call, fx.Call)
    assert (call.api_key, call.peer, call.endpoint) == (
        18,
        2,
        Endpoint("CONTROLLER", "c2", 9093),
    )
    answer = ApiVersionsResponse(error_code=error, supported_features=features)
    node.tell(Replied(call.token, answer))


KRAFT = SupportedFeatureKey("kraft.version", 0, 1)


def with_two_voters() -> LoneNode:
    node = standalone()
    follows(node)
    node.send(addition())
    supports(node, KRAFT)
    follows(node)  # acknowledges the record
    assert told(node) == (0, None)
    return node


def test_what_formatting_says_is_in_force_from_the_start() -> None:
    node = standalone()
    latest = state(node).voters.latest
    assert (latest.voters.ids, latest.kraft_version) == ((1,), 1)


def test_a_voter_is_added_when_it_has_caught_up_and_the_answer_waits_for_the_commit() -> None:
    node = standalone()
    follows(node)
    node.send(addition())
    before = len(node.replies)
    supports(node, KRAFT)
    assert state(node).voter_set.ids == (1, 2)
    assert len(node.replies) == before
    follows(node)
    assert told(node) == (0, None)
    (new,) = [each for each in state(node).voter_set.voters if each.voter_id == 2]
    assert new.endpoints == (VoterEndpoint("CONTROLLER", "c2", 9093),)


def test_who_does_not_want_to_wait_is_answered_when_it_is_on_the_leaders_disk() -> None:
    node = standalone()
    follows(node)
    node.send(addition(ack_when_committed=False))
    supports(node, KRAFT)
    assert node.replies[-1].api_key == ADD
    assert told(node) == (0, None)


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID, "this is cluster lone"),
        ({"listeners": ()}, ErrorCode.INVALID_REQUEST, "without its listener CONTROLLER"),
        ({"voter_directory_id": Uuid(bytes(16))}, ErrorCode.INVALID_REQUEST, "a directory id"),
        ({"voter_id": -1}, ErrorCode.INVALID_REQUEST, "an id"),
    ],
)
def test_what_is_wrong_whoever_leads_is_refused_at_once(
    fields: dict[str, Any], error: ErrorCode, words: str
) -> None:
    node = standalone()
    node.send(addition(**fields))
    code, sentence = told(node)
    assert code == error
    assert words in (sentence or "")


def test_a_voter_that_has_not_caught_up_is_refused() -> None:
    node = standalone()
    node.send(addition())
    supports(node, KRAFT)
    code, sentence = told(node)
    assert code == ErrorCode.REQUEST_TIMED_OUT
    assert "has not caught up" in (sentence or "")


def test_a_voter_that_does_not_know_the_kraft_version_in_force_is_refused() -> None:
    node = standalone()
    follows(node)
    node.send(addition())
    supports(node)
    code, sentence = told(node)
    assert code == ErrorCode.INVALID_REQUEST
    assert "supports kraft.version 0 to 0, not 1" in (sentence or "")


def test_a_voter_that_answers_with_an_error_or_not_at_all_is_refused() -> None:
    node = standalone()
    node.send(addition())
    supports(node, error=35)
    assert told(node)[0] == ErrorCode.INVALID_REQUEST
    node.send(addition())
    node.tell(CallFailed(node.other[-1].token, True, "nobody listens there"))
    code, sentence = told(node)
    assert code == ErrorCode.REQUEST_TIMED_OUT
    assert sentence == "node 2 does not answer on its listener: nobody listens there"


def test_a_voter_that_votes_already_is_refused() -> None:
    node = with_two_voters()
    node.send(addition())
    supports(node, KRAFT)
    assert told(node) == (ErrorCode.DUPLICATE_VOTER, "node 2 is a voter already")


def test_voters_that_are_fixed_cannot_be_changed() -> None:
    node = LoneNode().start()
    node.send((REMOVE, 0, RemoveRaftVoterRequest(None, 1, MINE)))
    code, sentence = told(node)
    assert code == ErrorCode.UNSUPPORTED_VERSION
    assert "the voters are static" in (sentence or "")


def test_one_change_at_a_time() -> None:
    node = standalone()
    follows(node)
    node.send(addition())
    supports(node, KRAFT)
    node.connect(3)
    node.send((REMOVE, 0, RemoveRaftVoterRequest(None, 1, MINE)), connection=3)
    assert told(node) == (
        ErrorCode.REQUEST_TIMED_OUT,
        "another change of the voters is under way",
    )


def features(*updates: tuple[str, int]) -> UpdateFeaturesRequest:
    return UpdateFeaturesRequest(feature_updates=tuple(FeatureUpdateKey(*each) for each in updates))


def test_fixed_voters_become_a_record_when_kraft_version_is_raised() -> None:
    node = LoneNode().start()
    assert node.ask(FEATURES, 2, features(("kraft.version", 1))).error_code == 0
    latest = state(node).voters.latest
    assert latest.kraft_version == 1
    assert [key_of(each) for each in latest.voters.voters] == [(1, MINE)]
    node.send((REMOVE, 0, RemoveRaftVoterRequest(None, 1, MINE)))
    assert told(node) == (ErrorCode.INVALID_REQUEST, "node 1 is the only voter")


@pytest.mark.parametrize("version", [0, 1, 2])
def test_kraft_version_never_goes_down_and_is_raised_by_itself(version: int) -> None:
    for updates, code in (
        ((("kraft.version", 2),), ErrorCode.INVALID_UPDATE_VERSION),
        ((("kraft.version", 1), ("group.version", 1)), ErrorCode.INVALID_REQUEST),
    ):
        refused = LoneNode().start().ask(FEATURES, version, features(*updates))
        assert (refused.error_code, bool(refused.error_message)) == (code, True)
    node = LoneNode().start()
    node.ask(FEATURES, version, features(("kraft.version", 1)))
    down = node.ask(FEATURES, version, features(("kraft.version", 0)))
    assert down.error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_a_kraft_version_that_is_there_already_does_not_stand_in_the_way_of_others() -> None:
    node = LoneNode().start()
    told_ = node.ask(FEATURES, 2, features(("kraft.version", 0), ("group.version", 1)))
    assert told_.error_code == 0


def test_a_voter_is_removed_and_one_that_is_none_is_not_found() -> None:
    node = with_two_voters()
    node.send((REMOVE, 0, RemoveRaftVoterRequest(None, 2, MINE)))
    assert told(node)[0] == ErrorCode.VOTER_NOT_FOUND
    node.send((REMOVE, 0, RemoveRaftVoterRequest("lone", 2, OTHER)))
    assert told(node) == (0, None)
    assert state(node).voter_set.ids == (1,)
    node.send((REMOVE, 0, RemoveRaftVoterRequest(None, 1, MINE)))
    assert told(node) == (ErrorCode.INVALID_REQUEST, "node 1 is the only voter")
    node.send((REMOVE, 0, RemoveRaftVoterRequest("other", 1, MINE)))
    assert told(node)[0] == ErrorCode.INCONSISTENT_CLUSTER_ID


def test_a_voter_tells_where_it_listens_now() -> None:
    node = with_two_voters()
    request = UpdateRaftVoterRequest(
        cluster_id=None,
        current_leader_epoch=state(node).epoch,
        voter_id=2,
        voter_directory_id=OTHER,
        listeners=(UpdatedListener("CONTROLLER", "elsewhere", 1234),),
        kraft_version_feature=KRaftVersionFeature(0, 1),  # type: ignore[arg-type]
    )
    node.tell(ConnectionOpened(ConnectionId(8), "CONTROLLER", "node 2"))
    node.send((UPDATE, 0, request), connection=8)
    follows(node)
    reply = node.replies[-1].message
    assert (reply.error_code, reply.current_leader.leader_id) == (0, 1)
    assert state(node).voter_set.endpoints_of(NodeId(2))[0].host == "elsewhere"


def description() -> tuple[int, int, DescribeQuorumRequest]:
    partition = DescribeQuorumRequestPartitionData(0)
    topic = DescribeQuorumRequestTopicData("__cluster_metadata", (partition,))
    return DESCRIBE, 2, DescribeQuorumRequest((topic,))


def test_voters_and_observers_are_told_with_their_directories() -> None:
    node = standalone()
    follows(node)
    reply = node.ask(*description())
    (told_,) = reply.topics[0].partitions
    (voting,) = told_.current_voters
    (observing,) = told_.observers
    assert (voting.replica_id, voting.replica_directory_id) == (1, MINE)
    assert (observing.replica_id, observing.replica_directory_id) == (2, OTHER)
    assert [(each.node_id, each.listeners[0].port) for each in reply.nodes] == [(1, 9093)]


def led_by_another() -> LoneNode:
    """A node that has just resigned: it leads no more, and knows no leader."""
    node = with_two_voters()
    node.connect(1)
    node.pass_time(10_000)
    assert type(state(node).role).__name__ != "Leader"
    return node


@pytest.mark.parametrize("request_", [description(), addition()], ids=["describe", "add"])
def test_who_does_not_lead_refuses_a_controller_and_says_so(request_: Any) -> None:
    node = led_by_another()
    node.tell(ConnectionOpened(ConnectionId(8), "CONTROLLER", "somewhere"))
    node.send(request_, connection=8)
    assert told(node)[0] == ErrorCode.NOT_CONTROLLER
