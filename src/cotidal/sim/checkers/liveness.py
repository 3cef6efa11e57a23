"""What comes about once faults stop: every promise of progress, and the sentence for what is amiss.

``missing`` looks at the cluster now. The run goes on until nothing is missing, or time is up: then
the first thing missing is what was broken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cotidal.core.transactions.transaction import IDLE
from cotidal.invariants import (
    BROKERS_REGISTER,
    BROKERS_UNFENCE,
    DELETED_LOGS_GO,
    ISR_HEALS,
    LEADER_APPEARS,
    METADATA_CONVERGES,
    PRODUCE_IS_ANSWERED,
    PROPOSALS_RESOLVE,
    QUORUM_LEADER_APPEARS,
    REASSIGNMENT_ENDS,
    REBALANCES_END,
    REPLICAS_CONVERGE,
    STABLE_OFFSET_FOLLOWS,
    TXN_ENDS,
)
from cotidal.sim.checkers.window import (
    applied_by,
    broker_epoch_of,
    hosted_by,
    image_of,
    leads_quorum,
    quorum_of,
    transactions_of,
)
from cotidal.sim.process import Process
from cotidal.sim.workloads.member import Member
from cotidal.sim.workloads.producer import Producer
from cotidal.sim.world import World
from cotidal.values import NO_NODE, TopicPartition

Missing = tuple[str, str]
"""The promise, and what is amiss."""


def missing(
    world: World, producers: Sequence[Producer], members: Sequence[Member] = ()
) -> Iterator[Missing]:
    leaders = [process for process in world.running if leads_quorum(process)]
    if len(leaders) != 1:
        told = [process.node_id for process in leaders]
        yield QUORUM_LEADER_APPEARS, f"the quorum is led by {told}"
        return
    leader = leaders[0]
    yield from _metadata(world, leader)
    for process in world.running:
        if not process.serving:
            yield BROKERS_UNFENCE, f"node {process.node_id} does not serve"
    image = image_of(leader)
    for process in world.running:
        if not process.machine.config.is_broker:
            continue
        broker = image.brokers.get(process.node_id)
        if broker is None or broker.epoch != broker_epoch_of(process):
            yield BROKERS_REGISTER, f"node {process.node_id} lives, and the controller has {broker}"
        elif broker.fenced:
            yield BROKERS_UNFENCE, f"node {process.node_id} is fenced"
    yield from _partitions(world, leader)
    yield from _leftovers(world)
    yield from _transactions(world)
    for producer in producers:
        if producer.unanswered:
            yield PRODUCE_IS_ANSWERED, f"{producer.name} waits for {producer.unanswered} batches"
    for member in members:
        if not member.settled:
            yield REBALANCES_END, f"{member.name} has no assignment in its group"
    yield from _unowned(members)


def _unowned(members: Sequence[Member]) -> Iterator[Missing]:
    """Partitions that nobody in a group has."""
    groups: dict[str, set[TopicPartition]] = {}
    for member in members:
        groups.setdefault(member.group, set(member.wanted)).difference_update(member.held)
    for group, unowned in groups.items():
        if unowned:
            yield REBALANCES_END, f"nobody in {group} has {', '.join(map(str, sorted(unowned)))}"


def _transactions(world: World) -> Iterator[Missing]:
    """No transaction is under way once nobody begins any."""
    for process in world.running:
        for id_, transaction in transactions_of(process).items():
            if transaction.status not in IDLE:
                word = transaction.status.word
                yield TXN_ENDS, f"{id_} is {word} at node {process.node_id}: {transaction}"


def _metadata(world: World, leader: Process) -> Iterator[Missing]:
    committed = quorum_of(leader).high_watermark
    for process in world.running:
        if applied_by(process) != committed:
            yield (
                METADATA_CONVERGES,
                f"node {process.node_id} has applied {applied_by(process)} of {committed}",
            )


def _partitions(world: World, controller: Process) -> Iterator[Missing]:
    for topic in image_of(controller).topics.values():
        for number, told in topic.partitions.items():
            partition = TopicPartition(topic.name, number)
            if told.leader == NO_NODE:
                yield LEADER_APPEARS, f"{partition} has no leader: {told}"
                continue
            if told.reassigning:
                yield REASSIGNMENT_ENDS, f"{partition} is being reassigned: {told}"
            if sorted(told.isr) != sorted(told.replicas):
                yield ISR_HEALS, f"the ISR of {partition} is {told.isr} of {told.replicas}"
            yield from _replicas(world, partition, told.leader, told.replicas)


def _leftovers(world: World) -> Iterator[Missing]:
    for process in world.running:
        for partition in process.disk.lanes.keys() - hosted_by(process).keys():
            yield DELETED_LOGS_GO, f"node {process.node_id} still has the log of {partition}"


def _replicas(
    world: World, partition: TopicPartition, leader: int, replicas: tuple[int, ...]
) -> Iterator[Missing]:
    ends = []
    for node_id in replicas:
        process = world.machines[node_id].process  # type: ignore[index]
        hosted = None if process is None else hosted_by(process).get(partition)
        if hosted is None or not hosted.replica.opened:
            yield REPLICAS_CONVERGE, f"{partition} is not open on node {node_id}"
            return
        replica = hosted.replica
        ends.append(replica.end_offset)
        if replica.last_stable_offset != replica.high_watermark:
            yield STABLE_OFFSET_FOLLOWS, f"{partition} on node {node_id} is not stable to its end"
        if node_id == leader:
            leadership = replica.leadership
            if leadership is None:
                yield LEADER_APPEARS, f"node {node_id} does not know that it leads {partition}"
            elif leadership.proposed is not None:
                yield PROPOSALS_RESOLVE, f"{partition} waits for {leadership.proposed}"
            if replica.high_watermark != replica.end_offset:
                yield (
                    ISR_HEALS,
                    f"the high watermark of {partition} is {replica.high_watermark} of"
                    f" {replica.end_offset}",
                )
    if min(ends) != max(ends):
        yield REPLICAS_CONVERGE, f"the replicas of {partition} end at {ends}"
