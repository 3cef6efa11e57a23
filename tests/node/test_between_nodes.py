"""What other nodes may ask, and what a hostile one may not bring about."""

from __future__ import annotations

from typing import Any

import pytest

from asking import FETCH, node_with, produce, written
from cotidal.api.quorum_talk import METADATA_TOPIC_ID, to_request
from cotidal.core.quorum.dialogue import (
    BeginEpoch,
    EndEpoch,
    Fetch,
    FetchChunk,
    Question,
    UpdateVoter,
    Vote,
)
from cotidal.core.quorum.log_view import SnapshotId
from cotidal.core.quorum.voters import ReplicaKey
from cotidal.errors import ErrorCode
from cotidal.limits import STRANGERS_TOLD_MAX
from cotidal.messages.records.quorum import KRaftVersionFeature
from cotidal.messages.rpc.begin_quorum_epoch import BeginQuorumEpochRequest
from cotidal.messages.rpc.end_quorum_epoch import EndQuorumEpochRequest
from cotidal.messages.rpc.fetch import FetchPartition, FetchRequest, FetchTopic
from cotidal.messages.rpc.vote import VoteRequest, VoteRequestTopicData
from cotidal.node.effects import CloseConnection, Note
from cotidal.node.events import ConnectionId, ConnectionOpened
from cotidal.values import ZERO_UUID, LeaderEpoch, NodeId, Offset

CONTROLLER_SIDE = 9


@pytest.mark.parametrize(
    ("key", "version", "message"),
    [
        (52, 2, VoteRequest()),
        (52, 2, VoteRequest(topics=(VoteRequestTopicData("__cluster_metadata", ()),))),
        (53, 1, BeginQuorumEpochRequest()),
        (54, 1, EndQuorumEpochRequest()),
        (1, 18, FetchRequest(topics=(FetchTopic(topic_id=METADATA_TOPIC_ID),))),
    ],
)
def test_a_question_about_no_partition_closes_its_connection_and_nothing_else(
    key: int, version: int, message: object
) -> None:
    node = node_with()
    node.tell(ConnectionOpened(ConnectionId(CONTROLLER_SIDE), "CONTROLLER", "somewhere"))
    node.send((key, version, message), connection=CONTROLLER_SIDE)
    assert isinstance(node.other[-1], CloseConnection)
    assert node.other[-1].connection == CONTROLLER_SIDE
    assert written(node.ask(*produce(b"x"))) == (0, 0)


AHEAD = LeaderEpoch(1_000)
SOMEBODY, US = ReplicaKey(NodeId(2), ZERO_UUID), ReplicaKey(NodeId(1), ZERO_UUID)
VOTE = Vote(SOMEBODY, US, AHEAD, AHEAD, Offset(1_000), pre_vote=False)
QUESTIONS = [
    VOTE,
    BeginEpoch(SOMEBODY.node_id, US, AHEAD, ()),
    EndEpoch(SOMEBODY.node_id, AHEAD, (US,)),
    Fetch(SOMEBODY, AHEAD, Offset(0), AHEAD, Offset(0), 0),
    FetchChunk(SOMEBODY, AHEAD, SnapshotId(Offset(9), AHEAD), 0, 1_000),
    UpdateVoter(AHEAD, US, (), KRaftVersionFeature(0, 1), 1_000),
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_another_cluster_decides_is_nothing_to_us(question: Question) -> None:
    node = node_with()
    epoch = node.node._state.controller.epoch
    node.tell(ConnectionOpened(ConnectionId(CONTROLLER_SIDE), "CONTROLLER", "somewhere"))
    api, version, message = to_request(question, "other")
    for _ in range(3):
        reply = node.ask(int(api), version, message, connection=CONTROLLER_SIDE)
        assert reply.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    (note,) = (each for each in node.other if isinstance(each, Note))
    assert "other" in note.text
    assert node.node._state.controller.epoch == epoch
    assert written(node.ask(*produce(b"x"))) == (0, 0)


def test_a_crowd_of_strangers_does_not_fill_the_journal() -> None:
    node = node_with()
    node.tell(ConnectionOpened(ConnectionId(CONTROLLER_SIDE), "CONTROLLER", "somewhere"))
    for number in range(3 * STRANGERS_TOLD_MAX):
        api, version, message = to_request(VOTE, f"{number}-" + "x" * 10_000)
        node.ask(int(api), version, message, connection=CONTROLLER_SIDE)
    notes = [each for each in node.other if isinstance(each, Note)]
    assert len(notes) == STRANGERS_TOLD_MAX
    assert max(len(each.text) for each in notes) < 200


@pytest.mark.parametrize("named", [None, "lone"])
def test_whoever_is_of_our_cluster_or_does_not_say_is_heard(named: str | None) -> None:
    node = node_with()
    node.tell(ConnectionOpened(ConnectionId(CONTROLLER_SIDE), "CONTROLLER", "somewhere"))
    api, version, message = to_request(VOTE, "")
    asked: Any = message
    reply = node.ask(int(api), version, asked._replace(cluster_id=named), CONTROLLER_SIDE)
    assert (reply.error_code, len(reply.topics)) == (0, 1)


def test_the_metadata_log_is_not_read_through_a_clients_listener() -> None:
    node = node_with()
    asked = FetchPartition(partition=0, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(asked,))
    reply = node.ask(FETCH, 17, FetchRequest(max_bytes=1 << 20, topics=(topic,)))
    assert reply.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
