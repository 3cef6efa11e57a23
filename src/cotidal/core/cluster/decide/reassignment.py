"""Moving partitions to other brokers, and giving them more or fewer replicas. Pure. KIP-455.

    origin 1,2,3   target 3,4        replicas 3,4,1,2   adding 4   removing 1,2
    once 3 and 4 are in the ISR      replicas 3,4                             (leaders.change)
    cancelled before that            replicas 3,1,2

The origin is what there was before: replicas without those that are being added. Another target
while one is under way starts from the origin; brokers that only the old target wanted leave at
once, unless nobody else holds the partition: then they are removed at the end, like the others.

Taking replicas away is *unclean* when whoever could be elected (the ISR; else the ELR; else the
last known leader) goes with them. Cancelling may be that, and is refused unless the topic allows
unclean election and somebody is there to be elected.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cotidal.core.cluster.controller import Controller, Decided
from cotidal.core.cluster.decide.leaders import (
    Assignment,
    Election,
    acceptable_in,
    change,
    rules_of,
)
from cotidal.core.cluster.image import Image, Partition, Topic
from cotidal.errors import ErrorCode, Refusal
from cotidal.values import NodeId, Uuid


class Ongoing(NamedTuple):
    topic: str
    partition: int
    replicas: tuple[NodeId, ...]
    adding: tuple[NodeId, ...]
    removing: tuple[NodeId, ...]


def decide_reassign(
    controller: Controller,
    name: str,
    number: int,
    target: tuple[NodeId, ...] | None,
    *,
    may_change_factor: bool = True,
) -> Decided:
    """Move one partition to ``target``; None cancels what is under way."""
    topic = controller.image.topics.get(name)
    partition = None if topic is None else topic.partitions.get(number)
    if topic is None or partition is None:
        return Refusal(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}-{number}"
        )
    if target is None:
        return _cancel(controller, topic, number, partition)
    origin = _without(partition.replicas, partition.adding)
    sentence = _wrong_target(controller.image, target)
    if sentence is not None:
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, sentence)
    if not may_change_factor and len(target) != len(origin):
        return Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"{name}-{number} has {len(origin)} replicas and was given {len(target)}, but the "
            "request forbids to change their number",
        )
    return _move(controller, topic, number, partition, target=target, origin=origin)


def reassignments(
    image: Image, wanted: tuple[tuple[str, tuple[int, ...]], ...] | None = None
) -> Iterator[Ongoing]:
    """Those under way, of the named partitions or of all; unknown names are passed over."""
    if wanted is None:
        wanted = tuple((name, tuple(topic.partitions)) for name, topic in image.topics.items())
    for name, numbers in wanted:
        for number in numbers:
            found = image.partition(name, number)
            if found is not None and found.reassigning:
                yield Ongoing(name, number, found.replicas, found.adding, found.removing)


def _move(
    controller: Controller,
    topic: Topic,
    number: int,
    partition: Partition,
    *,
    target: tuple[NodeId, ...],
    origin: tuple[NodeId, ...],
) -> Decided:
    dropped = _without(partition.adding, target)
    if _is_unclean(partition, dropped):
        removing = _without(partition.replicas, target)
        dropped = ()
    else:
        removing = _without(origin, target)
    replicas = (*target, *removing)
    assignment = Assignment(
        replicas=replicas,
        adding=_without(target, origin),
        removing=removing,
        directories=_directories(controller.image, partition, replicas),
    )
    record = change(
        topic.topic_id,
        number,
        partition,
        rules_of(controller, topic.name),
        acceptable_in(controller.image, partition),
        isr=_without(partition.isr, dropped),
        assignment=assignment,
    )
    return () if record is None else (record,)


def _cancel(controller: Controller, topic: Topic, number: int, partition: Partition) -> Decided:
    if not partition.reassigning:
        return Refusal(
            ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, f"{topic.name}-{number} is not being reassigned"
        )
    rules = rules_of(controller, topic.name)
    acceptable = acceptable_in(controller.image, partition)
    assignment = Assignment.of(partition).without(partition.adding)._replace(removing=())
    election = Election.ONLINE
    if _is_unclean(partition, partition.adding):
        if not rules.unclean_allowed:
            return Refusal(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"all that could lead {topic.name}-{number} are being added: cancelling would lose "
                "records, and unclean.leader.election.enable is false",
            )
        if not any(acceptable(replica) for replica in assignment.replicas):
            return Refusal(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"without what is being added nobody could lead {topic.name}-{number}",
            )
        election = Election.UNCLEAN
    record = change(
        topic.topic_id,
        number,
        partition,
        rules,
        acceptable,
        isr=_without(partition.isr, partition.adding),
        assignment=assignment,
        election=election,
    )
    assert record is not None, "a reassignment that ends changes something"
    return (record,)


def _is_unclean(partition: Partition, leaving: tuple[NodeId, ...]) -> bool:
    """Would everyone leave who can be elected without loss?"""
    holders = partition.isr or partition.elr or partition.last_known_elr
    return bool(holders) and all(holder in leaving for holder in holders)


def _wrong_target(image: Image, target: tuple[NodeId, ...]) -> str | None:
    if not target:
        return "no brokers are given"
    if len(set(target)) != len(target):
        return f"a broker is named twice in {', '.join(map(str, target))}"
    for node_id in target:
        if node_id not in image.brokers:
            return f"no broker {node_id} is registered"
    return None


def _directories(
    image: Image, partition: Partition, replicas: tuple[NodeId, ...]
) -> tuple[Uuid, ...]:
    if not partition.directories:
        return ()
    return tuple(
        partition.directory(node_id)
        if node_id in partition.replicas
        else image.default_directory(node_id)
        for node_id in replicas
    )


def _without(nodes: tuple[NodeId, ...], gone: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
    return tuple([node for node in nodes if node not in gone])
