"""Members ask for their assignment; the leader brings everybody's. Pure.

ONE_OWNER  an assignment leaves only when the record of its generation is committed: a coordinator
           that loses its place before that has told nobody anything
"""

from __future__ import annotations

from cotidal.core.coordinator import Tell, Waiter, Write
from cotidal.core.groups.asks import Sync, Synced
from cotidal.core.groups.group import ClassicGroup, State
from cotidal.core.groups.rebalance import hand_out, prepare, refuse_sync
from cotidal.core.groups.state import SYNCING, Assigned, Groups
from cotidal.errors import ErrorCode, Refusal


def sync(groups: Groups, ask: Sync, waiter: Waiter) -> None:
    group = groups.live.get(ask.group_id)
    error = ErrorCode.UNKNOWN_MEMBER_ID if group is None else _refuse(group, ask)
    if group is None or error is not None:
        groups.acts.append(Tell(waiter, Refusal(error or ErrorCode.UNKNOWN_MEMBER_ID)))
        return
    member = group.members[ask.member_id]
    group.unsynced.pop(member.id, None)
    if not group.unsynced:
        groups.timers.cancel((group.id, SYNCING))
    if group.state is State.STABLE:
        answer = Synced(group.protocol_type, group.protocol, member.assignment)
        groups.acts.append(Tell(waiter, answer))
        return
    refuse_sync(groups, member, ErrorCode.REBALANCE_IN_PROGRESS)  # an earlier one, unanswered
    member.syncing = waiter
    if group.leader == member.id:
        given = dict(ask.assignments)
        assignments = {each: given.get(each, b"") for each in group.members}
        records = groups.classic_records(group.id, group.record(assignments))
        groups.acts.append(Write(records, Assigned(group.id, group.generation, assignments)))


def _refuse(group: ClassicGroup, ask: Sync) -> ErrorCode | None:
    refused = group.refusal_of(ask.member_id, ask.instance_id)
    if refused is not None:
        return refused
    if ask.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if _differs(ask.protocol_type, group.protocol_type) or _differs(ask.protocol, group.protocol):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is State.PREPARING:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return None


def _differs(told: str | None, known: str | None) -> bool:
    """Older clients do not say it."""
    return told is not None and told != known


def _waiting_for(groups: Groups, then: Assigned) -> ClassicGroup | None:
    """The group, if it still waits for this assignment."""
    group = groups.live.get(then.group_id)
    if group is None or group.state is not State.COMPLETING:
        return None
    return group if group.generation == then.generation else None


def on_assigned(groups: Groups, then: Assigned) -> None:
    group = _waiting_for(groups, then)
    if group is None:
        return
    for member in group.members.values():
        member.assignment = then.assignments.get(member.id, b"")
    group.enter(State.STABLE, groups.at.wall)
    hand_out(groups, group)


def on_not_assigned(groups: Groups, then: Assigned, refusal: Refusal) -> None:
    """The assignment could not be written: those who wait are told, and everybody joins again."""
    group = _waiting_for(groups, then)
    if group is None:
        return
    for member in group.members.values():
        refuse_sync(groups, member, refusal.error)
    prepare(groups, group)
