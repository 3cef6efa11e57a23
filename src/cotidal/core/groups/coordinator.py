"""The coordinator of the groups of one partition of __consumer_offsets. Pure.

A replicated machine (core/coordinator.py): what it writes are Kafka's own records, so a coordinator
of Apache Kafka can take over, and the other way round. The rules are in docs/spec/groups.md.

Not there: the consumer protocol (KIP-848), share and streams groups.
"""

from __future__ import annotations

from typing import assert_never

from cotidal.core.coordinator import Acts, KeyedRecord, Moment, Tell, Waiter
from cotidal.core.groups import assignment, membership, offsets, rebalance
from cotidal.core.groups.asks import (
    Ask,
    Beat,
    CommitOffsets,
    DeleteGroup,
    DeleteOffsets,
    DescribeGroup,
    FetchOffsets,
    ForgetTopics,
    GroupDeleted,
    GroupDescribed,
    GroupListed,
    GroupsListed,
    Join,
    Leave,
    ListGroups,
    Sync,
)
from cotidal.core.groups.group import ClassicGroup, State
from cotidal.core.groups.image import group_record, offset_record
from cotidal.core.groups.state import (
    JOINING,
    SYNCING,
    Assigned,
    GroupRules,
    Groups,
    NoMore,
    Replaced,
    Then,
)
from cotidal.core.machine import Entropy
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.group import GroupMetadataKey
from cotidal.values import NO_PRODUCER_ID, Millis, ProducerId


class GroupCoordinator:
    """Implements ``core.coordinator.Coordinator``."""

    __slots__ = ("_groups",)

    def __init__(self, rules: GroupRules, entropy: Entropy) -> None:
        self._groups = Groups(rules, entropy)

    @property
    def groups(self) -> Groups:
        """For whoever looks, and changes nothing: tests, checkers."""
        return self._groups

    def replay(self, record: KeyedRecord, producer_id: ProducerId = NO_PRODUCER_ID) -> None:
        groups = self._groups
        groups.image.replay(record, producer_id)
        if isinstance(record.key, GroupMetadataKey) and record.value is None:
            groups.live.pop(record.key.group, None)

    def replay_end(self, producer_id: ProducerId, *, committed: bool) -> None:
        self._groups.image.pending.end(producer_id, self._groups.image.offsets, committed=committed)

    def on_loaded(self, at: Moment) -> Acts:
        """Every member's session begins now: whoever heartbeats in time has lost nothing."""
        groups = self._groups
        groups.at = at
        groups.next_expiry = Millis(at.now + groups.rules.expiry_interval_ms)
        for group_id, told in groups.image.groups.items():
            group = groups.live[group_id] = ClassicGroup.load(group_id, told)
            for member in group.members.values():
                rebalance.keep_alive(groups, group, member)
            if len(group.members) > groups.rules.members_max:
                rebalance.prepare(groups, group)
        return self._take()

    def ask(self, ask: Ask, waiter: Waiter, at: Moment) -> Acts:
        groups = self._groups
        groups.at = at
        match ask:
            case CommitOffsets():
                offsets.commit(groups, ask, waiter)
            case Beat():
                membership.beat(groups, ask, waiter)
            case FetchOffsets():
                offsets.fetch(groups, ask, waiter)
            case Join():
                membership.join(groups, ask, waiter)
            case Sync():
                assignment.sync(groups, ask, waiter)
            case Leave():
                membership.leave(groups, ask, waiter)
            case DeleteOffsets():
                offsets.delete(groups, ask, waiter)
            case ForgetTopics():
                offsets.forget_topics(groups, ask)
            case DescribeGroup():
                _describe(groups, ask, waiter)
            case ListGroups():
                _list(groups, waiter)
            case DeleteGroup():
                _delete(groups, ask, waiter)
            case _:
                assert_never(ask)
        return self._take()

    def on_committed(self, then: Then, at: Moment) -> Acts:
        self._groups.at = at
        match then:
            case Assigned():
                assignment.on_assigned(self._groups, then)
            case Replaced():
                membership.on_replaced(self._groups, then)
            case NoMore():
                pass
            case _:
                assert_never(then)
        return self._take()

    def on_refused(self, then: Then, refusal: Refusal, at: Moment) -> Acts:
        self._groups.at = at
        match then:
            case Assigned():
                assignment.on_not_assigned(self._groups, then, refusal)
            case Replaced():
                membership.on_not_replaced(self._groups, then, refusal)
            case NoMore():
                pass
            case _:
                assert_never(then)
        return self._take()

    def on_ticked(self, at: Moment) -> Acts:
        groups = self._groups
        groups.at = at
        while (key := groups.timers.take(at.now)) is not None:
            group_id, what = key
            group = groups.live.get(group_id)
            if group is None:
                continue
            if what == JOINING:
                rebalance.on_join_timed_out(groups, group)
            elif what == SYNCING:
                rebalance.on_sync_timed_out(groups, group)
            else:
                rebalance.on_session_timed_out(groups, group, what)
        if at.now >= groups.next_expiry:
            offsets.expire(groups)
        return self._take()

    def next_deadline(self) -> Millis | None:
        due = self._groups.timers.next_deadline()
        expiry = self._groups.next_expiry
        return expiry if due is None else min(due, expiry)

    def _take(self) -> Acts:
        acts = tuple(self._groups.acts)
        self._groups.acts.clear()
        return acts


def _describe(groups: Groups, ask: DescribeGroup, waiter: Waiter) -> None:
    group = groups.live.get(ask.group_id)
    answer: GroupDescribed | Refusal
    if group is not None:
        answer = GroupDescribed(
            group.state.value,
            group.protocol_type or "",
            (group.protocol or "") if group.state is State.STABLE else "",
            group.described_members(),
        )
    elif groups.exists(ask.group_id):
        answer = GroupDescribed(State.EMPTY.value, "", "", ())
    else:
        answer = Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group '{ask.group_id}'")
    groups.acts.append(Tell(waiter, answer))


def _list(groups: Groups, waiter: Waiter) -> None:
    listed = [
        GroupListed(group.id, group.protocol_type or "", group.state.value)
        for group in groups.live.values()
    ]
    listed += [
        GroupListed(group_id, "", State.EMPTY.value)
        for group_id in dict.fromkeys((*groups.image.offsets, *groups.image.pending.groups()))
        if group_id not in groups.live
    ]
    groups.acts.append(Tell(waiter, GroupsListed(tuple(listed))))


def _delete(groups: Groups, ask: DeleteGroup, waiter: Waiter) -> None:
    group = groups.live.get(ask.group_id)
    if not groups.exists(ask.group_id):
        groups.acts.append(Tell(waiter, Refusal(ErrorCode.GROUP_ID_NOT_FOUND)))
        return
    if group is not None and group.state is not State.EMPTY:
        groups.acts.append(Tell(waiter, Refusal(ErrorCode.NON_EMPTY_GROUP)))
        return
    held = groups.image.held(ask.group_id)
    records = [offset_record(ask.group_id, partition, None) for partition in held]
    if ask.group_id in groups.image.groups:
        records.append(group_record(ask.group_id, None))
    else:
        groups.live.pop(ask.group_id, None)  # the record takes it away otherwise
    answer = Tell(waiter, GroupDeleted())
    if records:
        offsets.write_away(groups, records, answer)
    else:
        groups.acts.append(answer)
