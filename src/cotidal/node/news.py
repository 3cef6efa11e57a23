"""From a metadata record that is about to be replayed to what it means for replication. Pure.

A record says what is; what has happened is the difference from the image before it. Only what the
record names is looked at: a broker that dies changes thousands of partitions in one batch.
"""

from __future__ import annotations

from collections.abc import Iterator

from cotidal.core.cluster.image import (
    LEADER_UNCHANGED,
    Image,
    MetadataRecord,
    Partition,
)
from cotidal.messages.records.metadata import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from cotidal.node.happenings import (
    BrokerFenced,
    BrokerRegistered,
    BrokerUnfenced,
    BrokerUnregistered,
    ControlledShutdown,
    Happening,
    IsrExpanded,
    IsrShrunk,
    LeaderChanged,
    LeaderEpochRaised,
    ReassignmentEnded,
    ReassignmentStarted,
    UncleanElection,
)
from cotidal.values import BrokerEpoch, LeaderEpoch, NodeId, Offset, PartitionEpoch

FENCE = 1
UNFENCE = -1
"""BrokerRegistrationChangeRecord.fenced: 0 says nothing of it."""


def happenings_of(image: Image, record: MetadataRecord, offset: Offset) -> Iterator[Happening]:
    """``image``: before the record at ``offset``."""
    match record:
        case PartitionChangeRecord():
            topic = image.topic_by_id(record.topic_id)
            before = None if topic is None else topic.partitions.get(record.partition_id)
            if topic is not None and before is not None:
                yield from _of_partition(topic.name, before, record, offset)
        case RegisterBrokerRecord():
            yield BrokerRegistered(
                NodeId(record.broker_id),
                BrokerEpoch(record.broker_epoch),
                record.rack or "",
                offset,
            )
        case UnregisterBrokerRecord():
            yield BrokerUnregistered(NodeId(record.broker_id), offset)
        case FenceBrokerRecord(id=node, epoch=epoch):
            yield BrokerFenced(NodeId(node), BrokerEpoch(epoch), offset)
        case UnfenceBrokerRecord(id=node, epoch=epoch):
            yield BrokerUnfenced(NodeId(node), BrokerEpoch(epoch), offset)
        case BrokerRegistrationChangeRecord():
            yield from _of_broker(record, offset)
        case _:
            pass


def _of_broker(record: BrokerRegistrationChangeRecord, offset: Offset) -> Iterator[Happening]:
    node, epoch = NodeId(record.broker_id), BrokerEpoch(record.broker_epoch)
    if record.in_controlled_shutdown > 0:
        yield ControlledShutdown(node, epoch, offset)
    if record.fenced == FENCE:
        yield BrokerFenced(node, epoch, offset)
    elif record.fenced == UNFENCE:
        yield BrokerUnfenced(node, epoch, offset)


def _of_partition(
    topic: str, before: Partition, record: PartitionChangeRecord, offset: Offset
) -> Iterator[Happening]:
    number = record.partition_id
    leader, epoch = before.leader, before.leader_epoch
    isr = before.isr if record.isr is None else tuple(map(NodeId, record.isr))
    if record.leader != LEADER_UNCHANGED:
        leader, epoch = NodeId(record.leader), LeaderEpoch(epoch + 1)
        if leader != before.leader:
            yield LeaderChanged(topic, number, before.leader, leader, epoch, isr, offset)
        else:
            yield LeaderEpochRaised(topic, number, leader, epoch, offset)
        if leader >= 0 and leader not in before.isr and leader not in before.elr:
            was_last = before.last_known_elr == (leader,)
            yield UncleanElection(topic, number, leader, epoch, before.isr, was_last, offset)
    removed = tuple(node for node in before.isr if node not in isr)
    added = tuple(node for node in isr if node not in before.isr)
    version = PartitionEpoch(before.partition_epoch + 1)
    if removed:
        yield IsrShrunk(topic, number, leader, epoch, version, isr, removed, offset)
    if added:
        yield IsrExpanded(topic, number, leader, epoch, version, isr, added, offset)
    yield from _of_replicas(topic, before, record, offset)


def _of_replicas(
    topic: str, before: Partition, record: PartitionChangeRecord, offset: Offset
) -> Iterator[Happening]:
    if record.adding_replicas is None and record.removing_replicas is None:
        return
    adding = before.adding if record.adding_replicas is None else record.adding_replicas
    removing = before.removing if record.removing_replicas is None else record.removing_replicas
    replicas = before.replicas if record.replicas is None else record.replicas
    told = tuple(map(NodeId, replicas))
    if adding or removing:
        yield ReassignmentStarted(
            topic,
            record.partition_id,
            told,
            tuple(map(NodeId, adding)),
            tuple(map(NodeId, removing)),
            offset,
        )
    elif before.reassigning:
        yield ReassignmentEnded(topic, record.partition_id, told, offset)
