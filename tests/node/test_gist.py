"""The gist of requests and answers."""

from __future__ import annotations

import pytest

from cotidal.api.quorum_talk import METADATA_TOPIC_ID, to_request, to_response
from cotidal.core.quorum.dialogue import BeginEpoch, EndEpoch, EpochReply, Fetch, Vote, VoteReply
from cotidal.errors import ErrorCode
from cotidal.messages.batch import Batches
from cotidal.messages.rpc import alter_partition as alter
from cotidal.messages.rpc import fetch, produce
from cotidal.messages.rpc import list_offsets as offsets
from cotidal.messages.rpc.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from cotidal.messages.rpc.broker_registration import BrokerRegistrationRequest
from cotidal.messages.rpc.create_topics import CreatableTopicResult, CreateTopicsResponse
from cotidal.messages.rpc.vote import VoteRequest
from cotidal.node.gist import gist
from cotidal.values import LeaderEpoch, NodeId, Offset, Uuid
from headers import header
from quorum_bench import NONE, hint, key

ORDERS = Uuid(bytes([7] * 16))
NAMES = {ORDERS: "orders"}
E5 = LeaderEpoch(5)
DATA = Batches((header(base_offset=8, records=2)._replace(leader_epoch=E5),), b"..")
VOTE = Vote(key(2), key(1), E5, LeaderEpoch(4), Offset(12), False)


def produced(count: int = 1) -> produce.ProduceRequest:
    parts = tuple(produce.PartitionProduceData(number, DATA) for number in range(count))
    topic = produce.TopicProduceData(topic_id=ORDERS, partition_data=parts)
    return produce.ProduceRequest(acks=-1, topic_data=(topic,))


def written(error: int) -> produce.ProduceResponse:
    part = produce.PartitionProduceResponse(0, error, 8)
    return produce.ProduceResponse((produce.TopicProduceResponse("orders", ORDERS, (part,)),))


def asked(replica: int) -> fetch.FetchRequest:
    part = fetch.FetchPartition(0, 5, 8, 4)
    topic = fetch.FetchTopic(topic_id=ORDERS, partitions=(part,))
    return fetch.FetchRequest(replica_state=fetch.ReplicaState(replica), topics=(topic,))


def fetched(part: fetch.PartitionData, topic_id: Uuid = ORDERS) -> fetch.FetchResponse:
    topic = fetch.FetchableTopicResponse(topic_id=topic_id, partitions=(part,))
    return fetch.FetchResponse(responses=(topic,))


PART = fetch.PartitionData(0, 0, 8)
PROPOSED = alter.AlterPartitionRequestPartitionData(
    0, 5, new_isr_with_epochs=(alter.BrokerState(1), alter.BrokerState(2))
)
ALTERED = alter.AlterPartitionResponsePartitionData(0, 0, 1, 5, (1, 2))


def altered(part: alter.AlterPartitionResponsePartitionData) -> alter.AlterPartitionResponse:
    return alter.AlterPartitionResponse(
        topics=(alter.AlterPartitionResponseTopicData(ORDERS, (part,)),)
    )


def listed(part: offsets.ListOffsetsPartitionResponse) -> offsets.ListOffsetsResponse:
    return offsets.ListOffsetsResponse(topics=(offsets.ListOffsetsTopicResponse("t", (part,)),))


TOLD: list[tuple[object, str]] = [
    (produced(), "acks=-1 orders-0 2 records"),
    (
        produced(8),
        f"acks=-1 {', '.join(f'orders-{n} 2 records' for n in range(6))} and 2 more partitions",
    ),
    (written(0), "orders-0 at 8"),
    (written(19), "orders-0 NOT_ENOUGH_REPLICAS(19)"),
    (asked(-1), "orders-0 offset=8 epoch=5"),
    (asked(2), "by 2: orders-0 offset=8 epoch=5"),
    (fetched(PART._replace(records=DATA)), "orders-0 8-9@5 hw=8"),
    (fetched(PART._replace(records=Batches((), b"abc"))), "orders-0 3 bytes hw=8"),
    (fetched(PART), "orders-0 nothing hw=8"),
    (fetched(PART._replace(error_code=74)), "orders-0 FENCED_LEADER_EPOCH(74)"),
    (
        fetched(PART._replace(error_code=6, current_leader=fetch.LeaderIdAndEpoch(2, 5))),
        "orders-0 NOT_LEADER_OR_FOLLOWER(6), broker 2 leads",
    ),
    (
        fetched(PART._replace(diverging_epoch=fetch.EpochEndOffset(4, 6))),
        "orders-0 diverging epoch=4 end=6",
    ),
    (fetched(PART._replace(preferred_read_replica=3)), "orders-0 read from broker 3"),
    (
        fetched(PART._replace(snapshot_id=fetch.SnapshotId(7, 3)), METADATA_TOPIC_ID),
        "__cluster_metadata-0 snapshot=7@3",
    ),
    (fetch.FetchResponse(error_code=70), "FETCH_SESSION_ID_NOT_FOUND(70)"),
    (
        alter.AlterPartitionRequest(
            1, 40, (alter.AlterPartitionRequestTopicData(ORDERS, (PROPOSED,)),)
        ),
        "by 1: orders-0 isr=(1 2) epoch=5",
    ),
    (altered(ALTERED), "orders-0 isr=(1 2) epoch=5"),
    (altered(ALTERED._replace(error_code=107)), "orders-0 INELIGIBLE_REPLICA(107)"),
    (
        BrokerHeartbeatRequest(2, 40, 12, want_fence=True, want_shut_down=True),
        "broker 2 metadata=12 wants fence wants shutdown",
    ),
    (BrokerHeartbeatResponse(should_shut_down=True), "fenced, may stop"),
    (BrokerRegistrationRequest(2, previous_broker_epoch=40), "broker 2 previous-epoch=40"),
    (
        offsets.ListOffsetsRequest(
            topics=(offsets.ListOffsetsTopic("t", (offsets.ListOffsetsPartition(0, 5, -1),)),)
        ),
        "t-0 time=-1",
    ),
    (listed(offsets.ListOffsetsPartitionResponse(0, 78)), "t-0 OFFSET_NOT_AVAILABLE(78)"),
    (listed(offsets.ListOffsetsPartitionResponse(0, 0, offset=8)), "t-0 offset=8"),
    (to_request(VOTE, "c").message, "vote for 2 epoch=5 log=12@4"),
    (VoteRequest(), ""),
    (
        to_response(None, VoteReply(NONE, hint(-1, 5), True)),
        "vote-reply yes epoch=5 leader=none",
    ),
    (
        to_request(BeginEpoch(NodeId(2), key(1), E5, ()), "c").message,
        "begin-epoch epoch=5 leader=2",
    ),
    (
        to_request(EndEpoch(NodeId(2), E5, (key(3),)), "c").message,
        "end-epoch epoch=5 leader=2 successors=(3)",
    ),
    (to_response(None, EpochReply(NONE, hint(2, 5))), "epoch-reply ok epoch=5 leader=2"),
    (
        to_request(Fetch(key(3), E5, Offset(12), LeaderEpoch(4), Offset(7), 500), "c").message,
        "by 3: __cluster_metadata-0 offset=12 epoch=5",
    ),
    (
        CreateTopicsResponse(
            topics=(
                CreatableTopicResult("a", error_code=ErrorCode.TOPIC_ALREADY_EXISTS),
                CreatableTopicResult("b", error_code=999),
                CreatableTopicResult("c"),
            )
        ),
        "TOPIC_ALREADY_EXISTS(36) error(999)",
    ),
]


@pytest.mark.parametrize(("message", "said"), TOLD, ids=[said for _, said in TOLD])
def test_a_message_is_told_in_a_few_words(message: object, said: str) -> None:
    assert gist(message, NAMES) == said


def test_a_topic_that_nobody_can_name_is_told_by_its_id() -> None:
    assert gist(asked(2)) == "by 2: BwcHBwcHBwcHBwcHBwcHBw-0 offset=8 epoch=5"
