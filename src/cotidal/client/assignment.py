"""Plans: which brokers shall have which replicas. Pure. Kafka's JSON for them, read and written.

A plan moves as little as it can. Of each partition the replicas stay that are on brokers of the
plan; there are as many as wanted, each new one in the rack that has fewest of this partition, there
on the broker that has fewest of all. Then replicas go from the fullest broker to the emptiest one
until none has two more than another, and never into a rack that has one of the partition already if
the old one was alone in its own. Last, leadership is spread: the first of a partition's replicas,
which will lead, is one that stays where possible.

Counts of replicas are evened out, not bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from cotidal.values import NodeId, TopicPartition

Assignment = tuple[NodeId, ...]


class Place(NamedTuple):
    """A broker that may have replicas."""

    node_id: NodeId
    rack: str


class Impossible(ValueError):
    """There is no such plan; one sentence."""


def plan(
    now: Mapping[TopicPartition, Assignment],
    places: Sequence[Place],
    *,
    replication_factor: int | None = None,
) -> dict[TopicPartition, Assignment]:
    """What each partition shall have; those that stay as they are included."""
    if not places:
        raise Impossible("there is no broker to move anything to")
    planner = _Planner(now, places)
    for at in sorted(now):
        wanted = len(now[at]) if replication_factor is None else replication_factor
        if wanted > len(places):
            raise Impossible(f"{wanted} replicas need as many brokers, but there are {len(places)}")
        planner.place(at, wanted)
    planner.even_out()
    return planner.led()


def as_json(targets: Mapping[TopicPartition, Assignment]) -> dict[str, object]:
    """As kafka-reassign-partitions reads it."""
    return {
        "version": 1,
        "partitions": [
            {"topic": at.topic, "partition": at.partition, "replicas": list(targets[at])}
            for at in sorted(targets)
        ],
    }


def from_json(text: str) -> dict[TopicPartition, Assignment]:
    """What kafka-reassign-partitions would read; log_dirs other than "any" are not obeyed here."""
    try:
        told: Any = json.loads(text)
        rows = [(each["topic"], each["partition"], each["replicas"]) for each in told["partitions"]]
        versions = told.get("version", 1)
    except (ValueError, KeyError, TypeError, AttributeError) as wrong:
        raise Impossible(
            'not a plan: it must be JSON like {"version": 1, "partitions": [{"topic": "orders", '
            '"partition": 0, "replicas": [1, 2, 3]}]}'
        ) from wrong
    if versions != 1:
        raise Impossible(f"a plan of version {versions} is not known here")
    found: dict[TopicPartition, Assignment] = {}
    for topic, partition, replicas in rows:
        at = TopicPartition(topic, partition)
        if not _is_row(topic, partition, replicas):
            raise Impossible(f"{at} has no list of broker ids as its replicas")
        if at in found:
            raise Impossible(f"{at} is named twice in the plan")
        found[at] = tuple(map(NodeId, replicas))
    if not found:
        raise Impossible("the plan names no partition")
    return found


def _is_row(topic: object, partition: object, replicas: object) -> bool:
    return (
        isinstance(topic, str)
        and type(partition) is int
        and isinstance(replicas, list)
        and bool(replicas)
        and all(type(node) is int for node in replicas)
    )


class _Planner:
    def __init__(self, now: Mapping[TopicPartition, Assignment], places: Sequence[Place]) -> None:
        self._now = now
        self._racks = {place.node_id: place.rack for place in places}
        self._load = dict.fromkeys(sorted(self._racks), 0)
        self._plan: dict[TopicPartition, list[NodeId]] = {}

    def place(self, at: TopicPartition, wanted: int) -> None:
        chosen = [node for node in self._now[at] if node in self._racks]
        while len(chosen) > wanted:
            chosen.remove(self._spare(chosen))
        for node in chosen:
            self._load[node] += 1
        while len(chosen) < wanted:
            others = [node for node in self._load if node not in chosen]
            node = min(others, key=lambda one: (self._in_rack(chosen, one), self._load[one], one))
            chosen.append(node)
            self._load[node] += 1
        self._plan[at] = chosen

    def even_out(self) -> None:
        while True:
            for full in sorted(self._load, key=lambda node: (-self._load[node], node)):
                if self._move_one_from(full):
                    break
            else:
                return

    def led(self) -> dict[TopicPartition, Assignment]:
        """The plan, with the first of each so chosen that leaders are spread."""
        leads = dict.fromkeys(self._load, 0)
        ordered: dict[TopicPartition, Assignment] = {}
        for at, chosen in self._plan.items():
            before = self._now[at]
            first = min(
                chosen,
                key=lambda node: (
                    leads[node],
                    node not in before,  # it has nothing yet: somebody else leads until it has
                    before.index(node) if node in before else len(before),
                ),
            )
            leads[first] += 1
            rest = [node for node in chosen if node != first]
            ordered[at] = (first, *rest)
        return ordered

    def _move_one_from(self, full: NodeId) -> bool:
        for empty in sorted(self._load, key=lambda node: (self._load[node], node)):
            if self._load[full] - self._load[empty] < 2:
                return False
            for chosen in self._plan.values():
                if full in chosen and empty not in chosen and self._may_swap(chosen, full, empty):
                    chosen[chosen.index(full)] = empty
                    self._load[full] -= 1
                    self._load[empty] += 1
                    return True
        return False

    def _may_swap(self, chosen: list[NodeId], old: NodeId, new: NodeId) -> bool:
        rest = [node for node in chosen if node != old]
        return self._in_rack(rest, new) <= self._in_rack(rest, old)

    def _spare(self, chosen: Iterable[NodeId]) -> NodeId:
        """Whose rack has most of them, then who has most in all; the first one last."""
        nodes = list(chosen)
        places = {node: place for place, node in enumerate(nodes)}
        return max(
            nodes,
            key=lambda node: (self._in_rack(nodes, node), self._load[node], places[node]),
        )

    def _in_rack(self, chosen: Iterable[NodeId], node: NodeId) -> int:
        """Brokers without a rack are each in one of their own."""
        rack = self._racks[node]
        return sum(1 for one in chosen if one != node and rack and self._racks.get(one) == rack)
