"""What the end of a connection tells before anybody has decided anything."""

from __future__ import annotations

import pytest

from cotidal.core.machine import Entropy
from cotidal.node import doubts
from cotidal.node.effects import Endpoint
from cotidal.node.quorum import QuorumDuty
from cotidal.node.state import NodeConfig, NodeState
from cotidal.values import Millis, NodeId, Uuid
from cotidal.wire.metadata_batch import read_metadata_batches

PEER = NodeId(2)


def make_state(voters: tuple[tuple[NodeId, Endpoint], ...] = ()) -> NodeState:
    config = NodeConfig(
        node_id=NodeId(1),
        cluster_id="tests",
        directory_id=Uuid(bytes(16)),
        endpoints=(),
        controller_endpoints=(),
        rack=None,
        settings={},
        voters=voters,
    )
    state = NodeState(config, Entropy(1))
    state.quorum = QuorumDuty(state, read_metadata_batches)
    return state


@pytest.fixture
def state() -> NodeState:
    return make_state()


def wait(state: NodeState, millis: int) -> None:
    state.now = Millis(state.now + millis)


def test_a_peer_whose_connection_ends_is_doubted_for_a_moment(state: NodeState) -> None:
    doubts.on_connected(state, PEER)
    assert not doubts.is_doubted(state, PEER)
    doubts.on_lost(state, PEER, refused=False)
    assert doubts.is_doubted(state, PEER)
    wait(state, doubts.DOUBT_MS)
    assert not doubts.is_doubted(state, PEER)


def test_a_new_connection_ends_the_doubt(state: NodeState) -> None:
    doubts.on_lost(state, PEER, refused=True)
    doubts.on_connected(state, PEER)
    assert not doubts.is_doubted(state, PEER)


def test_a_peer_that_refuses_again_and_again_stays_doubted(state: NodeState) -> None:
    for _ in range(10):
        doubts.on_lost(state, PEER, refused=True)
        wait(state, doubts.DOUBT_MS - 1)
        assert doubts.is_doubted(state, PEER)


def test_a_peer_that_only_we_cannot_reach_is_not_doubted_for_long(state: NodeState) -> None:
    doubts.on_connected(state, PEER)
    doubts.on_lost(state, PEER, refused=False)
    for _ in range(10):
        wait(state, doubts.DOUBT_MS)
        doubts.on_lost(state, PEER, refused=False)  # a vain attempt
        assert not doubts.is_doubted(state, PEER)


def test_the_quorum_is_gone_when_no_majority_of_it_listens() -> None:
    voters = tuple((NodeId(id_), Endpoint("CONTROLLER", "host", 9090 + id_)) for id_ in (1, 2, 3))
    state = make_state(voters)
    doubts.on_connected(state, NodeId(2))
    doubts.on_connected(state, NodeId(3))
    doubts.on_lost(state, NodeId(2), refused=True)
    doubts.on_lost(state, NodeId(3), refused=False)  # lost, but perhaps alive
    assert not doubts.is_quorum_gone(state)
    doubts.on_lost(state, NodeId(3), refused=True)
    assert doubts.is_quorum_gone(state)
    wait(state, doubts.DOUBT_MS)
    assert not doubts.is_quorum_gone(state)


def test_a_peer_never_met_is_not_doubted(state: NodeState) -> None:
    doubts.on_lost(state, PEER, refused=False)
    assert not doubts.is_doubted(state, PEER)


def test_a_peer_that_was_lost_is_remembered_for_a_while_however_often_it_refuses(
    state: NodeState,
) -> None:
    doubts.on_connected(state, PEER)
    assert not doubts.is_just_lost(state, PEER)
    doubts.on_lost(state, PEER, refused=False)
    wait(state, doubts.NAMED_MS - 1)
    doubts.on_lost(state, PEER, refused=True)
    assert doubts.is_just_lost(state, PEER)
    wait(state, 1)
    assert not doubts.is_just_lost(state, PEER)
    assert doubts.is_doubted(state, PEER)
