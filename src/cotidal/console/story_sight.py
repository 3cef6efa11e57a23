"""The small worlds of scripts as pictures. Pure."""

from __future__ import annotations

from typing import Final

from cotidal.console.picture import Broker, Partition, Replica
from cotidal.console.sight import replica_shown
from cotidal.console.world import Json
from cotidal.core.quorum.states import Leader
from cotidal.testing.cluster_world import ClusterWorld
from cotidal.testing.partition_world import PARTITION, PartitionWorld
from cotidal.testing.partition_world import Broker as ScriptBroker
from cotidal.testing.quorum_world import Machine, QuorumWorld
from cotidal.values import NodeId

METADATA: Final = "__cluster_metadata-0"


def partition_picture(world: PartitionWorld) -> Json:
    told = world.committed
    ids = sorted({*world.brokers, *(told.replicas if world.brokers else ())})
    brokers = {
        str(node): _broker(node, "up" if _lives(world, node) else "down", world.racks.get(node, ""))
        for node in ids
    }
    partition: Partition = {
        "leader": told.leader,
        "leader_epoch": told.epoch,
        "partition_epoch": told.partition_epoch,
        "preferred": told.replicas[0],
        "replicas": list(told.replicas),
        "isr": list(told.isr),
        "elr": [],
        "min_isr": told.min_isr,
        "logs": _logs(world),
    }
    _add_proposal(partition, world)
    return _picture(brokers, {str(PARTITION): partition} if world.brokers else {})


def cluster_picture(world: ClusterWorld) -> Json:
    image = world.cluster.image
    brokers: dict[str, Broker] = {}
    for node, life in sorted(world.cluster.lives.items()):
        known = image.brokers.get(node)
        state = "down"
        if life.is_running:
            state = "cut off" if life.is_cut else "up"
            if known is not None and known.fenced and not life.is_cut:
                state = "fenced"
        brokers[str(node)] = _broker(node, state, life.rack or "", life.life)
    partitions: dict[str, Partition] = {}
    for topic in image.topics.values():
        for number, found in topic.partitions.items():
            here = (topic.name, number) == tuple(PARTITION)
            shown: Partition = {
                "leader": found.leader,
                "leader_epoch": found.leader_epoch,
                "partition_epoch": found.partition_epoch,
                "preferred": found.replicas[0],
                "replicas": list(found.replicas),
                "isr": list(found.isr),
                "elr": list(found.elr),
                "min_isr": world.cluster.controller.min_isr(topic.name),
                "logs": _logs(world) if here else {},
            }
            if here:
                _add_proposal(shown, world)
            partitions[f"{topic.name}-{number}"] = shown
    return _picture(brokers, partitions)


def quorum_picture(world: QuorumWorld) -> Json:
    brokers = {str(id_): _voter(machine) for id_, machine in sorted(world.machines.items())}
    leading = [
        machine
        for machine in world.machines.values()
        if machine.node is not None and isinstance(machine.node.state.role, Leader)
    ]
    logs = {str(id_): _metadata_log(machine) for id_, machine in world.machines.items()}
    if not logs:
        return _picture(brokers, {})
    first = max(leading, key=_epoch) if leading else None
    known = first or next(iter(world.machines.values()))
    voters = known.node.state.voter_set.ids if known.node is not None else ()
    partition: Partition = {
        "leader": first.id if first is not None else -1,
        "leader_epoch": _epoch(first) if first is not None else 0,
        "partition_epoch": 0,
        "preferred": -1,
        "replicas": sorted(world.machines),
        "isr": list(voters),
        "elr": [],
        "min_isr": len(voters) // 2 + 1,
        "logs": logs,
    }
    return _picture(brokers, {METADATA: partition})


def _picture(brokers: dict[str, Broker], partitions: dict[str, Partition]) -> Json:
    return {"brokers": brokers, "partitions": partitions, "flights": {}, "links": {}, "clients": {}}


def _broker(node: int, state: str, rack: str, incarnation: int = 1) -> Broker:
    return {"id": node, "state": state, "rack": rack, "incarnation": incarnation}


def _lives(world: PartitionWorld, node: NodeId) -> bool:
    return node in world.brokers and world.brokers[node].replica is not None


def _logs(world: PartitionWorld) -> dict[str, Replica]:
    return {str(node): _log(broker) for node, broker in sorted(world.brokers.items())}


def _log(broker: ScriptBroker) -> Replica:
    if broker.replica is not None:
        return replica_shown(broker.replica)
    log = broker.log
    return {
        "start": log.start,
        "high_watermark": min(log.checkpoint, log.end),
        "end": log.end,
        "epochs": [[entry.epoch, entry.start_offset] for entry in log.epochs],
        "role": "down",
    }


def _add_proposal(partition: Partition, world: PartitionWorld) -> None:
    for broker in world.leaders():
        leadership = None if broker.replica is None else broker.replica.leadership
        if leadership is not None and leadership.proposed is not None:
            partition["proposed"] = list(leadership.proposed)


def _epoch(machine: Machine) -> int:
    return machine.node.state.epoch if machine.node is not None else -1


def _voter(machine: Machine) -> Broker:
    node = machine.node
    state = "down" if node is None else "cut off" if machine.is_cut else "up"
    shown = _broker(machine.id, "played" if machine.is_played else state, "", machine.life)
    if node is not None:
        known = node.state
        shown["quorum"] = {
            "role": type(known.role).__name__.lower(),
            "epoch": known.epoch,
            "end": known.log.end_offset,
            "high_watermark": known.high_watermark,
        }
        if known.voted is not None:
            shown["quorum"]["voted"] = known.voted.node_id
    return shown


def _metadata_log(machine: Machine) -> Replica:
    disk = machine.disk
    epochs: list[list[int]] = []
    for batch in disk.batches:
        if not epochs or epochs[-1][0] < batch.epoch:
            epochs.append([batch.epoch, batch.base_offset])
    node = machine.node
    committed = node.state.high_watermark if node is not None else disk.start
    return {
        "start": disk.start,
        "high_watermark": min(committed, disk.end),
        "end": disk.end,
        "epochs": epochs,
        "role": "down" if node is None else type(node.state.role).__name__.lower(),
    }
