"""RemoveRaftVoter (key 81), version 0: let a controller vote no longer. KIP-853.

Answered by the leader of the quorum when the remaining voters are committed. A leader that removes
itself leads until then, uncounted, and resigns. Who is no leader and is asked by a client asks the
leader in its place.
"""

from __future__ import annotations

from typing import Final

from cotidal.api.add_raft_voter import wrong_cluster
from cotidal.core.quorum.dialogue import MemberReply, RemoveVoter
from cotidal.core.quorum.voters import ReplicaKey
from cotidal.errors import Refusal
from cotidal.messages.rpc.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from cotidal.values import NodeId

TIMEOUT_MS: Final = 2_000
"""The request has none of its own."""


def refused(request: RemoveRaftVoterRequest, *, cluster_id: str) -> Refusal | None:
    if request.cluster_id is not None and request.cluster_id != cluster_id:
        return wrong_cluster(request.cluster_id, cluster_id)
    return None


def change(request: RemoveRaftVoterRequest) -> RemoveVoter:
    key = ReplicaKey(NodeId(request.voter_id), request.voter_directory_id)
    return RemoveVoter(key, TIMEOUT_MS)


def request(question: RemoveVoter, cluster_id: str) -> RemoveRaftVoterRequest:
    """A controller that comes back with a new disk and removes its old one."""
    return RemoveRaftVoterRequest(cluster_id, *question.key)


def response(reply: MemberReply | Refusal) -> RemoveRaftVoterResponse:
    return RemoveRaftVoterResponse(error_code=reply.error, error_message=reply.text or None)
