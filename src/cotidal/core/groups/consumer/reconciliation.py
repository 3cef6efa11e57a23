"""A member comes to its target: gives up first, gets then. Pure.

    STABLE      at the target                 -> any, when there is a newer target
    UNREVOKED   is to give partitions up      -> any, once it no longer says that it owns one
    UNRELEASED  waits for what others give up -> STABLE, when they have

A member stays in its epoch until it has given up what is no longer its own; then it is in the
target's, with everything that is free already.

  ONE_OWNER  what a member is to give up is nobody else's until it has said so, or is a member no
             more

What a member says that it owns is not yet its word that it gave something up. A full request tells
where it stands, and that may be before what it was last told: librdkafka sends one with nothing in
it until it has looked up the topics that it was told of, and then takes all of that, even if it has
been told of less meanwhile. So a full request counts once it has what the member is to keep. Here
we depart from Kafka 4.3, which believes the first one and lets two members own a partition for a
moment. Where a member is to keep nothing the two cannot be told apart, and it is believed.
"""

from __future__ import annotations

from typing import NamedTuple

from cotidal.core.groups.consumer.assignors import Partitions
from cotidal.core.groups.consumer.group import ConsumerGroup, Current, Held, MemberState


class Said(NamedTuple):
    """What a member says of what it owns."""

    owned: Partitions | None
    """None: nothing new."""
    is_full: bool = False
    """It says everything, wherever it stands."""

    def has_still(self, revoking: Held, kept: Held) -> bool:
        """One that says nothing has it still."""
        if self.owned is None or any(each in self.owned for each in revoking):
            return True
        return self.is_full and any(each not in self.owned for each in kept)


def reconciled(
    group: ConsumerGroup,
    member_id: str,
    target: Partitions,
    target_epoch: int,
    *,
    said: Said,
) -> Current:
    """Where the member is next."""
    told = group.current_of(member_id)
    if told.state is MemberState.STABLE and told.epoch == target_epoch:
        return told
    wanted = dict.fromkeys(target)
    kept = {at: since for at, since in told.assigned.items() if at in wanted}
    if told.state is MemberState.UNREVOKED and said.has_still(told.revoking, kept):
        return told
    revoking = {at: since for at, since in told.assigned.items() if at not in wanted}
    if revoking and said.has_still(revoking, kept):
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
