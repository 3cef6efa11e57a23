"""The whole cluster as one value: who serves, what each replica holds, how each partition stands.

Gathered from every broker that answers, and from the cluster about those that do not. It is no
snapshot: brokers answer one after the other, and what they tell is a moment old.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cotidal.client.admin import LogSize, log_sizes
from cotidal.client.cluster import Cluster
from cotidal.client.metadata import Metadata
from cotidal.client.replicas import (
    NOBODY,
    Registered,
    ask_brokers,
    eligible_leaders,
    registered_brokers,
)
from cotidal.client.standing import PartitionStanding, Scene, stand
from cotidal.values import NodeId, TopicPartition

Sizes = Mapping[NodeId, Mapping[TopicPartition, LogSize]]


class Status(NamedTuple):
    """Everything that was asked for."""

    metadata: Metadata
    brokers: tuple[Registered, ...]
    sizes: Sizes
    partitions: list[PartitionStanding]
    scene: Scene


def gather(
    cluster: Cluster,
    topics: tuple[str, ...] = (),
    *,
    internal: bool = False,
    passed_over: Mapping[NodeId, str] | None = None,
    sizes: Sizes | None = None,
) -> Status:
    """Ask every broker, and the cluster about those that do not answer.

    ``passed_over``: brokers that are not asked now, because they did not answer a moment ago, and
    why. ``sizes``: as known already; else every broker is asked for them.
    """
    for name in topics:
        cluster.topic(name)  # or the cluster's own sentence about it
    metadata = cluster.metadata()
    shown = tuple(
        topic
        for topic in metadata.topics
        if (topic.name in topics if topics else internal or not topic.is_internal)
    )
    names = [topic.name for topic in shown]
    registered = registered_brokers(cluster, metadata)
    left_out = passed_over or {}
    asked = tuple(broker for broker in metadata.brokers if broker.node_id not in left_out)
    told, silent = ask_brokers(cluster, metadata._replace(topics=shown, brokers=asked), names)
    sizes = log_sizes(cluster, told) if sizes is None else sizes
    eligible = eligible_leaders(cluster, names)
    scene = Scene(
        told,
        {**left_out, **silent},
        frozenset(broker.node_id for broker in registered if broker.is_fenced),
        frozenset(broker.node_id for broker in registered),
    )
    partitions = []
    for topic in shown:
        for partition in topic.partitions:
            at = TopicPartition(topic.name, partition.partition)
            log = sizes.get(partition.leader, {}).get(at)
            partitions.append(
                stand(
                    at,
                    partition,
                    scene,
                    eligible=eligible.get(at, NOBODY),
                    leader_bytes=None if log is None else log.size_bytes,
                )
            )
    return Status(metadata, registered, sizes, partitions, scene)
