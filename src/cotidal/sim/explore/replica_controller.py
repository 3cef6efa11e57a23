"""The controller of the partition's world: the real decisions upon a real image, at once. Pure.

There is no quorum behind it: a decision is committed when it is made. Brokers hear of it later,
each in its own time, in the order of the versions, perhaps of several at once.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cotidal.core.cluster.controller import Controller
from cotidal.core.cluster.decide import brokers, isr
from cotidal.core.cluster.image import (
    ELR_VERSION,
    Broker,
    Endpoint,
    Image,
    MetadataRecord,
    Partition,
    Topic,
    check,
)
from cotidal.core.machine import Entropy
from cotidal.core.partition.leader import IsrAnswered
from cotidal.errors import ErrorCode, Refusal
from cotidal.invariants import ISR_WELL_FORMED
from cotidal.sim.explore.replica_events import PARTITION, Propose, Told
from cotidal.sim.violation import Violation
from cotidal.values import (
    NO_NODE,
    BrokerEpoch,
    LeaderEpoch,
    NodeId,
    Offset,
    PartitionEpoch,
    Uuid,
)

TOPIC_ID: Final = Uuid(b"orders".ljust(16))
REPLICAS: Final = (NodeId(1), NodeId(2), NodeId(3))
ENDPOINTS: Final = (Endpoint("PLAINTEXT", "localhost", 9092),)


class Version(NamedTuple):
    """What brokers are told: the partition, and who may be in an ISR."""

    partition: Partition
    active: tuple[tuple[NodeId, BrokerEpoch], ...]


class Decided(NamedTuple):
    """All that was ever decided; the last version is what holds."""

    brokers: tuple[Broker, ...]
    history: tuple[Version, ...]

    @property
    def version(self) -> int:
        return len(self.history) - 1

    @property
    def partition(self) -> Partition:
        return self.history[-1].partition

    def broker(self, node_id: NodeId) -> Broker:
        return self.brokers[REPLICAS.index(node_id)]

    def leader_of(self, epoch: LeaderEpoch) -> NodeId:
        """Whom it made leader of an epoch; nobody of one that never was."""
        for version in self.history:
            if version.partition.leader_epoch == epoch:
                return version.partition.leader
        return NO_NODE

    def told(self, *, applied: int, version: int, min_isr: int) -> Told:
        """What a broker hears that goes from one version to a later one."""
        partition, active = self.history[version]
        is_same = applied >= 0 and self.history[applied].partition == partition
        return Told(version, None if is_same else partition, active, min_isr)


def first() -> Decided:
    """Three brokers in sync, the first of them leads."""
    partition = Partition(
        replicas=REPLICAS,
        isr=REPLICAS,
        leader=REPLICAS[0],
        leader_epoch=LeaderEpoch(0),
        partition_epoch=PartitionEpoch(0),
    )
    registered = tuple(
        Broker(node_id, BrokerEpoch(0), Uuid(bytes(16)), ENDPOINTS, None, False, False)
        for node_id in REPLICAS
    )
    active = tuple((node_id, BrokerEpoch(0)) for node_id in REPLICAS)
    return Decided(registered, (Version(partition, active),))


class Desk:
    """Decides upon ``Decided`` values; keeps nothing but settings."""

    def __init__(self, *, min_isr: int) -> None:
        self._min_isr = min_isr
        self._settings = {"min.insync.replicas": str(min_isr)}

    def fence(self, before: Decided, node_id: NodeId) -> Decided:
        """Its session has expired, whether it lives or not."""
        return self._replayed(before, brokers.decide_fence(self._controller(before), node_id))

    def heartbeat(
        self, before: Decided, node_id: NodeId, *, life: BrokerEpoch, applied: int
    ) -> Decided:
        """A broker that has applied so much wants to take part."""
        beat = brokers.Heartbeat(node_id, life, Offset(applied), False, False)
        decided = brokers.decide_heartbeat(self._controller(before), beat, everyone_knows=False)
        if isinstance(decided, Refusal):
            return before
        return self._replayed(before, decided.records)

    def register(self, before: Decided, node_id: NodeId) -> Decided:
        """A new incarnation; whether its old one was stopped cleanly it cannot say."""
        epoch = BrokerEpoch(before.version + 1)
        asked = brokers.Registration(node_id, Uuid(bytes([epoch] * 16)), ENDPOINTS, None)
        records = brokers.decide_register(self._controller(before), asked, epoch=epoch)
        assert not isinstance(records, Refusal), records
        return self._replayed(before, records)

    def propose(self, before: Decided, asked: Propose) -> tuple[Decided, IsrAnswered]:
        """AlterPartition, as api/alter_partition.py has it decided."""
        controller = self._controller(before)
        stale = isr.refuse_sender(controller.image, asked.sender, asked.life)
        if stale is not None:
            return before, IsrAnswered(asked.proposal, stale.error)
        proposal = isr.IsrProposal(
            TOPIC_ID,
            PARTITION.partition,
            asked.proposal.leader_epoch,
            asked.proposal.partition_epoch,
            tuple(isr.Member(*member) for member in asked.proposal.isr),
        )
        decided = isr.decide_isr(controller, asked.sender, proposal)
        if isinstance(decided, Refusal):
            return before, IsrAnswered(asked.proposal, decided.error)
        records = () if decided.record is None else (decided.record,)
        after = self._replayed(before, records)
        if decided.error is not ErrorCode.NONE:
            return after, IsrAnswered(asked.proposal, decided.error)
        told = decided.partition
        answer = IsrAnswered(
            asked.proposal, ErrorCode.NONE, told.leader_epoch, told.partition_epoch, told.isr
        )
        return after, answer

    def _controller(self, decided: Decided) -> Controller:
        image = Image()
        image.brokers = dict(zip(REPLICAS, decided.brokers, strict=True))
        partitions = {PARTITION.partition: decided.partition}
        image.topics = {PARTITION.topic: Topic(PARTITION.topic, TOPIC_ID, partitions)}
        image.topic_names = {TOPIC_ID: PARTITION.topic}
        image.features = {ELR_VERSION: 1}
        return Controller(image, Entropy(0), self._settings, node_id=0)

    def _replayed(self, before: Decided, records: tuple[MetadataRecord, ...]) -> Decided:
        if not records:
            return before
        image = self._controller(before).image
        for record in records:
            image.replay(record)
        check(image)
        partition = image.topics[PARTITION.topic].partitions[PARTITION.partition]
        self._check(image, partition)
        known = tuple(image.brokers[node_id] for node_id in REPLICAS)
        active = tuple((broker.node_id, broker.epoch) for broker in known if broker.active)
        return Decided(known, (*before.history, Version(partition, active)))

    def _check(self, image: Image, partition: Partition) -> None:
        both = (*partition.isr, *partition.elr)
        wrong = ""
        if len(set(both)) != len(both):
            wrong = "ISR and ELR overlap"
        elif partition.leader != NO_NODE and partition.leader not in partition.isr:
            wrong = "the leader is not in the ISR"
        elif len(partition.isr) >= self._min_isr and partition.elr:
            wrong = "a full ISR leaves an ELR"
        elif any(image.brokers[member].fenced for member in partition.isr):
            wrong = "a fenced broker is in the ISR"
        if wrong:
            raise Violation(ISR_WELL_FORMED, f"{wrong}: {partition}")
