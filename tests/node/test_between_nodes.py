"""What other nodes may ask, and what a hostile one may not bring about."""

from __future__ import annotations

import pytest

from asking import FETCH, node_with, produce, written
from cotidal.api.quorum_talk import METADATA_TOPIC_ID
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.begin_quorum_epoch import BeginQuorumEpochRequest
from cotidal.messages.rpc.end_quorum_epoch import EndQuorumEpochRequest
from cotidal.messages.rpc.fetch import FetchPartition, FetchRequest, FetchTopic
from cotidal.messages.rpc.vote import VoteRequest, VoteRequestTopicData
from cotidal.node.effects import CloseConnection
from cotidal.node.events import ConnectionId, ConnectionOpened

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


def test_the_metadata_log_is_not_read_through_a_clients_listener() -> None:
    node = node_with()
    asked = FetchPartition(partition=0, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(asked,))
    reply = node.ask(FETCH, 17, FetchRequest(max_bytes=1 << 20, topics=(topic,)))
    assert reply.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
