from __future__ import annotations

from typing import Any

import pytest

from cotidal.client.cluster import Cluster
from cotidal.client.failures import Refused
from cotidal.client.offsets import (
    Position,
    end_offsets,
    epoch_ends,
    find_positions,
    start_offsets,
)
from cotidal.client.start import EARLIEST, AtOffset, AtTime, BeforeEnd
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from cotidal.messages.rpc.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from cotidal.values import LeaderEpoch, Offset, TopicPartition

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
BY_TIME = {-2: 5, -1: 100, 1000: 42, 9999: -1}
"""What the scripted log answers: it holds offsets 5 to 99, none of them after time 1000."""


def log_answers(request: Any, _version: int, error: int = 0) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=tuple(
            ListOffsetsTopicResponse(
                topic.name,
                tuple(
                    ListOffsetsPartitionResponse(
                        asked.partition_index, error, -1, -1 if error else BY_TIME[asked.timestamp]
                    )
                    for asked in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def refusing(error: ErrorCode) -> Any:
    return lambda request, version: log_answers(request, version, error)


@pytest.fixture
def leader(scripted_broker: Any, metadata_of: Any) -> Any:
    broker = scripted_broker({ApiKey.LIST_OFFSETS: log_answers})
    broker.script(ApiKey.METADATA, metadata_of({1: broker}, ("orders", (1,))))
    return broker


@pytest.mark.parametrize(
    ("start", "offset"),
    [
        (EARLIEST, 5),
        (AtTime(1000), 42),
        (AtTime(9999), 100),
        (AtOffset(5), 5),
        (AtOffset(100), 100),
        (BeforeEnd(10), 90),
        (BeforeEnd(1000), 5),
    ],
)
def test_a_start_becomes_an_offset(leader: Any, start: Any, offset: int) -> None:
    with Cluster(leader.bootstrap) as cluster:
        assert start_offsets(cluster, [P0], start) == {P0: offset}


@pytest.mark.parametrize("offset", [4, 101])
def test_an_offset_outside_the_log_is_told_with_the_range_there_is(
    leader: Any, offset: int
) -> None:
    with (
        Cluster(leader.bootstrap) as cluster,
        pytest.raises(Refused, match="begins at 5 and ends before 100"),
    ):
        start_offsets(cluster, [P0], AtOffset(offset))


def test_each_leader_is_asked_about_its_own_partitions(
    scripted_broker: Any, metadata_of: Any
) -> None:
    brokers = {node: scripted_broker({ApiKey.LIST_OFFSETS: log_answers}) for node in (1, 2)}
    for broker in brokers.values():
        broker.script(ApiKey.METADATA, metadata_of(brokers, ("orders", (2, 1))))
    with Cluster(brokers[1].bootstrap) as cluster:
        assert end_offsets(cluster, [P0, P1]) == {P0: 100, P1: 100}
    for node, partition in ((1, 1), (2, 0)):
        [request] = brokers[node].asked(ApiKey.LIST_OFFSETS)
        assert [of.partition_index for of in request.topics[0].partitions] == [partition]
        assert request.replica_id == -1


def test_an_election_is_waited_for(leader: Any) -> None:
    leader.script(ApiKey.LIST_OFFSETS, refusing(ErrorCode.NOT_LEADER_OR_FOLLOWER), log_answers)
    with Cluster(leader.bootstrap) as cluster:
        assert end_offsets(cluster, [P0]) == {P0: 100}


def test_a_refusal_that_does_not_pass_is_raised_at_once(leader: Any) -> None:
    leader.script(ApiKey.LIST_OFFSETS, refusing(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    with Cluster(leader.bootstrap) as cluster, pytest.raises(Refused, match="Not authorized"):
        end_offsets(cluster, [P0])
    assert len(leader.asked(ApiKey.LIST_OFFSETS)) == 1


def test_the_wait_for_a_leader_ends_with_the_clusters_time(
    scripted_broker: Any, metadata_of: Any
) -> None:
    broker = scripted_broker()
    broker.script(ApiKey.METADATA, metadata_of({1: broker}, ("orders", (-1,))))
    with (
        Cluster(broker.bootstrap, timeout_s=0.2) as cluster,
        pytest.raises(Refused) as caught,
    ):
        end_offsets(cluster, [P0])
    assert caught.value.error is ErrorCode.LEADER_NOT_AVAILABLE


def test_the_end_for_who_reads_what_is_committed_is_asked_for_as_such(leader: Any) -> None:
    with Cluster(leader.bootstrap) as cluster:
        find_positions(cluster, {P0: -1}, read_committed=True)
        find_positions(cluster, {P0: -1})
    assert [each.isolation_level for each in leader.asked(ApiKey.LIST_OFFSETS)] == [1, 0]


def test_the_end_of_an_epoch_is_asked_of_the_leader_as_a_consumer(leader: Any) -> None:
    def ends(request: Any, _version: int) -> OffsetForLeaderEpochResponse:
        (topic,) = request.topics
        answers = tuple(
            EpochEndOffset(0, of.partition, of.leader_epoch - 1, 40) for of in topic.partitions
        )
        return OffsetForLeaderEpochResponse(
            topics=(OffsetForLeaderTopicResult(topic.topic, answers),)
        )

    leader.script(ApiKey.OFFSET_FOR_LEADER_EPOCH, ends)
    with Cluster(leader.bootstrap) as cluster:
        assert epoch_ends(cluster, {P0: LeaderEpoch(7)}) == {
            P0: Position(Offset(40), LeaderEpoch(6))
        }
    [request] = leader.asked(ApiKey.OFFSET_FOR_LEADER_EPOCH)
    assert request.replica_id == -1
