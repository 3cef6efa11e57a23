"""A classic group's rebalance: who has joined, when that is enough, and what follows. Pure.

  REBALANCES_END  a rebalance ends when all members have joined, or when the longest of their
                  rebalance time-outs has passed; whoever has not is no member then
  MEMBERS_KEPT    a member that heartbeats in time stays one, wherever the coordinator is

A group's first rebalance waits group.initial.rebalance.delay.ms for more to join, and longer while
they do. A static member (KIP-345) that does not join again stays until its session has run out.
"""

from __future__ import annotations

from typing import Final

from cotidal.core.coordinator import Tell, Waiter, Write
from cotidal.core.groups.asks import Joined, JoinRefused, Synced
from cotidal.core.groups.group import ClassicGroup, Member, State
from cotidal.core.groups.state import JOINING, SYNCING, Groups, NoMore
from cotidal.errors import ErrorCode, Refusal
from cotidal.values import Millis

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000
"""A new member has no id to heartbeat with: its JoinGroup is given up after this long, and it asks
again if it is still there. Kafka's number."""


def prepare_or_complete(groups: Groups, group: ClassicGroup) -> None:
    """Membership has changed: begin to rebalance, or see whether all have joined now."""
    if group.state is State.PREPARING:
        complete_if_all_joined(groups, group)
    else:
        prepare(groups, group)


def prepare(groups: Groups, group: ClassicGroup) -> None:
    if group.state is State.COMPLETING:
        for member in group.members.values():
            member.assignment = b""
            refuse_sync(groups, member, ErrorCode.REBALANCE_IN_PROGRESS)
            keep_alive(groups, group, member)
    group.unsynced.clear()
    groups.timers.cancel((group.id, SYNCING))
    group.is_first = group.state is State.EMPTY
    group.enter(State.PREPARING, groups.at.wall)
    now = groups.at.now
    if group.is_first:
        group.has_newcomers = False
        group.patience_ends = Millis(now + group.rebalance_timeout_ms)
        delay = groups.rules.initial_delay_ms
        groups.timers.set((group.id, JOINING), Millis(now + delay))
    elif group.have_all_joined:
        complete_join(groups, group)
    else:
        groups.timers.set((group.id, JOINING), Millis(now + group.rebalance_timeout_ms))


def complete_if_all_joined(groups: Groups, group: ClassicGroup) -> None:
    """A group that was empty waits its time, whoever has joined."""
    if group.state is State.PREPARING and not group.is_first and group.have_all_joined:
        complete_join(groups, group)


def on_join_timed_out(groups: Groups, group: ClassicGroup) -> None:
    if group.state is not State.PREPARING:
        return
    now = groups.at.now
    if group.is_first and group.has_newcomers and now < group.patience_ends:
        group.has_newcomers = False
        again = min(now + groups.rules.initial_delay_ms, group.patience_ends)
        groups.timers.set((group.id, JOINING), Millis(again))
        return
    complete_join(groups, group)


def complete_join(groups: Groups, group: ClassicGroup) -> None:
    """The next generation begins, with those who have joined (and static members)."""
    groups.timers.cancel((group.id, JOINING))
    for member in tuple(group.members.values()):
        if member.joining is None and member.instance_id is None:
            groups.timers.cancel((group.id, member.id))
            group.remove(member.id)
    if group.members and not _elect_leader(group):
        # Static members alone, and none of them has joined: their sessions run out, or they do.
        again = Millis(groups.at.now + group.rebalance_timeout_ms)
        groups.timers.set((group.id, JOINING), again)
        return
    group.is_first = False
    group.generation += 1
    group.unsynced.clear()
    if not group.members:
        _become_empty(groups, group)
        return
    group.protocol = group.choose_protocol()
    group.learn_topics()
    group.enter(State.COMPLETING, groups.at.wall)
    for member in group.members.values():
        group.unsynced[member.id] = None
        keep_alive(groups, group, member)
        member.is_new = False
        if member.joining is not None:
            tell_joined(groups, group, member, member.joining)
            member.joining = None
    expiry = Millis(groups.at.now + group.rebalance_timeout_ms)
    groups.timers.set((group.id, SYNCING), expiry)


def _elect_leader(group: ClassicGroup) -> bool:
    """The leader must be one that has joined."""
    leader = None if group.leader is None else group.members[group.leader]
    if leader is None or leader.joining is None:
        joined = (member.id for member in group.members.values() if member.joining is not None)
        chosen = next(joined, None)
        if chosen is None:
            return False
        group.leader = chosen
    return True


def _become_empty(groups: Groups, group: ClassicGroup) -> None:
    group.protocol = None
    group.leader = None
    group.learn_topics()
    group.enter(State.EMPTY, groups.at.wall)
    groups.acts.append(Write(groups.classic_records(group.id, group.record({})), NoMore()))


def on_sync_timed_out(groups: Groups, group: ClassicGroup) -> None:
    """Members that joined and never asked for their assignment are gone."""
    if group.state not in (State.COMPLETING, State.STABLE) or not group.unsynced:
        return
    for member_id in tuple(group.unsynced):
        groups.timers.cancel((group.id, member_id))
        group.remove(member_id)
    prepare(groups, group)


def remove_member(groups: Groups, group: ClassicGroup, member: Member) -> None:
    """It left, or its session has run out; what it waited for is answered."""
    groups.timers.cancel((group.id, member.id))
    refuse_join(groups, member, ErrorCode.UNKNOWN_MEMBER_ID)
    refuse_sync(groups, member, ErrorCode.UNKNOWN_MEMBER_ID)
    group.remove(member.id)


def on_session_timed_out(groups: Groups, group: ClassicGroup, member_id: str) -> None:
    if member_id in group.pending:
        group.remove(member_id)
        complete_if_all_joined(groups, group)
        groups.forget_if_abandoned(group)
        return
    member = group.members.get(member_id)
    if member is None:
        return
    if not member.is_new and (member.joining is not None or member.syncing is not None):
        return  # it waits for us: its session begins anew with the answer
    remove_member(groups, group, member)
    if group.state is State.PREPARING:
        # A first rebalance goes on waiting for others, even when nobody is left: it ends empty.
        if group.have_all_joined and not group.is_first:
            complete_join(groups, group)
    else:
        prepare(groups, group)


# Answers to those who wait


def keep_alive(groups: Groups, group: ClassicGroup, member: Member) -> None:
    """Its session begins anew."""
    expiry = Millis(groups.at.now + member.session_timeout_ms)
    groups.timers.set((group.id, member.id), expiry)


def tell_joined(
    groups: Groups, group: ClassicGroup, member: Member, waiter: Waiter, *, skip: bool = False
) -> None:
    leads = group.leader == member.id
    answer = Joined(
        member_id=member.id,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        leader=group.leader or "",
        members=group.joined_members() if leads else (),
        skip_assignment=skip and leads,
    )
    groups.acts.append(Tell(waiter, answer))


def refuse_join(groups: Groups, member: Member, error: ErrorCode) -> None:
    if member.joining is not None:
        member_id = member.id if error is ErrorCode.FENCED_INSTANCE_ID else ""
        groups.acts.append(Tell(member.joining, JoinRefused(error, member_id)))
        member.joining = None


def refuse_sync(groups: Groups, member: Member, error: ErrorCode) -> None:
    if member.syncing is not None:
        groups.acts.append(Tell(member.syncing, Refusal(error)))
        member.syncing = None


def hand_out(groups: Groups, group: ClassicGroup) -> None:
    """Everybody who waits for an assignment gets it."""
    for member in group.members.values():
        if member.syncing is not None:
            answer = Synced(group.protocol_type, group.protocol, member.assignment)
            groups.acts.append(Tell(member.syncing, answer))
            member.syncing = None
            keep_alive(groups, group, member)
