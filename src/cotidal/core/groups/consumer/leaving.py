"""Members leave consumer groups, or are removed. Pure.

What they had is free at once, and the epoch rises; the target follows with the next heartbeat of
anybody. If those who stay all speak the classic protocol, the group becomes a classic one again
(conversion.py).
"""

from __future__ import annotations

from cotidal.core.coordinator import Await, KeyedRecord, Waiter
from cotidal.core.groups.consumer.conversion import may_downgrade, to_classic
from cotidal.core.groups.consumer.draft import Draft
from cotidal.core.groups.consumer.group import ConsumerGroup
from cotidal.core.groups.consumer.records import epoch_record, member_tombstones, regex_record
from cotidal.core.groups.consumer.sessions import keep_alive
from cotidal.core.groups.consumer.targets import metadata_hash
from cotidal.core.groups.state import DUE, Downgraded, Groups


def on_timed_out(groups: Groups, group: ConsumerGroup, what: str) -> None:
    """A member was silent for too long, or did not do what it was told in time."""
    member_id = what.removeprefix(DUE)
    if member_id in group.members:
        keep_alive(groups, group, member_id)  # until then, if it cannot be written now
        remove(groups, group, (member_id,))


def remove(
    groups: Groups,
    group: ConsumerGroup,
    member_ids: tuple[str, ...],
    waiter: Waiter | None = None,
    answer: object = None,
) -> None:
    """They are members no more; then the answer."""
    draft = Draft(group)
    for member_id in member_ids:
        draft.add(*member_tombstones(group.id, member_id))
        groups.timers.cancel((group.id, DUE + member_id))
    if may_downgrade(groups, draft.group):
        downgrade(groups, group, draft, waiter, answer)
        return
    draft.add(*_unused_regexes(draft.group))
    draft.add(epoch_record(group.id, group.epoch + 1, metadata_hash(groups, draft.group)))
    draft.write(groups, waiter, answer)


def _unused_regexes(group: ConsumerGroup) -> list[KeyedRecord]:
    used = {each.subscribed_topic_regex: None for each in group.members.values()}
    return [regex_record(group.id, regex, None) for regex in group.regexes if regex not in used]


def downgrade(
    groups: Groups,
    group: ConsumerGroup,
    draft: Draft,
    waiter: Waiter | None,
    answer: object,
) -> None:
    """Whoever is in the draft is in the classic group; the others are no more."""
    records = to_classic(groups, group, draft.group)
    Draft(group, before=(*draft.records, *records)).write(groups, waiter, answer)
    groups.acts.append(Await(Downgraded(group.id)))
