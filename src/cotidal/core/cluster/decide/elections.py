"""Elections that somebody asks for, or the clock. Pure. KIP-183, KIP-460, KIP-631.

PREFERRED gives leadership back to the first replica; UNCLEAN lets any replica lead where nobody
does, though it may lack acknowledged records. By hand both happen whatever the settings say.

The clock's preferred elections happen per broker: of the partitions that prefer it, more than
``leader.imbalance.per.broker.percentage`` are led elsewhere. Partitions that are being reassigned
do not count, nor can a broker that is not active get anything back.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from cotidal.core.cluster.controller import Controller, Decided, Records
from cotidal.core.cluster.decide.leaders import (
    Election,
    acceptable_in,
    change,
    elect_leaderless,
    rules_of,
)
from cotidal.core.cluster.image import Topic
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.metadata import PartitionChangeRecord
from cotidal.values import NO_NODE, NodeId

ELECTIONS_PER_PASS_MAX: Final = 1_000
"""Kafka's. Each costs its clients a new metadata request: not all at once."""


def decide_election(controller: Controller, name: str, number: int, election: Election) -> Decided:
    """ElectLeaders of one partition."""
    topic = controller.image.topics.get(name)
    partition = None if topic is None else topic.partitions.get(number)
    if topic is None or partition is None:
        return Refusal(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}-{number}"
        )
    preferred = partition.replicas[0]
    if election is Election.PREFERRED and partition.leader == preferred:
        return Refusal(
            ErrorCode.ELECTION_NOT_NEEDED, f"broker {preferred} leads {name}-{number} already"
        )
    if election is Election.UNCLEAN and partition.leader != NO_NODE:
        return Refusal(
            ErrorCode.ELECTION_NOT_NEEDED,
            f"{name}-{number} has a leader, broker {partition.leader}",
        )
    record = _elect(controller, topic, number, election)
    if record is not None:
        return (record,)
    if election is Election.PREFERRED:
        return Refusal(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            f"broker {preferred} cannot lead {name}-{number}: it is not in sync, or not active",
        )
    return Refusal(
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, f"no replica of {name}-{number} is active"
    )


def decide_preferred(controller: Controller) -> Records:
    """One pass of the clock: at most ELECTIONS_PER_PASS_MAX; a full pass wants another."""
    return tuple(islice(_preferred(controller), ELECTIONS_PER_PASS_MAX))


def decide_leaderless(controller: Controller) -> Records:
    """One pass over partitions without a leader; whoever may lead by now does."""
    return tuple(islice(elect_leaderless(controller), ELECTIONS_PER_PASS_MAX))


def imbalanced(controller: Controller) -> dict[NodeId, list[tuple[Topic, int]]]:
    """For each active broker past the threshold: partitions that prefer it, led by others."""
    image = controller.image
    percentage = controller.number("leader.imbalance.per.broker.percentage")
    preferring: dict[NodeId, int] = {}
    elsewhere: dict[NodeId, list[tuple[Topic, int]]] = {}
    for topic in image.topics.values():
        for number, partition in topic.partitions.items():
            if partition.reassigning:
                continue
            preferred = partition.replicas[0]
            preferring[preferred] = preferring.get(preferred, 0) + 1
            if partition.leader != preferred:
                elsewhere.setdefault(preferred, []).append((topic, number))
    return {
        node_id: partitions
        for node_id, partitions in elsewhere.items()
        if image.is_active(node_id) and len(partitions) * 100 > percentage * preferring[node_id]
    }


def _preferred(controller: Controller) -> Iterator[PartitionChangeRecord]:
    for partitions in imbalanced(controller).values():
        for topic, number in partitions:
            record = _elect(controller, topic, number, Election.PREFERRED)
            if record is not None:
                yield record


def _elect(
    controller: Controller, topic: Topic, number: int, election: Election
) -> PartitionChangeRecord | None:
    partition = topic.partitions[number]
    return change(
        topic.topic_id,
        number,
        partition,
        rules_of(controller, topic.name),
        acceptable_in(controller.image, partition),
        election=election,
    )
