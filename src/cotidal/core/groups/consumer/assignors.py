"""Who gets which partition: the two assignors of the server. Pure arithmetic.

uniform  Everybody has as many as anybody else, or one more or less, as far as subscriptions let
         them; then as little as possible moves.
range    Each topic is cut into as many runs as it has subscribers, in the order of their instance
         ids and ids: the same numbers of topics with as many partitions go to the same member.

Racks are not looked at, as in Kafka 4.3's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from cotidal.values import Uuid

TopicIdPartition: TypeAlias = "tuple[Uuid, int]"
Partitions: TypeAlias = "tuple[TopicIdPartition, ...]"


class Subscriber(NamedTuple):
    topics: tuple[Uuid, ...]
    """Those that exist, each once."""
    owned: Partitions
    """What it was to have until now."""
    instance_id: str | None = None


Subscribers: TypeAlias = "Mapping[str, Subscriber]"
Counts: TypeAlias = "Mapping[Uuid, int]"
"""Partitions of each topic that anybody subscribes to."""
Assignor: TypeAlias = "Callable[[Subscribers, Counts], dict[str, Partitions]]"


def uniform(subscribers: Subscribers, counts: Counts) -> dict[str, Partitions]:
    if not subscribers:
        return {}
    held, free = _kept(subscribers, counts)
    wanted = frozenset(next(iter(subscribers.values())).topics)
    if all(frozenset(each.topics) == wanted for each in subscribers.values()):
        _share_equally(held, free)
    else:
        _share_by_subscription(subscribers, held, free)
    return {member: tuple(sorted(own)) for member, own in held.items()}


def _kept(
    subscribers: Subscribers, counts: Counts
) -> tuple[dict[str, dict[TopicIdPartition, None]], list[TopicIdPartition]]:
    """What members may keep of what they have, and what nobody has."""
    taken: dict[TopicIdPartition, None] = {}
    held: dict[str, dict[TopicIdPartition, None]] = {}
    for member, each in subscribers.items():
        topics = frozenset(each.topics)
        own = held[member] = {}
        for at in each.owned:
            topic, partition = at
            if topic in topics and partition < counts[topic] and at not in taken:
                own[at] = taken[at] = None
    subscribed = {topic: None for each in subscribers.values() for topic in each.topics}
    free = [
        (topic, partition)
        for topic in sorted(subscribed)
        for partition in range(counts[topic])
        if (topic, partition) not in taken
    ]
    return held, free


def _share_equally(
    held: dict[str, dict[TopicIdPartition, None]], free: list[TopicIdPartition]
) -> None:
    """All subscribe to the same: a quota for each, and one more for those who have more already."""
    total = len(free) + sum(len(own) for own in held.values())
    quota, extra = divmod(total, len(held))
    by_size = sorted(held, key=lambda member: -len(held[member]))  # stable: ties stay in order
    quotas = {member: quota + (at < extra) for at, member in enumerate(by_size)}
    for member, own in held.items():
        while len(own) > quotas[member]:
            free.append(own.popitem()[0])
    free.sort()
    given = iter(free)
    for member, own in held.items():
        for _ in range(quotas[member] - len(own)):
            own[next(given)] = None


def _share_by_subscription(
    subscribers: Subscribers,
    held: dict[str, dict[TopicIdPartition, None]],
    free: list[TopicIdPartition],
) -> None:
    """Each to the subscriber with the fewest; then from those with more to those with fewer.

    A move takes from somebody with at least two more, so the sum of the squares of what members
    have falls with each: it comes to an end.
    """
    takers: dict[Uuid, list[str]] = {}
    for member, each in subscribers.items():
        for topic in each.topics:
            takers.setdefault(topic, []).append(member)
    # Topics that few may have come first: the rest can still go elsewhere.
    for at in sorted(free, key=lambda each: (len(takers[each[0]]), each)):
        held[min(takers[at[0]], key=lambda member: len(held[member]))][at] = None
    moved = True
    while moved:
        moved = False
        for own in held.values():
            for at in tuple(own):
                fewest = min(takers[at[0]], key=lambda other: len(held[other]))
                if len(own) - len(held[fewest]) >= 2:
                    del own[at]
                    held[fewest][at] = None
                    moved = True


def range_(subscribers: Subscribers, counts: Counts) -> dict[str, Partitions]:
    order = sorted(
        subscribers,
        key=lambda member: (
            subscribers[member].instance_id is None,
            subscribers[member].instance_id or "",
            member,
        ),
    )
    takers: dict[Uuid, list[str]] = {}
    for member in order:
        for topic in subscribers[member].topics:
            takers.setdefault(topic, []).append(member)
    found: dict[str, list[TopicIdPartition]] = {member: [] for member in subscribers}
    for topic, members in takers.items():
        quota, extra = divmod(counts[topic], len(members))
        first = 0
        for at, member in enumerate(members):
            last = first + quota + (at < extra)
            found[member].extend((topic, partition) for partition in range(first, last))
            first = last
    return {member: tuple(sorted(own)) for member, own in found.items()}


ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": uniform, "range": range_}
