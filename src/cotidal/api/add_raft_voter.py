"""AddRaftVoter (key 80), versions 0-1: let a controller vote. KIP-853.

Answered by the leader of the quorum when the new voters are committed; from 1 on an asker may be
content when they are on the leader's disk. The leader asks the new voter's listener first which
kraft.version it supports. Who is no leader and is asked by a client asks the leader in its place.

Not there: voters whose listeners lack the one that the controllers talk on.
"""

from __future__ import annotations

from typing import Final

from cotidal.core.quorum.dialogue import AddVoter, MemberReply
from cotidal.core.quorum.voters import ReplicaKey
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.quorum import Endpoint, KRaftVersionFeature
from cotidal.messages.rpc.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from cotidal.messages.rpc.api_versions import ApiVersionsResponse
from cotidal.values import ZERO_UUID, NodeId

KRAFT_VERSION: Final = "kraft.version"
NOT_TOLD: Final = KRaftVersionFeature(0, 0)


def refused(request: AddRaftVoterRequest, *, cluster_id: str, listener: str) -> Refusal | None:
    """What is wrong with it, whoever leads."""
    if request.cluster_id is not None and request.cluster_id != cluster_id:
        return wrong_cluster(request.cluster_id, cluster_id)
    if request.voter_id < 0 or request.voter_directory_id == ZERO_UUID:
        return Refusal(ErrorCode.INVALID_REQUEST, "a voter has an id and a directory id")
    if endpoint(request, listener) is None:
        sentence = f"node {request.voter_id} is given without its listener {listener}"
        return Refusal(ErrorCode.INVALID_REQUEST, sentence)
    return None


def wrong_cluster(theirs: str, ours: str) -> Refusal:
    sentence = f"this is cluster {ours}, not {theirs}"
    return Refusal(ErrorCode.INCONSISTENT_CLUSTER_ID, sentence)


def endpoint(request: AddRaftVoterRequest, listener: str) -> Endpoint | None:
    """Where the leader finds the new voter."""
    for point in request.listeners:
        if point.name == listener:
            return Endpoint(*point)
    return None


def supported(versions: ApiVersionsResponse) -> KRaftVersionFeature | Refusal:
    """Which kraft.version the new voter knows, from what it answered to ApiVersions."""
    if versions.error_code:
        sentence = f"the new voter refuses ApiVersions with error {versions.error_code}"
        return Refusal(ErrorCode.INVALID_REQUEST, sentence)
    for feature in versions.supported_features:
        if feature.name == KRAFT_VERSION:
            return KRaftVersionFeature(feature.min_version, feature.max_version)
    return NOT_TOLD


def change(request: AddRaftVoterRequest, versions: KRaftVersionFeature) -> AddVoter:
    return AddVoter(
        ReplicaKey(NodeId(request.voter_id), request.voter_directory_id),
        tuple(Endpoint(*point) for point in request.listeners),
        versions,
        request.timeout_ms,
        request.ack_when_committed,
    )


def request(question: AddVoter, cluster_id: str) -> AddRaftVoterRequest:
    """A controller that adds itself."""
    return AddRaftVoterRequest(
        cluster_id,
        question.timeout_ms,
        question.key.node_id,
        question.key.directory_id,
        tuple(Listener(*point) for point in question.endpoints),
        question.ack_when_committed,
    )


def response(reply: MemberReply | Refusal) -> AddRaftVoterResponse:
    return AddRaftVoterResponse(error_code=reply.error, error_message=reply.text or None)
