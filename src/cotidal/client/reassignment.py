"""Moving partitions: what a plan would copy, beginning it, and how far it has got (KIP-455).

assignment.py decides what a good plan is, moving.py asks the cluster for it; here both meet what
there is: brokers that serve, logs that have a size, throttles that go with a move.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cotidal.client.admin import LogSize, log_sizes
from cotidal.client.assignment import Assignment, Impossible, Place, plan
from cotidal.client.cluster import Cluster
from cotidal.client.metadata import Metadata
from cotidal.client.moving import Ongoing, Outcome, ongoing, reassign
from cotidal.client.throttling import Move, lift, limit_brokers, limit_moves
from cotidal.values import NodeId, TopicPartition

Sizes = Mapping[NodeId, Mapping[TopicPartition, LogSize]]


class Step(NamedTuple):
    """One partition of a plan."""

    at: TopicPartition
    now: Assignment
    planned: Assignment
    copied_bytes: int
    """By all that get it."""


class Moving(NamedTuple):
    """A reassignment under way, in bytes."""

    ongoing: Ongoing
    whole_bytes: int
    left_bytes: int


def plan_steps(
    cluster: Cluster,
    topics: Sequence[str] = (),
    *,
    brokers: Iterable[int] | None = None,
    without: Iterable[int] = (),
    replicas: int | None = None,
) -> list[Step]:
    """What would change if these topics (or all) were spread over ``brokers`` (or all that serve).
    Impossible where there is no such plan."""
    for name in topics:
        cluster.topic(name)
    metadata = cluster.metadata()
    allowed = allowed_brokers(metadata, brokers, without)
    now = {
        TopicPartition(topic.name, partition.partition): partition.replicas
        for topic in metadata.topics
        if (topic.name in topics if topics else not topic.is_internal)
        for partition in topic.partitions
    }
    places = [Place(b.node_id, b.rack or "") for b in metadata.brokers if b.node_id in allowed]
    targets = plan(now, places, replication_factor=replicas)
    sizes = log_sizes(cluster, [broker.node_id for broker in metadata.brokers])
    return [
        Step(at, now[at], targets[at], copied_bytes(at, now[at], targets[at], sizes))
        for at in sorted(targets)
        if targets[at] != now[at]
    ]


def begin(
    cluster: Cluster, targets: Mapping[TopicPartition, Assignment], *, throttle: int | None = None
) -> list[Outcome]:
    """``throttle``: bytes a second into and out of each broker, for what moves alone."""
    if throttle is not None:
        metadata = cluster.metadata()
        # Before the first byte moves.
        limit_moves(cluster, moves_of(metadata, targets))
        limit_brokers(cluster, [broker.node_id for broker in metadata.brokers], throttle)
    outcomes = reassign(cluster, dict(targets))
    if throttle is not None and all(outcome.error for outcome in outcomes):
        lift_throttles(cluster, targets)
    return outcomes


def look(cluster: Cluster) -> list[Moving]:
    """What is under way, with what the new replicas lack of their leader's log."""
    under_way = ongoing(cluster)
    if not under_way:
        return []
    metadata = cluster.metadata(sorted({each.at.topic for each in under_way}))
    sizes = log_sizes(cluster, [broker.node_id for broker in metadata.brokers])
    leaders = {
        TopicPartition(topic.name, partition.partition): partition.leader
        for topic in metadata.topics
        for partition in topic.partitions
    }
    moving = []
    for each in under_way:
        whole = size_at(sizes, leaders.get(each.at), each.at)
        held = sum(min(whole, size_at(sizes, node, each.at)) for node in each.adding)
        moving.append(Moving(each, whole * len(each.adding), whole * len(each.adding) - held))
    return moving


def lift_throttles(cluster: Cluster, partitions: Iterable[TopicPartition]) -> None:
    brokers = [broker.node_id for broker in cluster.metadata(()).brokers]
    lift(cluster, brokers=brokers, topics=sorted({at.topic for at in partitions}))


def moving_json(moving: Moving) -> dict[str, object]:
    each = moving.ongoing
    return {
        "topic": each.at.topic,
        "partition": each.at.partition,
        "replicas": each.replicas,
        "adding": each.adding,
        "removing": each.removing,
        "bytes_left": moving.left_bytes,
        "bytes": moving.whole_bytes,
    }


def allowed_brokers(
    metadata: Metadata, given: Iterable[int] | None, without: Iterable[int]
) -> set[int]:
    serving = {int(broker.node_id) for broker in metadata.brokers}
    allowed = serving if given is None else set(given)
    gone = set(without)
    unknown = (allowed | gone) - serving if given is not None else gone - known_brokers(metadata)
    if unknown:
        listed = ",".join(map(str, sorted(serving)))
        raise Impossible(f"no broker {min(unknown)} serves; those that do are {listed}")
    return allowed - gone


def known_brokers(metadata: Metadata) -> set[int]:
    """Those that serve, and those that have a replica, whether they serve or not."""
    partitions = [each for topic in metadata.topics for each in topic.partitions]
    named = {int(node) for partition in partitions for node in partition.replicas}
    return named | {int(broker.node_id) for broker in metadata.brokers}


def moves_of(metadata: Metadata, targets: Mapping[TopicPartition, Assignment]) -> list[Move]:
    moves = []
    for topic in metadata.topics:
        for partition in topic.partitions:
            target = targets.get(TopicPartition(topic.name, partition.partition))
            if target is not None:
                adding = tuple(node for node in target if node not in partition.replicas)
                at = TopicPartition(topic.name, partition.partition)
                moves.append(Move(at, partition.replicas, adding))
    return moves


def copied_bytes(at: TopicPartition, now: Assignment, target: Assignment, sizes: Sizes) -> int:
    new = [node for node in target if node not in now]
    return len(new) * max((size_at(sizes, node, at) for node in now), default=0)


def size_at(sizes: Sizes, node: NodeId | None, at: TopicPartition) -> int:
    log = None if node is None else sizes.get(node, {}).get(at)
    return 0 if log is None else log.size_bytes
