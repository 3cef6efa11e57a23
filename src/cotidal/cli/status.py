"""``cotidal status``: the whole cluster on one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from cotidal.cli.table import Cell, bytes_text, list_text, print_json, print_table, red
from cotidal.cli.verb import Verb, bootstrap_option, json_option

if TYPE_CHECKING:
    from cotidal.client.admin import LogSize
    from cotidal.client.cluster import Cluster
    from cotidal.client.metadata import Metadata, Partition
    from cotidal.values import NodeId, Offset, TopicPartition


class PartitionStatus(NamedTuple):
    topic: str
    partition: Partition
    start_offset: Offset | None
    end_offset: Offset | None
    """High watermark: what consumers can read. None while nobody leads the partition."""
    size_bytes: int | None
    """On the leader's disk."""


@click.command(
    cls=Verb,
    examples=(
        ("everything", "cotidal status"),
        ("only what is not well", "cotidal status --under-replicated"),
        ("for a program", "cotidal status --json"),
    ),
)
@click.option("--under-replicated", is_flag=True, help="Only partitions that lack a replica.")
@click.option("--internal", is_flag=True, help="Also topics that the cluster keeps for itself.")
@json_option
@bootstrap_option
def command(under_replicated: bool, internal: bool, as_json: bool, bootstrap: str) -> None:
    """Show brokers and partitions: leader, in-sync replicas, offsets, size."""
    from cotidal.client.admin import log_sizes
    from cotidal.client.cluster import Cluster

    with Cluster(bootstrap, timeout_s=10.0) as cluster:
        metadata = cluster.metadata()
        sizes = log_sizes(cluster, [broker.node_id for broker in metadata.brokers])
        partitions = [
            status
            for status in partition_statuses(cluster, metadata, sizes, internal=internal)
            if not under_replicated
            or status.partition.is_under_replicated
            or not status.partition.has_leader
        ]
    if as_json:
        print_json(status_json(metadata, sizes, partitions))
        return
    print_cluster(metadata, sizes)
    if partitions:
        click.echo()
        print_partitions(partitions)
    elif under_replicated:
        click.echo("\nevery partition has all its replicas in sync")
    else:
        click.echo("\nthere are no topics; create one with `cotidal topic create NAME`")


def partition_statuses(
    cluster: Cluster,
    metadata: Metadata,
    sizes: dict[NodeId, dict[TopicPartition, LogSize]],
    *,
    internal: bool,
) -> list[PartitionStatus]:
    from cotidal.client.offsets import earliest_offsets, end_offsets
    from cotidal.values import TopicPartition

    shown = [
        (TopicPartition(topic.name, partition.partition), partition)
        for topic in metadata.topics
        if internal or not topic.is_internal
        for partition in topic.partitions
    ]
    # A partition without leader has no offsets that anybody vouches for: it is not waited for.
    named = {broker.node_id for broker in metadata.brokers}
    led = [at for at, partition in shown if partition.leader in named]
    starts, ends = earliest_offsets(cluster, led), end_offsets(cluster, led)
    found: list[PartitionStatus] = []
    for at, partition in shown:
        log = sizes.get(partition.leader, {}).get(at)
        found.append(
            PartitionStatus(
                at.topic, partition, starts.get(at), ends.get(at), log.size_bytes if log else None
            )
        )
    return found


def print_cluster(metadata: Metadata, sizes: dict[NodeId, dict[TopicPartition, LogSize]]) -> None:
    leading = [partition.leader for topic in metadata.topics for partition in topic.partitions]
    replicas = [
        node for topic in metadata.topics for partition in topic.partitions
        for node in partition.replicas
    ]  # fmt: skip
    click.echo(f"cluster {metadata.cluster_id}")
    click.echo()
    rows: list[list[Cell]] = []
    for broker in metadata.brokers:
        logs = sizes.get(broker.node_id)
        size = None if logs is None else sum(log.size_bytes for log in logs.values())
        rows.append(
            [
                broker.node_id,
                str(broker.address),
                broker.rack,
                leading.count(broker.node_id),
                replicas.count(broker.node_id),
                None if size is None else bytes_text(size),
            ]
        )
    print_table(("BROKER", "ADDRESS", "RACK", "LEADS", "REPLICAS", "SIZE"), rows)


def print_partitions(partitions: list[PartitionStatus]) -> None:
    lacking = sum(status.partition.is_under_replicated for status in partitions)
    leaderless = sum(not status.partition.has_leader for status in partitions)
    print_table(
        ("TOPIC", "PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "START", "END", "SIZE"),
        [
            (
                status.topic,
                status.partition.partition,
                status.partition.leader if status.partition.has_leader else None,
                status.partition.leader_epoch,
                list_text(status.partition.replicas),
                list_text(status.partition.isr),
                status.start_offset,
                status.end_offset,
                bytes_text(status.size_bytes) if status.size_bytes is not None else None,
            )
            for status in partitions
        ],
    )
    if lacking or leaderless:
        click.echo()
        click.echo(red(f"{lacking} under-replicated, {leaderless} without a leader"))


def status_json(
    metadata: Metadata,
    sizes: dict[NodeId, dict[TopicPartition, LogSize]],
    partitions: list[PartitionStatus],
) -> dict[str, object]:
    return {
        "cluster_id": metadata.cluster_id,
        "brokers": [
            {
                "id": broker.node_id,
                "host": broker.address.host,
                "port": broker.address.port,
                "rack": broker.rack,
                "size_bytes": sum(log.size_bytes for log in sizes[broker.node_id].values())
                if broker.node_id in sizes
                else None,
            }
            for broker in metadata.brokers
        ],
        "partitions": [
            {
                "topic": status.topic,
                "partition": status.partition.partition,
                "leader": status.partition.leader if status.partition.has_leader else None,
                "leader_epoch": status.partition.leader_epoch,
                "replicas": status.partition.replicas,
                "isr": status.partition.isr,
                "offline": status.partition.offline,
                "start_offset": status.start_offset,
                "end_offset": status.end_offset,
                "size_bytes": status.size_bytes,
            }
            for status in partitions
        ],
    }
