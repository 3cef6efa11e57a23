"""Which replicas are to be read, where each of them is, and in which ranges.

The cluster's metadata names replicas, leaders and who is in sync; a leader tells its log start and
its high watermark. A replica whose broker's directory is given is read from there, the others over
the wire. A broker that is down and whose directory is not given cannot be read, and that is told.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from cotidal.client.admin import Resource, describe_configs
from cotidal.client.cluster import Cluster
from cotidal.client.failures import UnknownTopic
from cotidal.client.metadata import Metadata, Topic
from cotidal.client.offsets import earliest_offsets, end_offsets
from cotidal.log.checkpoint import META_PROPERTIES, decode_meta_properties
from cotidal.spark.audit.stretches import Share
from cotidal.values import NodeId, TopicPartition

CLEANUP: Final = "cleanup.policy"
SHARE_OFFSETS: Final = 100_000
"""Of a range: a task is worth its start, and a close look at a difference stays small."""


class Copy(NamedTuple):
    """One replica of one partition."""

    broker: int
    place: str
    on_disk: bool
    in_sync: bool


class Subject(NamedTuple):
    """One partition: all its replicas, and what they must agree on."""

    topic: str
    topic_id: bytes
    partition: int
    leader: int
    start_offset: int
    high_watermark: int
    compacted: bool
    copies: tuple[Copy, ...]
    unreachable: tuple[int, ...]
    """Brokers of replicas that are down, without a directory to be read instead."""

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    def share(self, copy: Copy, first: int, below: int) -> Share:
        return Share(
            self.topic,
            self.topic_id,
            self.partition,
            copy.broker,
            copy.place,
            copy.on_disk,
            self.compacted,
            first,
            below,
        )

    def copy_of(self, broker: int) -> Copy:
        return next(each for each in self.copies if each.broker == broker)


def subjects(
    cluster: Cluster, topics: Sequence[str], directories: Mapping[NodeId, Sequence[str]]
) -> list[Subject]:
    """The partitions of these topics, or of all, as the cluster tells them now."""
    metadata = cluster.metadata(topics or None)
    for name in topics:
        found = metadata.topic(name)
        if found is None or not found.partitions:
            raise UnknownTopic(name, [each.name for each in cluster.metadata().topics])
    at = [
        TopicPartition(topic.name, each.partition)
        for topic in metadata.topics
        for each in topic.partitions
    ]
    starts, ends = earliest_offsets(cluster, at), end_offsets(cluster, at)
    return [
        subject
        for topic in metadata.topics
        for subject in _subjects_of(cluster, metadata, topic, directories, starts, ends)
    ]


def _subjects_of(
    cluster: Cluster,
    metadata: Metadata,
    topic: Topic,
    directories: Mapping[NodeId, Sequence[str]],
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> Iterator[Subject]:
    configs = describe_configs(cluster, Resource.TOPIC, topic.name)
    compacted = any(each.name == CLEANUP and "compact" in (each.value or "") for each in configs)
    for each in topic.partitions:
        at = TopicPartition(topic.name, each.partition)
        copies: list[Copy] = []
        unreachable: list[int] = []
        for node in each.replicas:
            place = _directory(directories.get(node, ()), str(at))
            broker = metadata.broker(node)
            if place is not None:
                copies.append(Copy(node, place, True, node in each.isr))
            elif broker is not None:
                copies.append(Copy(node, str(broker.address), False, node in each.isr))
            else:
                unreachable.append(node)
        yield Subject(
            topic.name,
            bytes(topic.topic_id),
            each.partition,
            each.leader,
            starts[at],
            ends[at],
            compacted,
            tuple(copies),
            tuple(unreachable),
        )


def shares(subject: Subject, size: int = SHARE_OFFSETS) -> Iterator[Share]:
    """The readable offsets of every replica, cut at the same places."""
    first = subject.start_offset
    while first < subject.high_watermark:
        below = min((first // size + 1) * size, subject.high_watermark)
        for copy in subject.copies:
            yield subject.share(copy, first, below)
        first = below


def log_directories(paths: Iterable[str]) -> dict[NodeId, list[str]]:
    """Whose directories these are. Each is a log directory, or holds some (as `up --data` does)."""
    found: dict[NodeId, list[str]] = {}
    for path in paths:
        if not os.path.isdir(path):
            raise FileNotFoundError(f"there is no directory {path}")
        inside = [os.path.join(path, name) for name in sorted(os.listdir(path))]
        mine = [each for each in (path, *inside) if os.path.exists(f"{each}/{META_PROPERTIES}")]
        if not mine:
            raise FileNotFoundError(
                f"{path} is no log directory and holds none: there is no {META_PROPERTIES}"
            )
        for each in mine:
            with open(f"{each}/{META_PROPERTIES}", "rb") as file:
                node = decode_meta_properties(file.read()).node_id
            found.setdefault(node, []).append(each)
    return found


def _directory(log_dirs: Iterable[str], partition: str) -> str | None:
    places = (os.path.join(each, partition) for each in log_dirs)
    return next((place for place in places if os.path.isdir(place)), None)
