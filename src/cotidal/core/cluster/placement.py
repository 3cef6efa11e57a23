"""Which brokers get the replicas of new partitions. Pure.

The brokers stand in a ring in which racks take turns (rack a, b, c, a, b, ...). Partition after
partition the first replica, which will lead, moves one place round the ring of *active* brokers,
from a random start: leaders are spread evenly, whatever the racks. Each further replica goes to the
rack that has fewest of this partition's replicas, there to an active broker rather than to a fenced
one, and among those to the next in the ring; after each full turn "next" shifts by one, so that the
followers of one leader are not always the same.

Every replica is on another broker; as many racks as there are replicas are used, where there are so
many. A fenced broker, or one that is shutting down, may get a replica but never leads.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from cotidal.core.cluster.image import Broker
from cotidal.core.machine import Entropy
from cotidal.errors import ErrorCode, Refusal
from cotidal.values import NodeId

Assignment: TypeAlias = tuple[NodeId, ...]


def place(
    brokers: Iterable[Broker], *, partitions: int, replication_factor: int, entropy: Entropy
) -> tuple[Assignment, ...] | Refusal:
    """One assignment for each of ``partitions`` new partitions."""
    registered = tuple(brokers)
    if replication_factor > len(registered):
        return Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {replication_factor} needs as many brokers, but "
            f"{len(registered)} {'is' if len(registered) == 1 else 'are'} registered",
        )
    ring = _ring(registered, entropy)
    leaders = [place for place, broker in enumerate(ring) if broker.active]
    if not leaders:
        return Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"all {len(registered)} brokers are fenced or shutting down: none could lead",
        )
    start = entropy.below(len(leaders))
    return tuple(
        _assign(
            ring,
            first=leaders[(start + number) % len(leaders)],
            shift=number // len(leaders),
            replication_factor=replication_factor,
        )
        for number in range(partitions)
    )


def _ring(brokers: tuple[Broker, ...], entropy: Entropy) -> list[Broker]:
    """Racks in random order take turns; a broker without a rack is in the rack without a name."""
    racks: dict[str, list[Broker]] = {}
    for broker in sorted(brokers, key=lambda broker: broker.node_id):
        racks.setdefault(broker.rack or "", []).append(broker)
    waiting = [racks[name] for name in _shuffled(sorted(racks), entropy)]
    ring: list[Broker] = []
    turn = 0
    while len(ring) < len(brokers):
        ring.extend(rack[turn] for rack in waiting if turn < len(rack))
        turn += 1
    return ring


def _assign(
    ring: list[Broker], *, first: int, shift: int, replication_factor: int
) -> tuple[NodeId, ...]:
    size = len(ring)
    chosen = [ring[first]]
    used = {ring[first].rack or "": 1}
    # The others in ring order after the first, turned by ``shift``: min() below keeps this order.
    others = [ring[(first + 1 + step) % size] for step in range(size - 1)]
    if others:
        turned = shift % len(others)
        others = others[turned:] + others[:turned]
    while len(chosen) < replication_factor:
        follower = min(
            others, key=lambda broker: (used.get(broker.rack or "", 0), not broker.active)
        )
        others.remove(follower)
        chosen.append(follower)
        rack = follower.rack or ""
        used[rack] = used.get(rack, 0) + 1
    return tuple(broker.node_id for broker in chosen)


def _shuffled(names: list[str], entropy: Entropy) -> list[str]:
    for last in range(len(names) - 1, 0, -1):
        other = entropy.below(last + 1)
        names[last], names[other] = names[other], names[last]
    return names
