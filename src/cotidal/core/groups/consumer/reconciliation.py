"""A member comes to its target: gives up first, gets then. Pure.

    STABLE      at the target                 -> any, when there is a newer target
    UNREVOKED   is to give partitions up      -> any, once it no longer says that it owns one
    UNRELEASED  waits for what others give up -> STABLE, when they have

A member stays in its epoch until it has given up what is no longer its own; then it is in the
target's, with everything that is free already.

  ONE_OWNER  what a member is to give up is nobody else's until it has said so, or is a member no
             more
"""

from __future__ import annotations

from collections.abc import Iterable

from cotidal.core.groups.consumer.assignors import Partitions, TopicIdPartition
from cotidal.core.groups.consumer.group import ConsumerGroup, Current, Held, MemberState


def reconciled(
    group: ConsumerGroup,
    member_id: str,
    target: Partitions,
    target_epoch: int,
    *,
    owned: Partitions | None,
) -> Current:
    """Where the member is next. ``owned``: what it says that it has; None if it says nothing."""
    told = group.current_of(member_id)
    if told.state is MemberState.STABLE and told.epoch == target_epoch:
        return told
    if told.state is MemberState.UNREVOKED and _still_has(owned, told.revoking):
        return told
    return _next(group, member_id, target, target_epoch, owned=owned)


def _still_has(owned: Partitions | None, revoking: Iterable[TopicIdPartition]) -> bool:
    """One that says nothing has it still."""
    return owned is None or any(each in owned for each in revoking)


def _next(
    group: ConsumerGroup,
    member_id: str,
    target: Partitions,
    target_epoch: int,
    *,
    owned: Partitions | None,
) -> Current:
    told = group.current_of(member_id)
    wanted = dict.fromkeys(target)
    kept = {at: since for at, since in told.assigned.items() if at in wanted}
    revoking = {at: since for at, since in told.assigned.items() if at not in wanted}
    if revoking and _still_has(owned, revoking):
        return Current(told.epoch, told.epoch, MemberState.UNREVOKED, kept, revoking)
    given: Held = dict(kept)
    state = MemberState.STABLE
    for at in wanted:
        if at in kept:
            continue
        # What it has just given up itself is free, and may have become its own again since.
        if group.owners.get(at, member_id) == member_id:
            given[at] = target_epoch
        else:
            state = MemberState.UNRELEASED
    # While the epoch stays, an answer that was lost on the way into it can be asked for again.
    previous = told.previous_epoch if told.epoch == target_epoch else told.epoch
    return Current(target_epoch, previous, state, given, {})
