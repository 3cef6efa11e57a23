"""What was gathered of a cluster, as plain values for programs and pages. Pure."""

from __future__ import annotations

from cotidal.client.replicas import Registered
from cotidal.client.standing import PartitionStanding, ReplicaStanding, epoch_ends
from cotidal.client.status import Status


def status_json(status: Status) -> dict[str, object]:
    return {
        "cluster_id": status.metadata.cluster_id,
        "brokers": [broker_json(status, broker) for broker in status.brokers],
        "partitions": [partition_json(status, each) for each in status.partitions],
    }


def broker_json(status: Status, broker: Registered) -> dict[str, object]:
    return {
        "id": broker.node_id,
        "host": broker.host,
        "port": broker.port,
        "rack": broker.rack,
        "fenced": broker.is_fenced,
        "fenced_for_ms": status.scene.fenced_for_ms(broker.node_id) if broker.is_fenced else None,
        "answers": broker.node_id in status.scene.told,
        "size_bytes": sum(log.size_bytes for log in status.sizes[broker.node_id].values())
        if broker.node_id in status.sizes
        else None,
    }


def partition_json(status: Status, each: PartitionStanding) -> dict[str, object]:
    partition = each.partition
    return {
        "topic": each.at.topic,
        "partition": partition.partition,
        "leader": partition.leader if partition.has_leader else None,
        "leader_epoch": partition.leader_epoch,
        "replicas": partition.replicas,
        "isr": partition.isr,
        "elr": each.eligible.elr,
        "last_known_leader": each.eligible.last_known[0] if each.eligible.last_known else None,
        "offline": partition.offline,
        "min_isr": each.min_isr,
        "start_offset": each.start_offset,
        "end_offset": each.high_watermark,
        "log_end_offset": each.end_offset,
        "size_bytes": size_of(status, each),
        "unheard": each.unheard,
        "standing": [replica_json(replica) for replica in each.replicas],
    }


def replica_json(replica: ReplicaStanding) -> dict[str, object]:
    held, loss = replica.held, replica.loss
    return {
        "broker": replica.node_id,
        "role": replica.role.value,
        "log_start_offset": None if held is None else held.start_offset,
        "high_watermark": None if held is None else held.high_watermark,
        "log_end_offset": replica.known_end,
        "epochs": None
        if held is None or held.epochs is None
        else [{"epoch": epoch, "end_offset": end} for epoch, end in epoch_ends(held)],
        "why_not_in_sync": replica.why,
        "loss_if_elected": None
        if loss is None
        else {
            "acknowledged_with_acks_all": loss.committed,
            "acknowledged_with_acks_1_at_most": loss.uncommitted,
            "bound": loss.bound.name.lower(),
        },
    }


def broker_state(status: Status, broker: Registered) -> str:
    if broker.is_fenced:
        return status.scene.fenced_text(broker.node_id)
    return "does not answer" if broker.node_id in status.scene.silent else "serves"


def size_of(status: Status, each: PartitionStanding) -> int | None:
    log = status.sizes.get(each.partition.leader, {}).get(each.at)
    return None if log is None else log.size_bytes
