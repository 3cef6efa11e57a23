"""Time-outs of members of consumer groups. Pure.

MEMBERS_KEPT    a member that heartbeats in time stays one, wherever the coordinator is
REBALANCES_END  a member that does not give up, or join again, within its rebalance time-out is
                removed, and what it held is free

Whoever is removed is so when that is written. It may be refused (too few replicas in sync), so a
session's timer is never cancelled: one of a member that is gone runs out and is passed over.
"""

from __future__ import annotations

from cotidal.core.groups.consumer.group import ConsumerGroup, MemberState
from cotidal.core.groups.state import DUE, Groups
from cotidal.values import Millis


def begin_sessions(groups: Groups, group: ConsumerGroup) -> None:
    """The log is loaded: every member has all its time."""
    for member_id in group.members:
        keep_alive(groups, group, member_id)
        watch_revocation(groups, group, member_id)


def keep_alive(groups: Groups, group: ConsumerGroup, member_id: str) -> None:
    classic = group.members[member_id].classic_member_metadata
    if classic is None:
        timeout_ms = groups.surroundings.session_timeout_ms(group.id)
    else:
        timeout_ms = classic.session_timeout_ms
    groups.timers.set((group.id, member_id), Millis(groups.at.now + timeout_ms))


def watch_revocation(groups: Groups, group: ConsumerGroup, member_id: str) -> None:
    """While it is to give something up, its rebalance time-out runs."""
    if group.current_of(member_id).state is MemberState.UNREVOKED:
        set_due(groups, group, member_id)
    else:
        groups.timers.cancel((group.id, DUE + member_id))


def set_due(groups: Groups, group: ConsumerGroup, member_id: str) -> None:
    """It was told to do something; it has its rebalance time-out, counted from the first time."""
    key = (group.id, DUE + member_id)
    if not groups.timers.is_set(key):
        timeout_ms = group.members[member_id].rebalance_timeout_ms
        groups.timers.set(key, Millis(groups.at.now + timeout_ms))
