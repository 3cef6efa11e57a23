"""The coordinator of the groups of one partition of __consumer_offsets. Pure.

A replicated machine (core/coordinator.py): what it writes are Kafka's own records, so a coordinator
of Apache Kafka can take over, and the other way round. The rules are in docs/spec/groups.md.
Groups are of the classic protocol (membership.py, rebalance.py, assignment.py) or of the consumer
protocol (consumer/); offsets are kept for both alike.

Not there: share and streams groups.
"""

from __future__ import annotations

from typing import assert_never

from cotidal.core.coordinator import Acts, KeyedRecord, Moment, Waiter
from cotidal.core.groups import assignment, description, membership, offsets, rebalance
from cotidal.core.groups.asks import (
    Ask,
    Beat,
    CommitOffsets,
    ConsumerBeat,
    DeleteGroup,
    DeleteOffsets,
    DescribeConsumers,
    DescribeGroup,
    FetchOffsets,
    ForgetTopics,
    Join,
    Leave,
    ListGroups,
    Sync,
)
from cotidal.core.groups.consumer import classic_members, conversion, heartbeat, leaving, sessions
from cotidal.core.groups.group import ClassicGroup
from cotidal.core.groups.state import (
    JOINING,
    SYNCING,
    Assigned,
    Downgraded,
    GroupRules,
    Groups,
    NoMore,
    Replaced,
    Then,
)
from cotidal.core.groups.surroundings import Surroundings
from cotidal.core.machine import Entropy
from cotidal.errors import Refusal
from cotidal.messages.records.group import (
    ConsumerGroupMetadataKey,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
)
from cotidal.values import NO_PRODUCER_ID, Millis, ProducerId


class GroupCoordinator:
    """Implements ``core.coordinator.Coordinator``."""

    __slots__ = ("_groups",)

    def __init__(self, rules: GroupRules, entropy: Entropy, surroundings: Surroundings) -> None:
        self._groups = Groups(rules, entropy, surroundings)

    @property
    def groups(self) -> Groups:
        """For whoever looks, and changes nothing: tests, checkers."""
        return self._groups

    def replay(self, record: KeyedRecord, producer_id: ProducerId = NO_PRODUCER_ID) -> None:
        groups = self._groups
        groups.image.replay(record, producer_id)
        key, told = record
        match key:
            case OffsetCommitKey():
                pass  # most are: the others need not be tried
            case GroupMetadataKey(group) if told is None:
                groups.live.pop(group, None)
            case GroupMetadataKey(group) if isinstance(told, GroupMetadataValue):
                if group not in groups.live:  # one that was of the consumer protocol until now
                    groups.live[group] = ClassicGroup.load(group, told)
            case ConsumerGroupMetadataKey(group) if told is None:
                groups.seen.pop(group, None)
            case _:
                pass

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
        for consumers in groups.image.consumers.values():
            sessions.begin_sessions(groups, consumers)
        return self._take()

    def ask(self, ask: Ask, waiter: Waiter, at: Moment) -> Acts:
        groups = self._groups
        groups.at = at
        match ask:
            case CommitOffsets():
                offsets.commit(groups, ask, waiter)
            case ConsumerBeat():
                heartbeat.beat(groups, ask, waiter)
            case FetchOffsets():
                offsets.fetch(groups, ask, waiter)
            case Join() | Sync() | Beat() | Leave():
                _ask_member(groups, ask, waiter)
            case DeleteOffsets():
                offsets.delete(groups, ask, waiter)
            case ForgetTopics():
                offsets.forget_topics(groups, ask)
            case DescribeGroup():
                description.describe(groups, ask, waiter)
            case DescribeConsumers():
                description.describe_consumers(groups, ask, waiter)
            case ListGroups():
                description.list_all(groups, waiter)
            case DeleteGroup():
                offsets.delete_group(groups, ask, waiter)
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
            case Downgraded():
                conversion.on_downgraded(self._groups, then)
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
            case Downgraded() | NoMore():
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
                consumers = groups.consumer_group(group_id)
                if consumers is not None:
                    leaving.on_timed_out(groups, consumers, what)
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


def _ask_member(groups: Groups, ask: Join | Sync | Beat | Leave, waiter: Waiter) -> None:
    """What members of the classic protocol ask, whichever kind of group they are in."""
    group = groups.consumer_group(ask.group_id)
    if group is not None and isinstance(ask, Join) and not group.members:
        group = None  # it makes way
    match ask:
        case Beat():
            if group is None:
                membership.beat(groups, ask, waiter)
            else:
                classic_members.beat(groups, group, ask, waiter)
        case Join():
            if group is None:
                membership.join(groups, ask, waiter)
            else:
                classic_members.join(groups, group, ask, waiter)
        case Sync():
            if group is None:
                assignment.sync(groups, ask, waiter)
            else:
                classic_members.sync(groups, group, ask, waiter)
        case Leave():
            if group is None:
                membership.leave(groups, ask, waiter)
            else:
                classic_members.leave(groups, group, ask, waiter)
        case _:
            assert_never(ask)
