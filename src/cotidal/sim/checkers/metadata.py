"""Every committed metadata record, once and in order: what it changes, and whether it may.

The records are read from the log of the node that is furthest, as bytes, and replayed into an image
of the checkers' own. So every change of a partition is seen singly, however many of them a node
applies in one step, and the nodes' images have something to be compared with.

A batch is one decision: how a partition looks between two records of it is nobody's concern.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from cotidal.core.cluster.image import TOPIC_RESOURCE, Image, Partition
from cotidal.invariants import (
    ELECTED_FROM_ELIGIBLE,
    ISR_WELL_FORMED,
    JOINS_AFTER_FETCH,
    LEADER_HOLDS_ACKED,
    ONE_LEADER_PER_EPOCH,
)
from cotidal.messages.records.metadata import (
    BrokerRegistrationChangeRecord,
    NoOpRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from cotidal.sim.checkers.ghost import Ghost
from cotidal.sim.checkers.window import applied_by
from cotidal.sim.metadata_log import read_once
from cotidal.sim.process import Process
from cotidal.sim.violation import Violation
from cotidal.values import NO_NODE, NodeId, Offset, TopicPartition, Uuid
from cotidal.wire.batch import read_batches
from cotidal.wire.metadata_batch import ReadMetadata

READ_BYTES: Final = 1 << 20
MIN_ISR: Final = "min.insync.replicas"
UNCLEAN: Final = "unclean.leader.election.enable"


class MetadataListener(Protocol):
    """Whoever wants to know what was decided."""

    def on_partition_changed(
        self, partition: TopicPartition, before: Partition, after: Partition
    ) -> None: ...

    def on_fenced(self, node_id: NodeId) -> None:
        """A broker that was not, nor was shutting down."""

    def on_registered(self, node_id: NodeId) -> None: ...

    def on_unregistered(self, node_id: NodeId) -> None: ...


class MetadataChecker:
    def __init__(self, ghost: Ghost, exempt: frozenset[str]) -> None:
        self._ghost = ghost
        self._exempt = exempt
        self.listeners: list[MetadataListener] = []

    def follow(self, process: Process) -> None:
        """Take up what this node has applied and no other had before."""
        ghost = self._ghost
        applied = applied_by(process)
        log = process.disk.metadata.log
        while ghost.applied < applied:
            with process.machine.files.unharmed():
                data = log.read(Offset(ghost.applied), max_bytes=READ_BYTES, below=Offset(applied))
            for batch in read_once(read_batches(data)):
                ghost.applied = batch.base_offset + len(batch.records)
                if not batch.control:
                    self._take(batch)

    def look_at_image(self) -> None:
        """Every partition, as it stands."""
        for topic in self._ghost.image.topics.values():
            for number, told in topic.partitions.items():
                self._look_at_partition(TopicPartition(topic.name, number), told)

    def _take(self, batch: ReadMetadata) -> None:
        changed: dict[tuple[Uuid, int], None] = {}
        for record in batch.records:
            if isinstance(record, PartitionChangeRecord):
                changed[record.topic_id, record.partition_id] = None
                self._change(record)
            elif not isinstance(record, NoOpRecord):
                self._take_other(record)
        image = self._ghost.image
        for topic_id, number in changed:
            topic = image.topic_by_id(topic_id)
            if topic is not None:
                place = TopicPartition(topic.name, number)
                self._look_at_partition(place, topic.partitions[number])

    def _take_other(self, record: Any) -> None:
        image = self._ghost.image
        if isinstance(record, RegisterBrokerRecord):
            self._look_at_registration(record)
        fenced: NodeId | None = None
        if isinstance(record, BrokerRegistrationChangeRecord) and record.fenced > 0:
            broker = image.brokers[NodeId(record.broker_id)]
            if not broker.fenced and not broker.in_controlled_shutdown:
                fenced = broker.node_id
        image.replay(record)
        for listener in self.listeners:
            if fenced is not None:
                listener.on_fenced(fenced)
            elif isinstance(record, RegisterBrokerRecord):
                listener.on_registered(NodeId(record.broker_id))
            elif isinstance(record, UnregisterBrokerRecord):
                listener.on_unregistered(NodeId(record.broker_id))

    def _look_at_registration(self, record: RegisterBrokerRecord) -> None:
        node_id = NodeId(record.broker_id)
        before = self._ghost.broker_epochs.get(node_id, -1)
        if record.broker_epoch < before:
            raise Violation(
                ONE_LEADER_PER_EPOCH,
                f"broker {node_id} goes back from broker epoch {before} to {record.broker_epoch}",
            )
        self._ghost.broker_epochs[node_id] = record.broker_epoch

    # One partition

    def _change(self, record: PartitionChangeRecord) -> None:
        image = self._ghost.image
        topic = image.topic_by_id(record.topic_id)
        assert topic is not None
        number = record.partition_id
        before = topic.partitions[number]
        image.replay(record)
        after = topic.partitions[number]
        partition = TopicPartition(topic.name, number)
        if after.leader not in (before.leader, NO_NODE):
            self._look_at_election(partition, before, after)
        alone = len(after.isr) == 1
        for member in after.isr:
            if member not in before.isr and not alone:
                self._look_at_joining(partition, topic.topic_id, member, before, after)
        for listener in self.listeners:
            listener.on_partition_changed(partition, before, after)

    def _look_at_election(
        self, partition: TopicPartition, before: Partition, after: Partition
    ) -> None:
        if after.leader in before.isr or after.leader in before.elr:
            return
        if before.reassigning and any(member in before.isr for member in after.isr):
            return  # it joined with this very record, which ended a reassignment
        image = self._ghost.image
        nobody_else = not any(image.is_active(node) for node in (*before.isr, *before.elr))
        if after.leader in before.last_known_elr and nobody_else:
            return
        allowed = setting_of(image, partition.topic, UNCLEAN, "false") == "true"
        if allowed or LEADER_HOLDS_ACKED in self._exempt:
            return
        raise Violation(
            ELECTED_FROM_ELIGIBLE,
            f"{partition}: node {after.leader} is elected; before, there was {before}",
        )

    def _look_at_joining(
        self,
        partition: TopicPartition,
        topic_id: Uuid,
        member: NodeId,
        before: Partition,
        after: Partition,
    ) -> None:
        """It has fetched as who it is now, in an epoch of the leader that let it in."""
        registered = self._ghost.image.brokers[member].epoch
        seen = self._ghost.partition(topic_id, partition.partition).fetched.get(member)
        if seen is not None and seen[0] == registered and seen[1] >= before.leader_epoch:
            return
        raise Violation(
            JOINS_AFTER_FETCH,
            f"{partition}: node {member}, registered with epoch {registered}, joins the ISR"
            f" {after.isr} in leader epoch {after.leader_epoch}; it last fetched with (broker"
            f" epoch, leader epoch) {seen}",
        )

    def _look_at_partition(self, partition: TopicPartition, told: Partition) -> None:
        image = self._ghost.image
        both = (*told.isr, *told.elr)
        wrong = None
        if len(set(both)) != len(both) or not set(both) <= set(told.replicas):
            wrong = "ISR and ELR are not disjoint parts of the replicas"
        elif told.leader != NO_NODE and told.leader not in told.isr:
            wrong = "the leader is not in the ISR"
        elif image.elr_enabled and any(self._is_out(member) for member in told.isr):
            wrong = "a fenced broker is in the ISR"
        elif told.elr:
            wanted = int(setting_of(image, partition.topic, MIN_ISR, "1"))
            if len(told.isr) >= min(wanted, len(told.replicas)):
                wrong = "the ISR is full, and there is an ELR"
        if wrong is not None:
            raise Violation(ISR_WELL_FORMED, f"{partition}: {wrong}: {told}")

    def _is_out(self, member: NodeId) -> bool:
        broker = self._ghost.image.brokers.get(member)
        return broker is None or broker.fenced


def setting_of(image: Image, topic: str, name: str, otherwise: str) -> str:
    """A topic's setting, as far as metadata tells."""
    value = image.config(TOPIC_RESOURCE, topic).get(name)
    return value or image.cluster_config.get(name) or otherwise
