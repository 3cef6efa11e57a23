"""Members of classic groups join, heartbeat and leave. Pure.

Kafka's order of refusals, which clients rely on: session time-out out of bounds; a member of a
group that is not there; no room; protocols that do not fit; an instance id that another one has; an
unknown member.

KIP-394: a dynamic member is given its id first and joins with it, so that one whose connection
broke does not leave ghosts behind. KIP-345: a static member is known by its instance id, and one
that comes back in time takes its old place without a rebalance.
"""

from __future__ import annotations

from cotidal.core.coordinator import Tell, Waiter, Write
from cotidal.core.groups.asks import Beat, Beaten, Join, JoinRefused, Leave, Leaver, Left
from cotidal.core.groups.group import ClassicGroup, Member, State
from cotidal.core.groups.rebalance import (
    NEW_MEMBER_JOIN_TIMEOUT_MS,
    complete_if_all_joined,
    keep_alive,
    prepare,
    prepare_or_complete,
    refuse_join,
    refuse_sync,
    remove_member,
    tell_joined,
)
from cotidal.core.groups.state import Groups, Replaced
from cotidal.errors import ErrorCode, Refusal
from cotidal.limits import GROUP_PENDING_MAX, GROUPS_MAX
from cotidal.values import Millis


def join(groups: Groups, ask: Join, waiter: Waiter) -> None:
    refused = refuse_session(groups, ask)
    group = groups.live.get(ask.group_id)
    if refused is None and group is None:
        if ask.member_id:
            refused = ErrorCode.UNKNOWN_MEMBER_ID
        elif len(groups.live) >= GROUPS_MAX:
            refused = ErrorCode.GROUP_MAX_SIZE_REACHED
        else:
            group = ClassicGroup(ask.group_id, groups.at.wall)
            before = groups.image.consumers.get(ask.group_id)
            if before is not None:
                group.generation = before.epoch  # generations go on from its epochs
    if refused is None and group is not None:
        refused = _refuse_member(groups, group, ask)
    if refused is not None or group is None:
        error = refused or ErrorCode.UNKNOWN_MEMBER_ID
        groups.acts.append(Tell(waiter, JoinRefused(error, ask.member_id)))
        return
    groups.live[group.id] = group
    if ask.member_id == "":
        _join_anew(groups, group, ask, waiter)
    elif ask.member_id in group.pending:
        _add(groups, group, ask, ask.member_id, waiter)
    else:
        _join_again(groups, group, ask, waiter)


def refuse_session(groups: Groups, ask: Join) -> ErrorCode | None:
    bounds = groups.rules.session_min_ms, groups.rules.session_max_ms
    if bounds[0] <= ask.session_timeout_ms <= bounds[1]:
        return None
    return ErrorCode.INVALID_SESSION_TIMEOUT


def _refuse_member(groups: Groups, group: ClassicGroup, ask: Join) -> ErrorCode | None:
    if not _has_room(groups, group, ask.member_id):
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    if not group.supports(ask.protocol_type, ask.protocols):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if ask.member_id and ask.member_id not in group.pending:
        return group.refusal_of(ask.member_id, ask.instance_id)
    return None


def _has_room(groups: Groups, group: ClassicGroup, member_id: str) -> bool:
    """Who is given an id and never joins with it takes room until its session ends: a client that
    asks again and again must not fill the memory (Kafka lets it).

    While a group prepares, those who have joined count: the last ones to join again are too
    many, if the bound was lowered."""
    if not member_id and len(group.pending) >= GROUP_PENDING_MAX:
        return False
    member = group.members.get(member_id)
    match group.state:
        case State.EMPTY:
            return True
        case State.PREPARING:
            waits = member is not None and member.joining is not None
            return waits or group.joined < groups.rules.members_max
        case State.COMPLETING | State.STABLE:
            return member is not None or len(group.members) < groups.rules.members_max


def _join_anew(groups: Groups, group: ClassicGroup, ask: Join, waiter: Waiter) -> None:
    prefix = ask.client_id if ask.instance_id is None else ask.instance_id
    member_id = f"{prefix}-{new_id(groups)}"
    if ask.instance_id is not None:
        known = group.static.get(ask.instance_id)
        if known is not None:
            _replace(groups, group, group.members[known], member_id, ask, waiter)
            return
    elif ask.takes_member_id:
        group.pending[member_id] = None
        expiry = Millis(groups.at.now + ask.session_timeout_ms)
        groups.timers.set((group.id, member_id), expiry)
        required = JoinRefused(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        groups.acts.append(Tell(waiter, required))
        return
    _add(groups, group, ask, member_id, waiter)


def _join_again(groups: Groups, group: ClassicGroup, ask: Join, waiter: Waiter) -> None:
    """A member that is known. What it says now may change everything, or nothing."""
    member = group.members[ask.member_id]
    changed = member.protocols != ask.protocols
    leads = group.leader == member.id
    if group.state is State.PREPARING or changed or (group.state is State.STABLE and leads):
        # A leader joins again when topics have changed: it has to assign anew.
        _update(groups, member, ask, waiter)
        prepare_or_complete(groups, group)
    else:  # it did not get its answer: here it is again
        tell_joined(groups, group, member, waiter)


def _update(groups: Groups, member: Member, ask: Join, waiter: Waiter) -> None:
    # Of two JoinGroups of one member only the later is answered with the generation.
    refuse_join(groups, member, ErrorCode.UNKNOWN_MEMBER_ID)
    member.protocols = ask.protocols
    member.session_timeout_ms = ask.session_timeout_ms
    member.rebalance_timeout_ms = ask.rebalance_timeout_ms
    member.joining = waiter


def _add(groups: Groups, group: ClassicGroup, ask: Join, member_id: str, waiter: Waiter) -> None:
    member = _member(ask, member_id)
    member.is_new = True
    member.joining = waiter
    group.add(member, ask.protocol_type)
    if group.state is State.PREPARING and group.is_first:
        group.has_newcomers = True
    expiry = Millis(groups.at.now + NEW_MEMBER_JOIN_TIMEOUT_MS)
    groups.timers.set((group.id, member_id), expiry)
    prepare_or_complete(groups, group)


def _member(ask: Join, member_id: str) -> Member:
    return Member(
        member_id,
        instance_id=ask.instance_id,
        client_id=ask.client_id,
        client_host=ask.client_host,
        session_timeout_ms=ask.session_timeout_ms,
        rebalance_timeout_ms=ask.rebalance_timeout_ms,
        protocols=ask.protocols,
    )


def _replace(
    groups: Groups, group: ClassicGroup, old: Member, member_id: str, ask: Join, waiter: Waiter
) -> None:
    """A static member in a new life: whoever goes on in the old one is fenced."""
    refuse_join(groups, old, ErrorCode.FENCED_INSTANCE_ID)
    refuse_sync(groups, old, ErrorCode.FENCED_INSTANCE_ID)
    groups.timers.cancel((group.id, old.id))
    member = _member(ask, member_id)
    member.assignment = old.assignment
    member.joining = waiter
    group.replace_static(old, member)
    keep_alive(groups, group, member)
    if group.state is State.STABLE and group.choose_protocol() == group.protocol:
        held = {each.id: each.assignment for each in group.members.values()}
        then = Replaced(group.id, member.id, waiter, ask.may_skip_assignment)
        groups.acts.append(Write(groups.classic_records(group.id, group.record(held)), then))
    else:
        # While assignments are awaited the leader may be assigning to the old id: all join again.
        prepare_or_complete(groups, group)


def on_replaced(groups: Groups, then: Replaced) -> None:
    """The new life is committed: it has what the old one had."""
    group = groups.live.get(then.group_id)
    member = None if group is None else group.members.get(then.member_id)
    if group is None or member is None or member.joining != then.waiter:
        return  # answered by what has happened since
    if group.state is State.STABLE:
        member.joining = None
        keep_alive(groups, group, member)
        tell_joined(groups, group, member, then.waiter, skip=then.may_skip)


def on_not_replaced(groups: Groups, then: Replaced, refusal: Refusal) -> None:
    """It is told, and joins again without an id; that takes the place of this life in turn."""
    group = groups.live.get(then.group_id)
    member = None if group is None else group.members.get(then.member_id)
    if group is not None and member is not None and member.joining == then.waiter:
        member.joining = None
        keep_alive(groups, group, member)
        groups.acts.append(Tell(then.waiter, JoinRefused(refusal.error, "")))


def beat(groups: Groups, ask: Beat, waiter: Waiter) -> None:
    group = groups.live.get(ask.group_id)
    error: ErrorCode | None = ErrorCode.UNKNOWN_MEMBER_ID
    if group is not None:
        error = group.refusal_of(ask.member_id, ask.instance_id)
        if error is None and ask.generation != group.generation:
            error = ErrorCode.ILLEGAL_GENERATION
        if error is None:
            keep_alive(groups, group, group.members[ask.member_id])
            if group.state is State.PREPARING:
                error = ErrorCode.REBALANCE_IN_PROGRESS
    groups.acts.append(Tell(waiter, Beaten() if error is None else Refusal(error)))


def leave(groups: Groups, ask: Leave, waiter: Waiter) -> None:
    group = groups.live.get(ask.group_id)
    if group is None:
        groups.acts.append(Tell(waiter, Refusal(ErrorCode.UNKNOWN_MEMBER_ID)))
        return
    errors = tuple(_leave_one(groups, group, each) for each in ask.members)
    if ErrorCode.NONE in errors:
        if group.state is State.PREPARING:
            complete_if_all_joined(groups, group)
        elif group.state is not State.EMPTY:
            prepare(groups, group)
        groups.forget_if_abandoned(group)
    groups.acts.append(Tell(waiter, Left(errors)))


def _leave_one(groups: Groups, group: ClassicGroup, leaver: Leaver) -> ErrorCode:
    member_id = leaver.member_id
    if member_id == "":
        member_id = group.static.get(leaver.instance_id or "", "")
        if member_id == "":
            return ErrorCode.UNKNOWN_MEMBER_ID
    elif member_id in group.pending:
        groups.timers.cancel((group.id, member_id))
        group.remove(member_id)
        return ErrorCode.NONE
    else:
        refused = group.refusal_of(member_id, leaver.instance_id)
        if refused is not None:
            return refused
    remove_member(groups, group, group.members[member_id])
    return ErrorCode.NONE


def new_id(groups: Groups) -> str:
    """A random id in the form of Kafka's, which clients print."""
    digits = groups.entropy.bytes16().hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
