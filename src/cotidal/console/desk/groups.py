"""Consumer groups: where they stand, partition by partition, and who is in them."""

from __future__ import annotations

from cotidal.client.group_lag import ends_of, group_json, lag, stand
from cotidal.client.groups import committed_offsets, list_groups
from cotidal.console.desk.arguments import NAME_MAX
from cotidal.console.desk.question import Desk
from cotidal.console.world import Command, Json
from cotidal.limits import DESK_GROUPS_LAG_MAX, DESK_ROWS_MAX


def groups(desk: Desk, asked: Command) -> Json:
    """All of them, and how far the first of them are behind."""
    found = list_groups(desk.cluster)
    committed = {
        group.name: committed_offsets(desk.cluster, group.name)
        for group in found[:DESK_GROUPS_LAG_MAX]
    }
    ends = ends_of(desk.cluster, {at for offsets in committed.values() for at in offsets})
    behind = {
        name: sum(lag(offset, ends.get(at)) or 0 for at, offset in offsets.items())
        for name, offsets in committed.items()
    }
    return {
        "groups": [
            {
                "group": group.name,
                "state": group.state,
                "kind": group.kind,
                "type": group.protocol_type,
                "coordinator": group.coordinator,
                "lag": behind.get(group.name),
            }
            for group in found[:DESK_ROWS_MAX]
        ],
        "left_out": max(0, len(found) - DESK_ROWS_MAX),
    }


def group(desk: Desk, asked: Command) -> Json:
    """``group``: its members, and the lag of each partition."""
    return group_json(stand(desk.cluster, asked.text("group", longest=NAME_MAX)))
