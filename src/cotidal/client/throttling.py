"""Throttled replication as a cluster is told of it (KIP-73): rates of brokers, lists of topics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from cotidal.client.admin import ConfigSource, Resource, change_configs, describe_configs
from cotidal.client.cluster import Cluster
from cotidal.values import NodeId, TopicPartition

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
EVERY_REPLICA: Final = "*"
_DYNAMIC: Final = (ConfigSource.TOPIC, ConfigSource.BROKER, ConfigSource.CLUSTER)

_UNITS: Final = {
    "": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 1 << 10, "MIB": 1 << 20,
    "GIB": 1 << 30,
}  # fmt: skip


class BrokerThrottle(NamedTuple):
    """Bytes a second; None: no bound."""

    node_id: NodeId
    leader_rate: int | None
    follower_rate: int | None


class TopicThrottle(NamedTuple):
    """Which replicas are throttled on either side: pairs, ``*``, or nothing."""

    topic: str
    leaders: str
    followers: str


class Move(NamedTuple):
    """A partition that moves: who has it, and who will get it."""

    at: TopicPartition
    before: tuple[NodeId, ...]
    adding: tuple[NodeId, ...]


def rate_from_text(text: str) -> int:
    """Bytes a second: 1048576, 500KB, 10MB/s, 2MiB. ValueError with one sentence otherwise."""
    bare = text.strip().removesuffix("/s").strip()
    digits = bare.rstrip("KMGiBkmgb ")
    unit = _UNITS.get(bare[len(digits) :].strip().upper())
    try:
        amount = float(digits)
    except ValueError:
        amount = -1.0
    if unit is None or not 0 < amount * unit < 2**63:
        raise ValueError(f"'{text}' is not a rate; write it like 500KB, 10MB or 1048576")
    return int(amount * unit)


def limit_brokers(cluster: Cluster, brokers: Iterable[NodeId], bytes_per_second: int) -> None:
    rates = {LEADER_RATE: str(bytes_per_second), FOLLOWER_RATE: str(bytes_per_second)}
    for node_id in brokers:
        change_configs(cluster, Resource.BROKER, str(node_id), set_to=rates)


def limit_topics(cluster: Cluster, topics: Iterable[str]) -> None:
    """Every replica of them that is not in sync."""
    lists = {LEADER_REPLICAS: EVERY_REPLICA, FOLLOWER_REPLICAS: EVERY_REPLICA}
    for topic in topics:
        change_configs(cluster, Resource.TOPIC, topic, set_to=lists)


def limit_moves(cluster: Cluster, moves: Iterable[Move]) -> None:
    """Whoever may send in these moves as leader, and whoever is new as follower."""
    lists = lists_of(moves)
    for topic, values in lists.items():
        change_configs(cluster, Resource.TOPIC, topic, set_to=values)


def lists_of(moves: Iterable[Move]) -> dict[str, Mapping[str, str]]:
    """The settings of each topic that throttle just what moves, as Kafka's tool chooses them."""
    leaders: defaultdict[str, list[str]] = defaultdict(list)
    followers: defaultdict[str, list[str]] = defaultdict(list)
    for (topic, partition), before, adding in sorted(moves):
        if adding:
            leaders[topic] += [f"{partition}:{node}" for node in before]
            followers[topic] += [f"{partition}:{node}" for node in adding]
    return {
        topic: {
            LEADER_REPLICAS: ",".join(leaders[topic]),
            FOLLOWER_REPLICAS: ",".join(followers[topic]),
        }
        for topic in leaders
    }


def lift(cluster: Cluster, *, brokers: Iterable[NodeId], topics: Iterable[str]) -> None:
    """No throttle any more, whatever it was."""
    for topic in topics:
        change_configs(cluster, Resource.TOPIC, topic, unset=(LEADER_REPLICAS, FOLLOWER_REPLICAS))
    for node_id in brokers:
        change_configs(cluster, Resource.BROKER, str(node_id), unset=(LEADER_RATE, FOLLOWER_RATE))


def broker_throttles(cluster: Cluster, brokers: Iterable[NodeId]) -> list[BrokerThrottle]:
    """Of every broker that has one."""
    found = []
    for node_id in brokers:
        values = _dynamic(cluster, Resource.BROKER, str(node_id), (LEADER_RATE, FOLLOWER_RATE))
        if values:
            rates = [values.get(name) for name in (LEADER_RATE, FOLLOWER_RATE)]
            found.append(BrokerThrottle(node_id, *(r if r is None else int(r) for r in rates)))
    return found


def topic_throttles(cluster: Cluster, topics: Iterable[str]) -> list[TopicThrottle]:
    found = []
    for topic in topics:
        values = _dynamic(cluster, Resource.TOPIC, topic, (LEADER_REPLICAS, FOLLOWER_REPLICAS))
        if values:
            leaders, followers = values.get(LEADER_REPLICAS, ""), values.get(FOLLOWER_REPLICAS, "")
            found.append(TopicThrottle(topic, leaders, followers))
    return found


def _dynamic(
    cluster: Cluster, resource: Resource, name: str, names: tuple[str, ...]
) -> dict[str, str]:
    return {
        config.name: config.value
        for config in describe_configs(cluster, resource, name, names=names)
        if config.source in _DYNAMIC and config.value
    }
