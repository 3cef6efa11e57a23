"""How a node speaks to the active controller: CreateTopics (19) for topics that somebody asked
for, AlterPartition (56), BrokerRegistration (62), BrokerHeartbeat (63), AllocateProducerIds (67),
ControllerRegistration (70), AssignReplicasToDirs (73). The other side of these is in their own
files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from cotidal.core.cluster.decide.topics import NewTopic
from cotidal.core.cluster.image import ControllerNode
from cotidal.core.partition.effects import ProposeIsr
from cotidal.messages.rpc import controller_registration as registering
from cotidal.messages.rpc.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    BrokerState,
)
from cotidal.messages.rpc.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
)
from cotidal.messages.rpc.broker_heartbeat import BrokerHeartbeatRequest
from cotidal.messages.rpc.broker_registration import (
    BrokerRegistrationRequest,
    Feature,
    Listener,
)
from cotidal.messages.rpc.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from cotidal.values import BrokerEpoch, NodeId, Offset, Uuid

CREATE_VERSION: Final = 7
ALTER_PARTITION_VERSION: Final = 3
REGISTRATION_VERSION: Final = 4
HEARTBEAT_VERSION: Final = 1
PRODUCER_IDS_VERSION: Final = 0
ENROLMENT_VERSION: Final = 0
ASSIGN_VERSION: Final = 0


def creation(topics: Iterable[NewTopic], *, timeout_ms: int) -> CreateTopicsRequest:
    wanted = tuple(
        CreatableTopic(
            topic.name,
            topic.partitions,
            topic.replication_factor,
            configs=tuple(CreatableTopicConfig(*config) for config in topic.configs),
        )
        for topic in topics
    )
    return CreateTopicsRequest(wanted, timeout_ms)


def alter_partition(
    proposals: list[tuple[Uuid, int, ProposeIsr]], *, node_id: NodeId, broker_epoch: BrokerEpoch
) -> AlterPartitionRequest:
    by_topic: dict[Uuid, list[AlterPartitionRequestPartitionData]] = {}
    for topic_id, partition, asked in proposals:
        by_topic.setdefault(topic_id, []).append(
            AlterPartitionRequestPartitionData(
                partition_index=partition,
                leader_epoch=asked.leader_epoch,
                new_isr_with_epochs=tuple(BrokerState(*member) for member in asked.isr),
                leader_recovery_state=0,
                partition_epoch=asked.partition_epoch,
            )
        )
    return AlterPartitionRequest(
        broker_id=node_id,
        broker_epoch=broker_epoch,
        topics=tuple(
            AlterPartitionRequestTopicData(topic_id=topic_id, partitions=tuple(partitions))
            for topic_id, partitions in by_topic.items()
        ),
    )


def registration(
    *,
    node_id: NodeId,
    cluster_id: str,
    incarnation_id: Uuid,
    listeners: tuple[tuple[str, str, int], ...],
    features: tuple[tuple[str, int, int], ...],
    rack: str | None,
    log_dirs: tuple[Uuid, ...],
    previous_epoch: BrokerEpoch,
) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(
        broker_id=node_id,
        cluster_id=cluster_id,
        incarnation_id=incarnation_id,
        listeners=tuple(Listener(name, host, port, 0) for name, host, port in listeners),
        features=tuple(Feature(*feature) for feature in features),
        rack=rack,
        log_dirs=log_dirs,
        previous_broker_epoch=previous_epoch,
    )


def enrolment(node: ControllerNode) -> registering.ControllerRegistrationRequest:
    return registering.ControllerRegistrationRequest(
        controller_id=node.node_id,
        incarnation_id=node.incarnation_id,
        zk_migration_ready=False,
        listeners=tuple(registering.Listener(*endpoint) for endpoint in node.endpoints),
        features=tuple(registering.Feature(*feature) for feature in node.features),
    )


def heartbeat(
    *,
    node_id: NodeId,
    broker_epoch: BrokerEpoch,
    metadata_offset: Offset,
    want_fence: bool,
    want_shut_down: bool,
    offline_log_dirs: tuple[Uuid, ...],
) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(
        broker_id=node_id,
        broker_epoch=broker_epoch,
        current_metadata_offset=metadata_offset,
        want_fence=want_fence,
        want_shut_down=want_shut_down,
        offline_log_dirs=offline_log_dirs,
    )


def assign_replicas(
    by_directory: Mapping[Uuid, list[tuple[Uuid, int]]],
    *,
    node_id: NodeId,
    broker_epoch: BrokerEpoch,
) -> AssignReplicasToDirsRequest:
    """Each replica as topic id and partition."""
    directories = []
    for directory, replicas in by_directory.items():
        topics: dict[Uuid, list[AssignReplicasToDirsRequestPartitionData]] = {}
        for topic_id, partition in replicas:
            named = AssignReplicasToDirsRequestPartitionData(partition)
            topics.setdefault(topic_id, []).append(named)
        data = tuple(
            AssignReplicasToDirsRequestTopicData(topic_id, tuple(partitions))
            for topic_id, partitions in topics.items()
        )
        directories.append(AssignReplicasToDirsRequestDirectoryData(directory, data))
    return AssignReplicasToDirsRequest(node_id, broker_epoch, tuple(directories))
