"""Short ways to say the requests that node tests send."""

from __future__ import annotations

from typing import Any

from cotidal.core.partition.progress import Progress
from cotidal.core.partition.replica import Leadership, Replica
from cotidal.messages.batch import Batches
from cotidal.messages.rpc.create_topics import CreatableTopic, CreateTopicsRequest
from cotidal.messages.rpc.delete_topics import DeleteTopicsRequest, DeleteTopicState
from cotidal.messages.rpc.fetch import FetchPartition, FetchRequest, FetchTopic
from cotidal.messages.rpc.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from cotidal.values import BrokerEpoch, Millis, NodeId, Offset, TopicPartition
from lone_node import LoneNode, batches

FOLLOWER = NodeId(2)

PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS = 0, 1, 2, 3, 18
CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS, INIT_PRODUCER_ID = 19, 20, 21, 22


def node_with(topic: str = "orders", partitions: int = 1, **settings: str) -> LoneNode:
    """A started node with one topic."""
    node = LoneNode({name.replace("_", "."): value for name, value in settings.items()}).start()
    create(node, topic, partitions)
    return node


def leader_and_follower() -> tuple[LoneNode, Replica, Leadership]:
    """Node 1 leads one record; node 2 is in the ISR and has nothing yet."""
    node = node_with()
    state = node.node._state
    brokers = state.controller.committed.brokers
    brokers[FOLLOWER] = brokers[NodeId(1)]._replace(node_id=FOLLOWER, epoch=BrokerEpoch(9))
    replica = state.hosted[TopicPartition("orders", 0)].replica
    assert replica.leadership is not None
    replica.leadership.isr = (NodeId(1), FOLLOWER)
    progress = replica.leadership.followers[FOLLOWER] = Progress(caught_up=Millis(0))
    progress.end_offset = Offset(0)
    node.ask(*produce(b"a", acks=1))
    return node, replica, replica.leadership


def create(node: LoneNode, topic: str, partitions: int = 1, **configs: str) -> Any:
    return node.ask(*creation(topic, partitions, **configs)).topics[0]


def creation(
    topic: str, partitions: int = 1, **configs: str
) -> tuple[int, int, CreateTopicsRequest]:
    from cotidal.messages.rpc.create_topics import CreatableTopicConfig

    request = CreateTopicsRequest(
        topics=(
            CreatableTopic(
                name=topic,
                num_partitions=partitions,
                replication_factor=1,
                configs=tuple(
                    CreatableTopicConfig(name.replace("_", "."), value)
                    for name, value in configs.items()
                ),
            ),
        ),
        timeout_ms=1_000,
    )
    return CREATE_TOPICS, 7, request


def delete(topic: str) -> tuple[int, int, DeleteTopicsRequest]:
    return (
        DELETE_TOPICS,
        6,
        DeleteTopicsRequest(topics=(DeleteTopicState(topic),), timeout_ms=1_000),
    )


def produce(
    *values: bytes,
    topic: str = "orders",
    partition: int = 0,
    acks: int = -1,
    timeout_ms: int = 1_000,
    records: Batches | None = None,
    **fields: int,
) -> tuple[int, int, ProduceRequest]:
    data = batches(*values, **fields) if records is None else records
    request = ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=(
            TopicProduceData(name=topic, partition_data=(PartitionProduceData(partition, data),)),
        ),
    )
    return (PRODUCE, 9, request)


def fetch(
    offset: int = 0,
    *,
    topic: str = "orders",
    partitions: tuple[int, ...] = (0,),
    max_wait_ms: int = 500,
    min_bytes: int = 1,
    session: tuple[int, int] = (0, -1),
    named: bool = True,
) -> tuple[int, int, FetchRequest]:
    topics: tuple[FetchTopic, ...] = ()
    if named:
        asked = tuple(
            FetchPartition(partition=p, fetch_offset=offset, partition_max_bytes=1 << 20)
            for p in partitions
        )
        topics = (FetchTopic(topic=topic, partitions=asked),)
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=1 << 24,
        session_id=session[0],
        session_epoch=session[1],
        topics=topics,
    )
    return (FETCH, 12, request)


def written(reply: Any) -> tuple[int, int]:
    """(error, base offset) of a one-partition Produce."""
    partition = reply.responses[0].partition_responses[0]
    return partition.error_code, partition.base_offset


def read(reply: Any) -> bytes:
    """The record bytes of a one-partition Fetch."""
    return bytes(reply.responses[0].partitions[0].records.data)
