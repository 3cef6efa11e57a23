"""Brokers, controllers and partitions as the controller knows them, and the records that say so.

Pure. Immutable values, shared between images; each is made from a record and can be written as one.
"""

from __future__ import annotations

from typing import Final, NamedTuple, cast

from cotidal.messages.records.metadata import (
    BrokerEndpoint,
    BrokerFeature,
    ControllerEndpoint,
    ControllerFeature,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)
from cotidal.values import ZERO_UUID, BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch, Uuid

LEADER_UNCHANGED: Final = -2
"""PartitionChangeRecord.leader when the record says nothing of it."""

RECOVERED: Final = 0
RECOVERING: Final = 1
"""recovery_state: the leader was elected uncleanly and has not yet confirmed it (KIP-704)."""

RECOVERY_UNCHANGED: Final = -1

LOST_DIRECTORY: Final = Uuid(bytes(15) + b"\x01")
MIGRATING_DIRECTORY: Final = Uuid(bytes(15) + b"\x02")
"""Reserved ids of KIP-858, beside ZERO_UUID: the broker has not said yet which directory."""


class Endpoint(NamedTuple):
    """Where a node listens, under the name of one of its listeners."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


class FeatureRange(NamedTuple):
    name: str
    oldest: int
    newest: int


class Broker(NamedTuple):
    """A registered broker."""

    node_id: NodeId
    epoch: BrokerEpoch
    """The offset of its registration's record. Invariant: grows with each incarnation."""
    incarnation_id: Uuid
    """One per process."""
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    fenced: bool
    """Takes no part: silent, not caught up with its own registration, or told so."""
    in_controlled_shutdown: bool
    log_dirs: tuple[Uuid, ...] = ()
    cordoned_log_dirs: tuple[Uuid, ...] | None = None
    features: tuple[FeatureRange, ...] = ()

    @property
    def active(self) -> bool:
        """May lead and be in an ISR (KIP-841)."""
        return not self.fenced and not self.in_controlled_shutdown

    def endpoint(self, listener: str) -> Endpoint | None:
        for endpoint in self.endpoints:
            if endpoint.name == listener:
                return endpoint
        return None

    def has_online(self, directory: Uuid) -> bool:
        """Can it serve what is in this directory? One that says nothing of its directories can."""
        if directory == LOST_DIRECTORY:
            return False
        if not self.log_dirs or directory in (ZERO_UUID, MIGRATING_DIRECTORY):
            return True
        return directory in self.log_dirs


class ControllerNode(NamedTuple):
    """A registered controller."""

    node_id: NodeId
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...]
    features: tuple[FeatureRange, ...] = ()


class Partition(NamedTuple):
    """One partition as the controller knows it."""

    replicas: tuple[NodeId, ...]
    """In order of preference. While a reassignment runs: target, then those being removed."""
    isr: tuple[NodeId, ...]
    leader: NodeId
    """NO_NODE where there is none."""
    leader_epoch: LeaderEpoch
    """+1 with each election, also to NO_NODE, and when the replicas lose a member."""
    partition_epoch: PartitionEpoch
    """+1 with each change of anything."""
    elr: tuple[NodeId, ...] = ()
    """Outside the ISR, but known to hold all that was acknowledged (KIP-966)."""
    last_known_elr: tuple[NodeId, ...] = ()
    """The last leader, while there is neither ISR nor ELR."""
    removing: tuple[NodeId, ...] = ()
    adding: tuple[NodeId, ...] = ()
    directories: tuple[Uuid, ...] = ()
    """Where each replica keeps it, in the order of ``replicas``; older records say nothing."""
    recovery_state: int = RECOVERED

    def directory(self, node_id: NodeId) -> Uuid:
        if not self.directories or node_id not in self.replicas:
            return ZERO_UUID
        return self.directories[self.replicas.index(node_id)]

    @property
    def reassigning(self) -> bool:
        return bool(self.adding or self.removing)


def changed(partition: Partition, record: PartitionChangeRecord) -> Partition:
    """The partition after a PartitionChangeRecord: +1 on the partition epoch, and on the leader
    epoch iff the record names a leader (also the same one)."""
    leader, leader_epoch = partition.leader, partition.leader_epoch
    if record.leader != LEADER_UNCHANGED:
        leader, leader_epoch = NodeId(record.leader), LeaderEpoch(leader_epoch + 1)
    return Partition(
        replicas=_either(record.replicas, partition.replicas),
        isr=_either(record.isr, partition.isr),
        leader=leader,
        leader_epoch=leader_epoch,
        partition_epoch=PartitionEpoch(partition.partition_epoch + 1),
        elr=_either(record.eligible_leader_replicas, partition.elr),
        last_known_elr=_either(record.last_known_elr, partition.last_known_elr),
        removing=_either(record.removing_replicas, partition.removing),
        adding=_either(record.adding_replicas, partition.adding),
        directories=(partition.directories if record.directories is None else record.directories),
        recovery_state=(
            partition.recovery_state
            if record.leader_recovery_state == RECOVERY_UNCHANGED
            else record.leader_recovery_state
        ),
    )


def partition_record(topic_id: Uuid, number: int, partition: Partition) -> PartitionRecord:
    return PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=partition.replicas,
        isr=partition.isr,
        removing_replicas=partition.removing,
        adding_replicas=partition.adding,
        leader=partition.leader,
        leader_recovery_state=partition.recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=partition.directories,
        eligible_leader_replicas=partition.elr or None,
        last_known_elr=partition.last_known_elr or None,
    )


def broker_record(broker: Broker) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker.node_id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=tuple(BrokerEndpoint(*endpoint) for endpoint in broker.endpoints),
        features=tuple(BrokerFeature(*feature) for feature in broker.features),
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=broker.log_dirs,
        cordoned_log_dirs=broker.cordoned_log_dirs,
    )


def partition_of(record: PartitionRecord) -> Partition:
    return Partition(
        replicas=_nodes(record.replicas),
        isr=_nodes(record.isr),
        leader=NodeId(record.leader),
        leader_epoch=LeaderEpoch(record.leader_epoch),
        partition_epoch=PartitionEpoch(record.partition_epoch),
        elr=_nodes(record.eligible_leader_replicas),
        last_known_elr=_nodes(record.last_known_elr),
        removing=_nodes(record.removing_replicas),
        adding=_nodes(record.adding_replicas),
        directories=record.directories,
        recovery_state=record.leader_recovery_state,
    )


def broker_of(record: RegisterBrokerRecord) -> Broker:
    return Broker(
        node_id=NodeId(record.broker_id),
        epoch=BrokerEpoch(record.broker_epoch),
        incarnation_id=record.incarnation_id,
        endpoints=tuple(Endpoint(*end_point) for end_point in record.end_points),
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        log_dirs=record.log_dirs,
        cordoned_log_dirs=record.cordoned_log_dirs,
        features=tuple(FeatureRange(*feature) for feature in record.features),
    )


def controller_of(record: RegisterControllerRecord) -> ControllerNode:
    return ControllerNode(
        node_id=NodeId(record.controller_id),
        incarnation_id=record.incarnation_id,
        endpoints=tuple(Endpoint(*end_point) for end_point in record.end_points),
        features=tuple(FeatureRange(*feature) for feature in record.features),
    )


def controller_record(controller: ControllerNode) -> RegisterControllerRecord:
    return RegisterControllerRecord(
        controller_id=controller.node_id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=False,
        end_points=tuple(ControllerEndpoint(*endpoint) for endpoint in controller.endpoints),
        features=tuple(ControllerFeature(*feature) for feature in controller.features),
    )


def _either(new: tuple[int, ...] | None, old: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
    return old if new is None else cast("tuple[NodeId, ...]", new)


def _nodes(numbers: tuple[int, ...] | None) -> tuple[NodeId, ...]:
    """The record's own tuple: a call of NodeId for each would be a third of a replay."""
    return cast("tuple[NodeId, ...]", numbers or ())
