"""The quorum as clients and administrators see it: who votes, and changing that. Pure. KIP-853.

Only the leader knows how far the others have got, and only it can change the voters. Whoever is
asked by a client and does not lead asks the leader in the client's place; asked on a controller's
listener, where whoever asks looks for the leader itself, it refuses.

Before a voter is added its own listener is asked which kraft.version it supports; the rest is
core.quorum.membership.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cotidal.api import add_raft_voter as adding
from cotidal.api import describe_quorum as describing
from cotidal.api import remove_raft_voter as removing
from cotidal.api import update_features as features
from cotidal.api.registry import Owner, refusals
from cotidal.core.quorum.states import Leader
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.add_raft_voter import AddRaftVoterRequest
from cotidal.messages.rpc.api_versions import ApiVersionsRequest, ApiVersionsResponse
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.describe_quorum import DescribeQuorumRequest
from cotidal.messages.rpc.remove_raft_voter import RemoveRaftVoterRequest
from cotidal.messages.rpc.update_features import UpdateFeaturesRequest
from cotidal.node import calls, controller, quorum
from cotidal.node.connections import Slot
from cotidal.node.effects import Endpoint
from cotidal.node.state import NodeState
from cotidal.node.view import NodeView
from cotidal.values import NodeId

PROBE_LANE: Final = "probe"
PROBE_TIMEOUT_MS: Final = 1_000
PROBE_VERSION: Final = 4
"""Of ApiVersions: the first that tells of a feature whose oldest level is 0."""


class Probed(NamedTuple):
    """A new voter that has been asked what it supports."""

    slot: Slot
    request: AddRaftVoterRequest


def begin_describe(state: NodeState, slot: Slot, request: DescribeQuorumRequest) -> None:
    if not _may_answer(state, slot):
        return
    _answer(state, slot, describing.answer(request, slot.asked, NodeView(state)))


def begin_add(state: NodeState, slot: Slot, request: AddRaftVoterRequest) -> None:
    if not _may_answer(state, slot):
        return
    listener = state.config.controller_endpoints[0].name
    refusal = adding.refused(request, cluster_id=state.config.cluster_id, listener=listener)
    if refusal is not None:
        _answer(state, slot, adding.response(refusal))
        return
    point = adding.endpoint(request, listener)
    assert point is not None
    calls.call(
        state,
        NodeId(request.voter_id),
        Endpoint(*point),
        lane=PROBE_LANE,
        api=ApiKey.API_VERSIONS,
        version=PROBE_VERSION,
        message=ApiVersionsRequest("cotidal", "node"),
        timeout_ms=PROBE_TIMEOUT_MS,
        owner=Probed(slot, request),
    )


def on_probed(state: NodeState, probed: Probed, versions: ApiVersionsResponse) -> None:
    found = adding.supported(versions)
    if isinstance(found, Refusal):
        _answer(state, probed.slot, adding.response(found))
    else:
        quorum.ask(state, probed.slot, adding.change(probed.request, found))


def on_not_probed(state: NodeState, probed: Probed, reason: str) -> None:
    sentence = f"node {probed.request.voter_id} does not answer on its listener: {reason}"
    refusal = Refusal(ErrorCode.REQUEST_TIMED_OUT, sentence)
    _answer(state, probed.slot, adding.response(refusal))


def begin_remove(state: NodeState, slot: Slot, request: RemoveRaftVoterRequest) -> None:
    if not _may_answer(state, slot):
        return
    refusal = removing.refused(request, cluster_id=state.config.cluster_id)
    if refusal is not None:
        _answer(state, slot, removing.response(refusal))
    else:
        quorum.ask(state, slot, removing.change(request))


def begin_features(state: NodeState, slot: Slot, request: UpdateFeaturesRequest) -> None:
    """kraft.version is the quorum's, every other feature the controller's."""
    wanted = features.kraft_version(request)
    duty = state.quorum
    if wanted is not None and isinstance(duty.machine.state.role, Leader):
        if wanted != duty.machine.state.voters.latest.kraft_version:
            question = features.raising(request, state.controller.committed)
            if isinstance(question, Refusal):
                _answer(state, slot, features.raised(request, question))
            else:
                quorum.ask(state, slot, question)
            return
        others = features.without_kraft_version(request)
        slot.request = slot.request._replace(message=others)
    controller.begin(state, slot, Owner.CONTROLLER)


def _may_answer(state: NodeState, slot: Slot) -> bool:
    """Whether this node leads; if not, the request has been taken care of."""
    if isinstance(state.quorum.machine.state.role, Leader):
        return True
    controllers = [point.name for point in state.config.controller_endpoints]
    clients = [point.name for point in state.config.endpoints]
    listener = slot.connection.listener
    if listener in controllers and listener not in clients:
        request = slot.request
        _answer(state, slot, refusals().not_controller(request.api_key, request.message))
    else:
        controller.forward(state, slot)
    return False


def _answer(state: NodeState, slot: Slot, reply: object) -> None:
    slot.connection.answer(slot, reply, state.out)
