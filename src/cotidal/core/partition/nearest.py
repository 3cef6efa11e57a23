"""Which replica a consumer should read from. Pure. KIP-392.

The leader's to say, for only it knows how far the others are. A consumer that names no rack, or
one in whose rack there is no replica that can serve it, stays with the leader.
"""

from __future__ import annotations

from collections.abc import Mapping

from cotidal.core.partition.replica import Replica
from cotidal.values import NodeId, Offset


def select_read_replica(
    replica: Replica, *, client_rack: str, racks: Mapping[NodeId, str], offset: Offset
) -> NodeId:
    """The leader if it is in the client's rack, else the in-sync follower there that is furthest
    among those that hold ``offset``, else the leader. ``racks`` names the brokers that live."""
    leadership = replica.leadership
    assert leadership is not None
    nearest = leadership.node_id
    if not client_rack or racks.get(nearest) == client_rack:
        return nearest
    furthest = (-1, 0, -1)
    for node_id, progress in leadership.followers.items():
        if racks.get(node_id) != client_rack or node_id not in leadership.isr:
            continue
        if not 0 <= progress.start_offset <= offset <= progress.end_offset:
            continue
        rank = (progress.end_offset, progress.last_caught_up, node_id)
        if rank > furthest:
            furthest, nearest = rank, node_id
    return nearest
