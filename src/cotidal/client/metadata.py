"""What a client knows of a cluster: its brokers, and who leads which partition. Pure."""

from __future__ import annotations

from typing import NamedTuple

from cotidal.client.addresses import Address
from cotidal.client.failures import known_code
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.metadata import MetadataResponse
from cotidal.values import NO_NODE, LeaderEpoch, NodeId, Uuid


class Broker(NamedTuple):
    node_id: NodeId
    address: Address
    rack: str | None


class Partition(NamedTuple):
    partition: int
    leader: NodeId
    leader_epoch: LeaderEpoch
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    offline: tuple[NodeId, ...]

    @property
    def is_under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_NODE


class Topic(NamedTuple):
    """``error`` is NONE, or why the cluster could not describe the topic."""

    name: str
    topic_id: Uuid
    is_internal: bool
    partitions: tuple[Partition, ...]
    error: ErrorCode = ErrorCode.NONE

    @property
    def replication_factor(self) -> int:
        return max((len(partition.replicas) for partition in self.partitions), default=0)


class Metadata(NamedTuple):
    """One answer of one broker: a consistent picture, already a moment old."""

    cluster_id: str | None
    controller_id: NodeId
    brokers: tuple[Broker, ...]
    topics: tuple[Topic, ...]

    def broker(self, node_id: NodeId) -> Broker | None:
        return next((broker for broker in self.brokers if broker.node_id == node_id), None)

    def topic(self, name: str) -> Topic | None:
        return next((topic for topic in self.topics if topic.name == name), None)


def read_metadata(response: MetadataResponse) -> Metadata:
    """Topics and partitions sorted; codes we do not know become UNKNOWN_SERVER_ERROR."""
    return Metadata(
        cluster_id=response.cluster_id,
        controller_id=NodeId(response.controller_id),
        brokers=tuple(
            sorted(
                Broker(NodeId(broker.node_id), Address(broker.host, broker.port), broker.rack)
                for broker in response.brokers
            )
        ),
        topics=tuple(
            sorted(
                (
                    Topic(
                        name=topic.name or "",
                        topic_id=topic.topic_id,
                        is_internal=topic.is_internal,
                        partitions=tuple(
                            sorted(
                                Partition(
                                    partition.partition_index,
                                    NodeId(partition.leader_id),
                                    LeaderEpoch(partition.leader_epoch),
                                    tuple(map(NodeId, partition.replica_nodes)),
                                    tuple(map(NodeId, partition.isr_nodes)),
                                    tuple(map(NodeId, partition.offline_replicas)),
                                )
                                for partition in topic.partitions
                            )
                        ),
                        error=known_code(topic.error_code),
                    )
                    for topic in response.topics
                ),
                key=lambda topic: topic.name,
            )
        ),
    )
