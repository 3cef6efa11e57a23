"""Requests of somebody who takes himself for a node: wrong epochs, wrong members, wrong clusters.

A node checks what its peers claim and asserts nothing of it, because a peer may be of another
release, or long gone. Each of these must be refused and change nothing, whenever it comes; they are
made with all that is known of the cluster, so that only what is wrong with them is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from cotidal.core.cluster.image import RECOVERED, RECOVERING, Image
from cotidal.messages.rpc.add_raft_voter import AddRaftVoterRequest
from cotidal.messages.rpc.add_raft_voter import Listener as VoterListener
from cotidal.messages.rpc.allocate_producer_ids import AllocateProducerIdsRequest
from cotidal.messages.rpc.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    BrokerState,
)
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
)
from cotidal.messages.rpc.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochRequestPartitionData,
    BeginQuorumEpochRequestTopicData,
)
from cotidal.messages.rpc.broker_heartbeat import BrokerHeartbeatRequest
from cotidal.messages.rpc.broker_registration import BrokerRegistrationRequest, Listener
from cotidal.messages.rpc.controller_registration import ControllerRegistrationRequest
from cotidal.messages.rpc.end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochRequestPartitionData,
    EndQuorumEpochRequestTopicData,
)
from cotidal.messages.rpc.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotRequestPartitionSnapshot,
    FetchSnapshotRequestSnapshotId,
    FetchSnapshotRequestTopicSnapshot,
)
from cotidal.messages.rpc.remove_raft_voter import RemoveRaftVoterRequest
from cotidal.messages.rpc.update_raft_voter import UpdateRaftVoterRequest
from cotidal.messages.rpc.vote import VoteRequest, VoteRequestPartitionData, VoteRequestTopicData
from cotidal.values import Offset, TopicPartition, Uuid

METADATA: Final = "__cluster_metadata"
NOBODY: Final = 77
NOWHERE: Final = Uuid(b"?" * 16)
NO_SUCH_STATE: Final = 7
SILENT_PORT: Final = 9
TIMEOUT_MS: Final = 3_000

Draw = Callable[[int], int]


class Claim(NamedTuple):
    """What an impostor asks of a controller."""

    key: ApiKey
    version: int
    request: Any


class Cluster(NamedTuple):
    """What it knows of the cluster that it is in, or takes itself to be in."""

    id: str
    image: Image
    nodes: int


def claim(draw: Draw, cluster: Cluster, partition: TopicPartition) -> Claim | None:
    """One that must be refused; None if too little is known for it yet."""
    kinds = (_isr, _isr, _broker, _directories, _epochs, _votes, _snapshots, _voters)
    return kinds[draw(len(kinds))](draw, cluster, partition)


def _pick(draw: Draw, choices: tuple[Any, ...]) -> Any:
    return choices[draw(len(choices))]


def _isr(draw: Draw, cluster: Cluster, partition: TopicPartition) -> Claim | None:
    topic = cluster.image.topics.get(partition.topic)
    told = cluster.image.partition(*partition)
    broker = None if told is None else cluster.image.brokers.get(told.leader)
    if topic is None or told is None or broker is None:
        return None
    leader, isr = told.leader, tuple(told.isr)
    others = [node for node in cluster.image.brokers if node != leader]
    asked = AlterPartitionRequestPartitionData(
        partition_index=partition.partition,
        leader_epoch=told.leader_epoch,
        partition_epoch=told.partition_epoch,
        leader_recovery_state=RECOVERED,
    )
    members, asked, topic_id, sender, epoch = _pick(
        draw,
        (
            ((*isr, leader), asked, topic.topic_id, leader, broker.epoch),
            ((*isr, NOBODY), asked, topic.topic_id, leader, broker.epoch),
            (isr, asked._replace(leader_recovery_state=NO_SUCH_STATE), topic.topic_id, leader,
             broker.epoch),
            ((leader, *others[:1]), asked._replace(leader_recovery_state=RECOVERING),
             topic.topic_id, leader, broker.epoch),
            (tuple(others), asked, topic.topic_id, leader, broker.epoch),
            (isr, asked, NOWHERE, leader, broker.epoch),
            (isr, asked._replace(partition_index=NOBODY), topic.topic_id, leader, broker.epoch),
            (isr, asked._replace(leader_epoch=1 << 20), topic.topic_id, leader, broker.epoch),
            (isr, asked._replace(leader_epoch=-1), topic.topic_id, leader, broker.epoch),
            (isr, asked, topic.topic_id, leader, broker.epoch - 1),
            (isr, asked, topic.topic_id, NOBODY, broker.epoch),
        ),
    )  # fmt: skip
    asked = asked._replace(new_isr_with_epochs=tuple(BrokerState(each) for each in members))
    topics = (AlterPartitionRequestTopicData(topic_id, (asked,)),)
    return Claim(ApiKey.ALTER_PARTITION, 3, AlterPartitionRequest(sender, epoch, topics))


def _broker(draw: Draw, cluster: Cluster, partition: TopicPartition) -> Claim:
    listener = Listener("PLAINTEXT", "nowhere", 9092)
    match draw(4):
        case 0:
            return Claim(ApiKey.BROKER_HEARTBEAT, 1, BrokerHeartbeatRequest(NOBODY, 1))
        case 1:
            return Claim(ApiKey.ALLOCATE_PRODUCER_IDS, 0, AllocateProducerIdsRequest(NOBODY, 1))
        case 2:
            unnamed = ControllerRegistrationRequest(NOBODY, NOWHERE)
            return Claim(ApiKey.CONTROLLER_REGISTRATION, 0, unnamed)
        case _:
            where, named = _pick(
                draw,
                (
                    (cluster.id, ()),
                    (cluster.id, (listener,)),  # and knows none of the cluster's features
                    (cluster.id, (listener, listener)),
                    ("elsewhere", (listener,)),
                ),
            )
            request = BrokerRegistrationRequest(
                NOBODY, where, NOWHERE, named, log_dirs=(NOWHERE,), rack=None
            )
            return Claim(ApiKey.BROKER_REGISTRATION, 3, request)


def _directories(draw: Draw, cluster: Cluster, partition: TopicPartition) -> Claim | None:
    topic = cluster.image.topics.get(partition.topic)
    brokers = tuple(cluster.image.brokers.values())
    if topic is None or not brokers:
        return None
    broker = _pick(draw, brokers)
    topic_id, number = _pick(draw, ((NOWHERE, 0), (topic.topic_id, NOBODY)))
    where = AssignReplicasToDirsRequestDirectoryData(
        NOWHERE,
        (
            AssignReplicasToDirsRequestTopicData(
                topic_id, (AssignReplicasToDirsRequestPartitionData(number),)
            ),
        ),
    )
    request = AssignReplicasToDirsRequest(broker.node_id, broker.epoch, (where,))
    return Claim(ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, request)


def _epochs(draw: Draw, cluster: Cluster, partition: TopicPartition) -> Claim:
    """Of an epoch that is over: nobody changes whom it follows."""
    whose = _pick(draw, (cluster.id, "elsewhere"))
    if draw(2):
        begun = BeginQuorumEpochRequestPartitionData(leader_id=NOBODY, leader_epoch=0)
        begin = BeginQuorumEpochRequest(
            whose, 1 + draw(cluster.nodes), (BeginQuorumEpochRequestTopicData(METADATA, (begun,)),)
        )
        return Claim(ApiKey.BEGIN_QUORUM_EPOCH, 1, begin)
    over = EndQuorumEpochRequestPartitionData(leader_id=NOBODY, leader_epoch=0)
    end = EndQuorumEpochRequest(whose, (EndQuorumEpochRequestTopicData(METADATA, (over,)),))
    return Claim(ApiKey.END_QUORUM_EPOCH, 1, end)


def _votes(draw: Draw, cluster: Cluster, partition: TopicPartition) -> Claim:
    """An empty log in an epoch that is over, also for another cluster, of voters of other disks."""
    asked = VoteRequestPartitionData(
        replica_epoch=0,
        replica_id=1 + draw(cluster.nodes),
        replica_directory_id=NOWHERE,
        voter_directory_id=NOWHERE,
        pre_vote=draw(2) == 0,
    )
    request = VoteRequest(
        _pick(draw, (cluster.id, "elsewhere")),
        1 + draw(cluster.nodes),
        (VoteRequestTopicData(METADATA, (asked,)),),
    )
    return Claim(ApiKey.VOTE, 2, request)


def _snapshots(draw: Draw, cluster: Cluster, partition: TopicPartition) -> Claim:
    wanted = FetchSnapshotRequestPartitionSnapshot(
        current_leader_epoch=_pick(draw, (-1, 0, 1 << 20)),
        snapshot_id=FetchSnapshotRequestSnapshotId(Offset(1 << 40), 3),
        position=_pick(draw, (0, -1, 1 << 40)),
    )
    request = FetchSnapshotRequest(
        cluster.id, NOBODY, topics=(FetchSnapshotRequestTopicSnapshot(METADATA, (wanted,)),)
    )
    return Claim(ApiKey.FETCH_SNAPSHOT, 1, request)


def _voters(draw: Draw, cluster: Cluster, partition: TopicPartition) -> Claim:
    match draw(3):
        case 0:
            listener = VoterListener("CONTROLLER", "node-1", SILENT_PORT)
            add = AddRaftVoterRequest(cluster.id, TIMEOUT_MS, NOBODY, NOWHERE, (listener,))
            return Claim(ApiKey.ADD_RAFT_VOTER, 1, add)
        case 1:
            remove = RemoveRaftVoterRequest(cluster.id, 1 + draw(cluster.nodes), NOWHERE)
            return Claim(ApiKey.REMOVE_RAFT_VOTER, 0, remove)
        case _:
            update = UpdateRaftVoterRequest(cluster.id, 0, 1 + draw(cluster.nodes), NOWHERE)
            return Claim(ApiKey.UPDATE_RAFT_VOTER, 0, update)
