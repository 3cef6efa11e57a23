"""Topics: create, delete, give them more partitions. Pure.

A topic is born with a random id, leader and partition epochs 0, and every *active* replica in the
ISR; the first of those leads. Names follow Kafka's rules, and two names that differ only in ``.``
and ``_`` are refused, because metrics could not tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from cotidal.core.cluster.controller import Controller, Decided, Records
from cotidal.core.cluster.decide.configs import SET, ConfigChange, decide_incremental_alter
from cotidal.core.cluster.image import TOPIC_RESOURCE, Image, Partition, partition_record
from cotidal.core.cluster.placement import Assignment, place
from cotidal.errors import ErrorCode, Refusal
from cotidal.limits import PARTITIONS_PER_DECISION_MAX, TOPIC_NAME_LENGTH_MAX
from cotidal.messages.records.metadata import PartitionRecord, RemoveTopicRecord, TopicRecord
from cotidal.values import LeaderEpoch, NodeId, PartitionEpoch, Uuid

EVENTS_TOPIC: Final = "__cotidal_events"
"""In which the nodes tell what happens (node/chronicle.py)."""

INTERNAL_TOPICS: Final = (
    "__consumer_offsets",
    "__transaction_state",
    "__share_group_state",
    EVENTS_TOPIC,
)

BY_DEFAULT: Final = -1
"""Partitions or replicas of a topic whose number is left to the settings."""

_NAME_CHARACTERS: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
)


class NewTopic(NamedTuple):
    name: str
    partitions: int = BY_DEFAULT
    replication_factor: int = BY_DEFAULT
    assignments: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """Partition and its brokers, where they are chosen by hand."""
    configs: tuple[tuple[str, str | None], ...] = ()


class Created(NamedTuple):
    records: Records
    topic_id: Uuid
    partitions: int
    replication_factor: int


def decide_create_topic(
    controller: Controller, topic: NewTopic, *, also: Iterable[str] = ()
) -> Created | Refusal:
    """``also``: names that are being created in the same request."""
    refusal = refuse_name(topic.name) or _refuse_taken(controller.image, topic.name, also)
    if refusal is not None:
        return refusal
    changes = tuple(ConfigChange(name, SET, value) for name, value in topic.configs)
    configs = decide_incremental_alter(
        controller, (TOPIC_RESOURCE, topic.name), changes, newly_created=True
    )
    if isinstance(configs, Refusal):
        return configs
    assigned = _assign(controller, topic)
    if isinstance(assigned, Refusal):
        return assigned
    topic_id = _new_topic_id(controller)
    partitions = _partition_records(controller.image, topic_id, 0, assigned)
    return Created(
        records=(TopicRecord(name=topic.name, topic_id=topic_id), *configs, *partitions),
        topic_id=topic_id,
        partitions=len(assigned),
        replication_factor=len(assigned[0]),
    )


def decide_auto_create(controller: Controller, name: str) -> Decided:
    """A topic that was asked for and is not there: by default settings, or those of its kind."""
    created = decide_create_topic(controller, by_kind(controller.number, name))
    return created if isinstance(created, Refusal) else created.records


def decide_delete_topic(controller: Controller, topic_id: Uuid) -> Decided:
    if controller.image.topic_by_id(topic_id) is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_ID)
    return (RemoveTopicRecord(topic_id=topic_id),)


def decide_create_partitions(
    controller: Controller,
    name: str,
    *,
    count: int,
    assignments: tuple[tuple[int, ...], ...] | None = None,
) -> Decided:
    """Let a topic have ``count`` partitions in all."""
    topic = controller.image.topics.get(name)
    if topic is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic '{name}' does not exist")
    current = len(topic.partitions)
    if count == current:
        return Refusal(
            ErrorCode.INVALID_PARTITIONS, f"topic '{name}' already has {current} partitions"
        )
    if count < current:
        return Refusal(
            ErrorCode.INVALID_PARTITIONS,
            f"topic '{name}' has {current} partitions and cannot go down to {count}: "
            "partitions are never removed",
        )
    added = count - current
    if added > PARTITIONS_PER_DECISION_MAX:
        return _too_many(added)
    replication_factor = len(topic.partitions[0].replicas)
    if assignments is None:
        placed = place(
            controller.image.brokers.values(),
            partitions=added,
            replication_factor=replication_factor,
            entropy=controller.entropy,
        )
    elif len(assignments) != added:
        return Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{added} partitions are to be added, but {len(assignments)} assignments were given",
        )
    else:
        by_hand = {current + step: brokers for step, brokers in enumerate(assignments)}
        placed = _checked_by_hand(controller.image, by_hand, replication_factor)
    if isinstance(placed, Refusal):
        return placed
    return _partition_records(controller.image, topic.topic_id, current, placed)


def refuse_name(name: str) -> Refusal | None:
    """Why a topic cannot have this name, if it cannot."""
    if not name:
        sentence = "a topic needs a name"
    elif name in (".", ".."):
        sentence = f"a topic cannot be named '{name}'"
    elif len(name) > TOPIC_NAME_LENGTH_MAX:
        sentence = (
            f"a topic's name has at most {TOPIC_NAME_LENGTH_MAX} characters; this has {len(name)}"
        )
    elif not _NAME_CHARACTERS.issuperset(name):
        sentence = f"topic name '{name}' may hold only ASCII letters, digits, '.', '_' and '-'"
    else:
        return None
    return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, sentence)


def _refuse_taken(image: Image, name: str, also: Iterable[str]) -> Refusal | None:
    if name in image.topics:
        return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic '{name}' already exists")
    if "." not in name and "_" not in name:
        return None
    plain = name.replace(".", "_")
    for names in (image.topics, also):
        for other in names:
            if len(other) == len(name) and other != name and other.replace(".", "_") == plain:
                return Refusal(
                    ErrorCode.INVALID_TOPIC_EXCEPTION,
                    f"topic '{name}' would collide with '{other}': metrics treat '.' and '_' alike",
                )
    return None


def by_kind(number: Callable[[str], int], name: str) -> NewTopic:
    """The nodes' own topics have settings of their own; the rest have the defaults.
    ``number``: a broker's setting."""
    if name == "__consumer_offsets":
        return NewTopic(
            name,
            number("offsets.topic.num.partitions"),
            number("offsets.topic.replication.factor"),
            configs=(
                ("cleanup.policy", "compact"),
                ("compression.type", "producer"),
                ("segment.bytes", str(number("offsets.topic.segment.bytes"))),
            ),
        )
    if name == "__transaction_state":
        return NewTopic(
            name,
            number("transaction.state.log.num.partitions"),
            number("transaction.state.log.replication.factor"),
            configs=(
                ("cleanup.policy", "compact"),
                ("compression.type", "uncompressed"),
                ("min.insync.replicas", str(number("transaction.state.log.min.isr"))),
                ("segment.bytes", str(number("transaction.state.log.segment.bytes"))),
                ("unclean.leader.election.enable", "false"),
            ),
        )
    if name == EVENTS_TOPIC:
        return NewTopic(
            name,
            1,  # so that what happens has one order
            configs=(
                ("cleanup.policy", "delete"),
                ("retention.ms", str(24 * 3600 * 1000)),
                ("retention.bytes", str(1 << 30)),
                ("segment.ms", str(3600 * 1000)),  # so that retention finds something to delete
                ("min.insync.replicas", "1"),  # it is read when replicas are missing
            ),
        )
    return NewTopic(name)


def _assign(controller: Controller, topic: NewTopic) -> tuple[Assignment, ...] | Refusal:
    if topic.assignments:
        return _assign_by_hand(controller.image, topic)
    if topic.replication_factor < 1 and topic.replication_factor != BY_DEFAULT:
        return Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {topic.replication_factor} must be 1 or more, or -1 for the "
            "default",
        )
    if topic.partitions < 1 and topic.partitions != BY_DEFAULT:
        return Refusal(
            ErrorCode.INVALID_PARTITIONS,
            f"{topic.partitions} partitions were asked for; it must be 1 or more, or -1 for the "
            "default",
        )
    partitions = topic.partitions
    if partitions == BY_DEFAULT:
        partitions = controller.number("num.partitions")
    if partitions > PARTITIONS_PER_DECISION_MAX:
        return _too_many(partitions)
    replication_factor = topic.replication_factor
    if replication_factor == BY_DEFAULT:
        replication_factor = controller.number("default.replication.factor")
    return place(
        controller.image.brokers.values(),
        partitions=partitions,
        replication_factor=replication_factor,
        entropy=controller.entropy,
    )


def _assign_by_hand(image: Image, topic: NewTopic) -> tuple[Assignment, ...] | Refusal:
    if topic.replication_factor != BY_DEFAULT or topic.partitions != BY_DEFAULT:
        return Refusal(
            ErrorCode.INVALID_REQUEST,
            "with brokers chosen by hand, the numbers of partitions and replicas must both be -1",
        )
    if len(topic.assignments) > PARTITIONS_PER_DECISION_MAX:
        return _too_many(len(topic.assignments))
    by_hand = dict(topic.assignments)
    if len(by_hand) != len(topic.assignments):
        return Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "a partition was given brokers more than once"
        )
    if sorted(by_hand) != list(range(len(by_hand))):
        return Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions must be numbered from 0 without a gap",
        )
    return _checked_by_hand(image, by_hand, None)


def _checked_by_hand(
    image: Image, by_hand: Mapping[int, tuple[int, ...]], replication_factor: int | None
) -> tuple[Assignment, ...] | Refusal:
    checked: list[Assignment] = []
    for number in sorted(by_hand):
        replicas = tuple(map(NodeId, by_hand[number]))
        sentence = _wrong_by_hand(image, replicas, replication_factor)
        if sentence is not None:
            return Refusal(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"brokers of partition {number}: {sentence}"
            )
        replication_factor = len(replicas)
        checked.append(replicas)
    return tuple(checked)


def _wrong_by_hand(
    image: Image, replicas: tuple[NodeId, ...], replication_factor: int | None
) -> str | None:
    if not replicas:
        return "there are none"
    if len(set(replicas)) != len(replicas):
        return f"one is named twice in {_listed(replicas)}"
    for replica in replicas:
        if replica not in image.brokers:
            return f"no broker {replica} is registered"
    if replication_factor is not None and len(replicas) != replication_factor:
        return f"{len(replicas)} were given, but other partitions have {replication_factor}"
    if not any(image.is_active(replica) for replica in replicas):
        return f"all of {_listed(replicas)} are fenced or shutting down"
    return None


def _partition_records(
    image: Image, topic_id: Uuid, first: int, assigned: tuple[Assignment, ...]
) -> tuple[PartitionRecord, ...]:
    return tuple(
        partition_record(topic_id, first + step, _new_partition(image, replicas))
        for step, replicas in enumerate(assigned)
    )


def _new_partition(image: Image, replicas: Assignment) -> Partition:
    isr = tuple(replica for replica in replicas if image.is_active(replica))
    return Partition(
        replicas=replicas,
        isr=isr,
        leader=isr[0],
        leader_epoch=LeaderEpoch(0),
        partition_epoch=PartitionEpoch(0),
        directories=tuple(image.default_directory(replica) for replica in replicas),
    )


def _new_topic_id(controller: Controller) -> Uuid:
    while True:
        topic_id = Uuid(controller.entropy.bytes16())
        # Kafka reserves ids whose first half is zero, and its tools mistake a leading '-'.
        if topic_id[:8] != bytes(8) and topic_id[0] >> 2 != 0b111110:
            return topic_id


def _too_many(partitions: int) -> Refusal:
    return Refusal(
        ErrorCode.POLICY_VIOLATION,
        f"{partitions} new partitions are more than the {PARTITIONS_PER_DECISION_MAX} of one "
        "request; ask for them in several",
    )


def _listed(replicas: tuple[NodeId, ...]) -> str:
    return ", ".join(map(str, replicas))
