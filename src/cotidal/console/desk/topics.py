"""Topics and their partitions: how each replica stands; making, growing and deleting topics."""

from __future__ import annotations

from collections import defaultdict

from cotidal.client.admin import (
    DEFAULT_FROM_BROKER,
    create_partitions,
    create_topic,
    delete_topics,
)
from cotidal.client.standing import PartitionStanding, loss_text
from cotidal.client.status import Status, gather
from cotidal.client.status_report import partition_json
from cotidal.console.desk.arguments import INT32_MAX, topic_of
from cotidal.console.desk.plan import Plan, done
from cotidal.console.desk.question import Desk
from cotidal.console.world import Command, Json, Refused
from cotidal.limits import DESK_ROWS_MAX
from cotidal.values import TopicPartition
from cotidal.words import counted

PARTITIONS_MAX = 10_000
"""Of a topic that is made here: what a controller writes in one batch."""


def topics(desk: Desk, asked: Command) -> Json:
    """Every topic in a row."""
    status = desk.seen()
    by_topic: dict[str, list[PartitionStanding]] = defaultdict(list)
    for each in status.partitions:
        by_topic[each.at.topic].append(each)
    internal = {topic.name for topic in status.metadata.topics if topic.is_internal}
    rows = [_topic_row(status, name, by_topic[name]) for name in sorted(by_topic)]
    return {
        "topics": [{**row, "internal": row["topic"] in internal} for row in rows[:DESK_ROWS_MAX]],
        "left_out": max(0, len(rows) - DESK_ROWS_MAX),
    }


def topic(desk: Desk, asked: Command) -> Json:
    """Each partition of ``topic``, with each of its replicas, as it is now."""
    name = topic_of(asked)
    status = gather(desk.cluster, (name,), internal=True)
    shown = status.partitions[:DESK_ROWS_MAX]
    return {
        "topic": name,
        "partitions": [_partition(status, each) for each in shown],
        "left_out": len(status.partitions) - len(shown),
    }


def _topic_row(status: Status, name: str, partitions: list[PartitionStanding]) -> Json:
    sizes = [status.sizes.get(node, {}) for node in status.sizes]
    ends = [
        each.high_watermark - each.start_offset
        for each in partitions
        if each.high_watermark is not None and each.start_offset is not None
    ]
    return {
        "topic": name,
        "partitions": len(partitions),
        "replicas": max(len(each.partition.replicas) for each in partitions),
        "under_replicated": sum(each.partition.is_under_replicated for each in partitions),
        "without_leader": sum(not each.partition.has_leader for each in partitions),
        "offsets": sum(ends),
        "size_bytes": sum(
            logs[each.at].size_bytes for logs in sizes for each in partitions if each.at in logs
        ),
    }


def _partition(status: Status, each: PartitionStanding) -> Json:
    told = partition_json(status, each)
    return {
        **told,
        "acks_all_refused": each.min_isr is not None and len(each.partition.isr) < each.min_isr,
        "standing": [
            {**shown, "loss": None if replica.loss is None else loss_text(replica.loss)}
            for shown, replica in zip(_standing(told), each.replicas, strict=True)
        ],
    }


def _standing(told: Json) -> list[Json]:
    found = told["standing"]
    assert isinstance(found, list)
    return found


# Changes


def plan_create(desk: Desk, asked: Command) -> Json:
    """The cluster itself says whether it could be made, and of what size it would be."""
    name, partitions, replicas, configs = _wanted(asked)
    would = create_topic(
        desk.cluster,
        name,
        partitions=partitions,
        replication_factor=replicas,
        configs=configs,
        validate_only=True,
    )
    copies = _of_broker(would.replication_factor, "replica")
    size = f"{_of_broker(would.partitions, 'partition')}, {copies} each"
    settings = "".join(f", {setting}={value}" for setting, value in configs.items())
    return Plan(
        f"Create topic '{name}'", [f"It will have {size}{settings}."], "Create topic"
    ).json()


def create(desk: Desk, asked: Command) -> Json:
    name, partitions, replicas, configs = _wanted(asked)
    create_topic(
        desk.cluster, name, partitions=partitions, replication_factor=replicas, configs=configs
    )
    return done(f"Topic '{name}' is made.")


def plan_grow(desk: Desk, asked: Command) -> Json:
    name, total = topic_of(asked), asked.number("partitions", least=1, most=PARTITIONS_MAX)
    now = len(desk.cluster.topic(name).partitions)
    if total <= now:
        raise Refused(
            f"topic '{name}' has {counted(now, 'partition')} already; it can only get more"
        )
    sentences = [
        f"It has {counted(now, 'partition')} and will have {total}.",
        "Keys that are written from then on may go to other partitions than before.",
        "There is no way back.",
    ]
    return Plan(f"More partitions for '{name}'", sentences, "Add partitions").json()


def grow(desk: Desk, asked: Command) -> Json:
    name, total = topic_of(asked), asked.number("partitions", least=1, most=PARTITIONS_MAX)
    create_partitions(desk.cluster, name, partitions=total)
    return done(f"Topic '{name}' has {counted(total, 'partition')}.")


def plan_delete(desk: Desk, asked: Command) -> Json:
    name = topic_of(asked)
    status = gather(desk.cluster, (name,), internal=True)
    row = _topic_row(status, name, status.partitions)
    offsets = row["offsets"]
    sentences = [
        f"All of it will be lost: {counted(len(status.partitions), 'partition')},"
        f" {offsets:,} offsets, {row['size_bytes']:,} bytes on all brokers.",
        "There is no way back.",
    ]
    if status.metadata.topic(name) is not None and name.startswith("__"):
        sentences.insert(0, "The cluster keeps this topic for itself.")
    return Plan(f"Delete topic '{name}'", sentences, "Delete topic", loses=True).json()


def delete(desk: Desk, asked: Command) -> Json:
    name = topic_of(asked)
    delete_topics(desk.cluster, [name])
    return done(f"Topic '{name}' is deleted.")


def _wanted(asked: Command) -> tuple[str, int, int, dict[str, str]]:
    configs = asked.said.get("configs", {})
    if not isinstance(configs, dict) or not all(
        isinstance(name, str) and isinstance(value, str) for name, value in configs.items()
    ):
        raise Refused("'configs' is an object of settings and their values, all texts")
    partitions = asked.number("partitions", DEFAULT_FROM_BROKER, least=-1, most=PARTITIONS_MAX)
    replicas = asked.number("replicas", DEFAULT_FROM_BROKER, least=-1, most=INT32_MAX >> 16)
    name = topic_of(asked)
    if not name:
        raise Refused("a topic needs a name")
    return name, partitions or DEFAULT_FROM_BROKER, replicas or DEFAULT_FROM_BROKER, configs


def _of_broker(number: int, noun: str) -> str:
    return f"as many {noun}s as the brokers say" if number < 0 else counted(number, noun)


def standing_of(desk: Desk, at: TopicPartition) -> PartitionStanding:
    """As it is now: what a decision is to rest on."""
    status = gather(desk.cluster, (at.topic,), internal=True)
    for each in status.partitions:
        if each.at == at:
            return each
    raise Refused(f"topic '{at.topic}' has no partition {at.partition}")
