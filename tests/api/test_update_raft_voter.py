"""What a voter tells its leader survives the way there and back."""

from __future__ import annotations

import pytest

from cotidal.api.quorum_talk import LISTENER, from_request, from_response, to_request, to_response
from cotidal.core.quorum.dialogue import Hint, MemberReply, UpdateVoter
from cotidal.core.quorum.voters import ReplicaKey
from cotidal.errors import ErrorCode
from cotidal.messages.records.quorum import Endpoint, KRaftVersionFeature
from cotidal.messages.rpc.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from cotidal.messages.rpc.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from cotidal.messages.rpc.update_raft_voter import UpdateRaftVoterRequest
from cotidal.values import NO_NODE, LeaderEpoch, NodeId, Uuid

QUESTION = UpdateVoter(
    LeaderEpoch(5),
    ReplicaKey(NodeId(3), Uuid(b"d" * 16)),
    (Endpoint("CONTROLLER", "c3", 9093),),
    KRaftVersionFeature(0, 1),
    1_000,
)
LEADER = Hint(NodeId(2), LeaderEpoch(5), (Endpoint(LISTENER, "c2", 9093),))


def test_a_question_is_the_same_after_the_wire(encodes):
    asking = to_request(QUESTION, "cluster")
    assert (int(asking.api), asking.version, asking.message.cluster_id) == (82, 0, "cluster")
    assert from_request(asking.message) == QUESTION


@pytest.mark.parametrize("hint", [LEADER, Hint(NO_NODE, LeaderEpoch(5))])
def test_an_answer_says_who_leads(encodes, hint):
    reply = MemberReply(ErrorCode.VOTER_NOT_FOUND, "", hint)
    response = encodes(82, 0, to_response(UpdateRaftVoterRequest(), reply))
    assert from_response(response, None) == reply


def test_an_administrator_is_told_why():
    reply = MemberReply(ErrorCode.DUPLICATE_VOTER, "node 3 is a voter already", LEADER)
    added = to_response(AddRaftVoterRequest(), reply)
    assert added == AddRaftVoterResponse(0, 126, "node 3 is a voter already")
    removed = to_response(RemoveRaftVoterRequest(), MemberReply(ErrorCode.NONE, "", LEADER))
    assert removed == RemoveRaftVoterResponse(0, 0, None)
