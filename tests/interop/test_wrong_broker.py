"""A client at a broker without a replica is told the same as by Apache Kafka, and who leads
(KIP-951)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from cotidal.client.admin import create_topic
from cotidal.client.cluster import Cluster as Client
from cotidal.client.connection import Connection
from cotidal.client.metadata import Broker, Topic
from cotidal.errors import ErrorCode
from cotidal.messages.rpc import delete_records, fetch, list_offsets, produce
from cotidal.messages.rpc import offset_for_leader_epoch as epochs
from cotidal.messages.rpc.apis import ApiKey
from cotidal.wire.batch import read_batches
from cotidal.wire.records import Record, build_batch
from tests.interop.trios import Trio

pytestmark = pytest.mark.interop
WRONG = ErrorCode.NOT_LEADER_OR_FOLLOWER


class Astray(NamedTuple):
    """A connection to a broker without a replica, and who has the only one."""

    connection: Connection
    topic: Topic
    leader: Broker


@pytest.fixture
def astray(cluster: Trio, topic: str) -> Iterator[Astray]:
    with Client(cluster.bootstrap) as client:
        create_topic(client, topic, partitions=1, replication_factor=1, configs={})
        leader = client.topic(topic).partitions[0].leader
        other = next(each for each in client.metadata().brokers if each.node_id != leader)
        assert client.knows(other.node_id, topic, timeout_s=30)
        found = client.metadata().broker(leader)
        assert found is not None
        yield Astray(client.connection(other.node_id), client.topic(topic), found)


def records() -> Any:
    return read_batches(build_batch([Record(b"k", b"v", timestamp=int(time.time() * 1000))]))


def assert_sent_to(leader: Broker, told: Any, endpoints: Any) -> None:
    assert told.error_code == WRONG
    assert tuple(told.current_leader) == (leader.node_id, 0)
    where = (leader.node_id, leader.address.host, leader.address.port)
    assert [tuple(each)[:3] for each in endpoints] == [where]


def test_whoever_writes_is_told_who_leads(astray: Astray) -> None:
    data = produce.PartitionProduceData(0, records())
    asked = produce.TopicProduceData("", astray.topic.topic_id, (data,))
    request = produce.ProduceRequest(None, -1, 1_000, (asked,))
    reply = astray.connection.call(ApiKey.PRODUCE, request, produce.ProduceResponse)
    (told,) = reply.responses[0].partition_responses
    assert_sent_to(astray.leader, told, reply.node_endpoints)


def test_whoever_reads_is_told_who_leads(astray: Astray) -> None:
    asked = fetch.FetchPartition(0, partition_max_bytes=1_000)
    topics = (fetch.FetchTopic("", astray.topic.topic_id, (asked,)),)
    request = fetch.FetchRequest(max_wait_ms=100, min_bytes=1, topics=topics)
    reply = astray.connection.call(ApiKey.FETCH, request, fetch.FetchResponse)
    (told,) = reply.responses[0].partitions
    assert_sent_to(astray.leader, told, reply.node_endpoints)


def test_whoever_asks_otherwise_is_told_to_look_for_the_leader(astray: Astray) -> None:
    name = astray.topic.name
    ends = list_offsets.ListOffsetsTopic(name, (list_offsets.ListOffsetsPartition(0, -1, -1),))
    listed = astray.connection.call(
        ApiKey.LIST_OFFSETS,
        list_offsets.ListOffsetsRequest(topics=(ends,)),
        list_offsets.ListOffsetsResponse,
    )
    assert listed.topics[0].partitions[0].error_code == WRONG
    terms = epochs.OffsetForLeaderTopic(name, (epochs.OffsetForLeaderPartition(0, -1, 0),))
    ended = astray.connection.call(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        epochs.OffsetForLeaderEpochRequest(topics=(terms,)),
        epochs.OffsetForLeaderEpochResponse,
    )
    assert ended.topics[0].partitions[0].error_code == WRONG
    cut = delete_records.DeleteRecordsTopic(name, (delete_records.DeleteRecordsPartition(0, 0),))
    deleted = astray.connection.call(
        ApiKey.DELETE_RECORDS,
        delete_records.DeleteRecordsRequest((cut,), 1_000),
        delete_records.DeleteRecordsResponse,
    )
    assert deleted.topics[0].partitions[0].error_code == WRONG


def test_a_partition_that_is_not_there_is_unknown_everywhere(astray: Astray) -> None:
    data = produce.PartitionProduceData(9, records())
    asked = produce.TopicProduceData("", astray.topic.topic_id, (data,))
    request = produce.ProduceRequest(None, -1, 1_000, (asked,))
    reply = astray.connection.call(ApiKey.PRODUCE, request, produce.ProduceResponse)
    (told,) = reply.responses[0].partition_responses
    assert told.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
