"""UpdateRaftVoter (key 82), version 0: a voter tells its leader where it listens now. KIP-853.

Asked by a voter whose own listeners or kraft.versions are others than the voters' record has, and
answered by the leader of the quorum, on a controller's listener, when the record is committed.
"""

from __future__ import annotations

from typing import Final

from cotidal.core.quorum.dialogue import Hint, MemberReply, UpdateVoter
from cotidal.core.quorum.voters import ReplicaKey
from cotidal.errors import ErrorCode
from cotidal.messages.records.quorum import Endpoint, KRaftVersionFeature
from cotidal.messages.rpc.update_raft_voter import (
    CurrentLeader,
    Listener,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from cotidal.messages.rpc.update_raft_voter import KRaftVersionFeature as ToldVersions
from cotidal.values import LeaderEpoch, NodeId

VERSION: Final = 0
TIMEOUT_MS: Final = 1_000
"""The request has none of its own: as long as a voter waits before it asks again."""


def request(question: UpdateVoter, cluster_id: str) -> UpdateRaftVoterRequest:
    return UpdateRaftVoterRequest(
        cluster_id=cluster_id,
        current_leader_epoch=question.epoch,
        voter_id=question.key.node_id,
        voter_directory_id=question.key.directory_id,
        listeners=tuple(Listener(*point) for point in question.endpoints),
        kraft_version_feature=ToldVersions(*question.kraft_versions),
    )


def question(message: UpdateRaftVoterRequest) -> UpdateVoter:
    return UpdateVoter(
        LeaderEpoch(message.current_leader_epoch),
        ReplicaKey(NodeId(message.voter_id), message.voter_directory_id),
        tuple(Endpoint(*point) for point in message.listeners),
        KRaftVersionFeature(*message.kraft_version_feature),
        TIMEOUT_MS,
    )


def response(reply: MemberReply) -> UpdateRaftVoterResponse:
    hint = reply.hint
    leader = CurrentLeader(hint.leader_id, hint.epoch)
    for point in hint.endpoints[:1]:
        leader = CurrentLeader(hint.leader_id, hint.epoch, point.host, point.port)
    return UpdateRaftVoterResponse(error_code=reply.error, current_leader=leader)


def reply(error: ErrorCode, hint: Hint) -> MemberReply:
    return MemberReply(error, "", hint)
