"""A member joins a consumer group, says what it wants and has, is told what is its own. Pure.

Refusals are looked for in Kafka's order: what the request lacks; an assignor that is not there; a
group that is not there, or is another kind of group; no room; an unknown member; an instance id
that another one has; an epoch that is not the member's.

One departure: a member that joins again under its own id is taken back even if it never left. It
says that it has nothing; Kafka 4.3 fences it until its session is over.
"""

from __future__ import annotations

from cotidal.core.coordinator import Tell, Waiter
from cotidal.core.groups.asks import ConsumerBeat, ConsumerBeaten
from cotidal.core.groups.consumer.conversion import interrupt, upgraded
from cotidal.core.groups.consumer.draft import Draft
from cotidal.core.groups.consumer.group import (
    GONE,
    GONE_FOR_NOW,
    JOINING,
    ConsumerGroup,
    Current,
    MemberState,
)
from cotidal.core.groups.consumer.leaving import remove
from cotidal.core.groups.consumer.pattern import BadPattern
from cotidal.core.groups.consumer.reconciliation import Said, reconciled
from cotidal.core.groups.consumer.records import (
    current_record,
    member_record,
    member_tombstones,
    target_record,
)
from cotidal.core.groups.consumer.sessions import keep_alive, watch_revocation
from cotidal.core.groups.consumer.targets import bring_up_to_date, pattern_of
from cotidal.core.groups.image import group_record
from cotidal.core.groups.membership import new_id
from cotidal.core.groups.state import DUE, Groups
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.group import ConsumerGroupMemberMetadataValue

NEW: ConsumerGroupMemberMetadataValue = ConsumerGroupMemberMetadataValue(
    instance_id=None,
    rack_id=None,
    subscribed_topic_regex=None,
    server_assignor=None,
    classic_member_metadata=None,
)


def beat(groups: Groups, ask: ConsumerBeat, waiter: Waiter) -> None:
    refused = _refuse(groups, ask)
    if not ask.member_id:  # of the first version, which has the coordinator give them
        ask = ask._replace(member_id=new_id(groups))
    if refused is None and ask.epoch in (GONE, GONE_FOR_NOW):
        refused = _leave(groups, ask, waiter)
    elif refused is None:
        refused = _beat(groups, ask, waiter)
    if refused is not None:
        groups.acts.append(Tell(waiter, refused))


def _refuse(groups: Groups, ask: ConsumerBeat) -> Refusal | None:
    """What a request can lack, whoever sends it."""
    rules = groups.rules.consumers
    if not rules.enabled:
        return Refusal(
            ErrorCode.UNSUPPORTED_VERSION,
            "the consumer protocol is not in group.coordinator.rebalance.protocols",
        )
    wrong = None
    if ask.epoch == JOINING:
        if ask.rebalance_timeout_ms < 0:
            wrong = "RebalanceTimeoutMs must be there when a member joins"
        elif ask.owned is None or ask.owned:
            wrong = "TopicPartitions must be empty when a member joins"
        elif ask.topics is None and ask.regex is None:
            wrong = "SubscribedTopicNames or SubscribedTopicRegex must be there when a member joins"
    elif ask.epoch == GONE_FOR_NOW and ask.instance_id is None:
        wrong = "InstanceId must be there when a static member leaves"
    elif ask.epoch < GONE_FOR_NOW:
        wrong = "MemberEpoch is -2 at least"
    if wrong is not None:
        return Refusal(ErrorCode.INVALID_REQUEST, wrong)
    if ask.assignor is not None and ask.assignor not in rules.assignors:
        known = ", ".join(rules.assignors)
        text = f"there is no assignor '{ask.assignor}' here; there are: {known}"
        return Refusal(ErrorCode.UNSUPPORTED_ASSIGNOR, text)
    if ask.regex:
        try:
            pattern_of(groups, ask.regex)
        except BadPattern as bad:
            text = f"the expression '{ask.regex[:100]}' cannot be used: {bad}"
            return Refusal(ErrorCode.INVALID_REGULAR_EXPRESSION, text)
    return None


def _beat(groups: Groups, ask: ConsumerBeat, waiter: Waiter) -> Refusal | None:
    draft = _group_of(groups, ask)
    if isinstance(draft, Refusal):
        return draft
    refused = _admit(groups, draft, ask)
    if refused is not None:
        return refused
    classic = groups.live.get(ask.group_id)
    if classic is not None:
        interrupt(groups, classic)
    before = draft.group.current_of(ask.member_id)
    changed = _subscribe(draft, ask)
    bring_up_to_date(groups, draft, changed=changed)
    # One that joins has nothing, whatever it was told before.
    said = Said(ask.owned, is_full=ask.is_full and ask.epoch != JOINING)
    told = reconcile(groups, draft, ask.member_id, said)
    keep_alive(groups, draft.group, ask.member_id)
    # One that may not know what it was last told is told all of it.
    tells = ask.epoch == JOINING or ask.is_full or told.assigned.keys() != before.assigned.keys()
    answer = ConsumerBeaten(
        ask.member_id,
        told.epoch,
        groups.surroundings.heartbeat_interval_ms(ask.group_id),
        tuple(told.assigned) if tells else None,
    )
    draft.write(groups, waiter, answer)
    return None


def reconcile(groups: Groups, draft: Draft, member_id: str, said: Said) -> Current:
    """Bring the member nearer to its target."""
    group = draft.group
    before = group.current_of(member_id)
    told = reconciled(
        group, member_id, group.targets.get(member_id, ()), group.target_epoch, said=said
    )
    if told != before:
        draft.add(current_record(group.id, member_id, told))
        if told.revoking != before.revoking:
            groups.timers.cancel((group.id, DUE + member_id))  # it begins anew
    watch_revocation(groups, draft.group, member_id)
    return told


# Which group


def _group_of(groups: Groups, ask: ConsumerBeat) -> Draft | Refusal:
    known = groups.consumer_group(ask.group_id)
    if known is not None:
        return Draft(known)
    classic = groups.live.get(ask.group_id)
    if ask.epoch != JOINING:
        kind = "is not there" if classic is None else "is not one of the consumer protocol"
        return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"group '{ask.group_id}' {kind}")
    if classic is None:
        return Draft(ConsumerGroup(ask.group_id))
    if classic.is_abandoned:  # it makes way, and epochs go on from its generations
        group = ConsumerGroup(ask.group_id)
        group.epoch = classic.generation
        return Draft(group, before=(group_record(ask.group_id, None),))
    return upgraded(groups, classic)


# Who


def _admit(groups: Groups, draft: Draft, ask: ConsumerBeat) -> Refusal | None:
    group = draft.group
    most = groups.rules.consumers.members_max
    if ask.epoch == JOINING and ask.member_id not in group.members and len(group.members) >= most:
        text = f"the group has its {most} members"
        return Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, text)
    if ask.instance_id is not None:
        return _admit_static(groups, draft, ask, ask.instance_id)
    if ask.epoch == JOINING:
        return None
    return refuse_member(group, ask.member_id, None) or _refuse_epoch(group, ask)


def refuse_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> Refusal | None:
    """Why somebody is not the member that it says it is."""
    if instance_id is not None:
        known = group.static.get(instance_id)
        if known is None:
            text = f"nobody has the instance id '{instance_id}'"
            return Refusal(ErrorCode.UNKNOWN_MEMBER_ID, text)
        if known != member_id:
            text = f"the instance id '{instance_id}' is another member's: {known}"
            return Refusal(ErrorCode.FENCED_INSTANCE_ID, text)
    if member_id not in group.members:
        text = f"'{member_id}' is not a member of group '{group.id}'"
        return Refusal(ErrorCode.UNKNOWN_MEMBER_ID, text)
    return None


def _refuse_epoch(group: ConsumerGroup, ask: ConsumerBeat) -> Refusal | None:
    """Another epoch than the member's: fenced, unless it is the last one and all fits."""
    told = group.current_of(ask.member_id)
    if ask.epoch == told.epoch:
        return None
    missed_one = told.previous_epoch == ask.epoch < told.epoch
    if missed_one and ask.owned is not None and all(at in told.assigned for at in ask.owned):
        return None  # the answer that told it of the newer one was lost
    return Refusal(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"the member's epoch is {told.epoch}, not {ask.epoch}; give up everything and join again",
    )


def _admit_static(
    groups: Groups, draft: Draft, ask: ConsumerBeat, instance_id: str
) -> Refusal | None:
    group = draft.group
    if ask.epoch != JOINING:
        return refuse_member(group, ask.member_id, instance_id) or _refuse_epoch(group, ask)
    known = group.static.get(instance_id)
    if known is None or known == ask.member_id:
        return None
    is_classic = group.members[known].classic_member_metadata is not None
    if group.current_of(known).epoch != GONE_FOR_NOW and not is_classic:
        text = f"the instance id '{instance_id}' is still that of '{known}'"
        return Refusal(ErrorCode.UNRELEASED_INSTANCE_ID, text)
    replace_static(groups, draft, known, ask.member_id)
    return None


def replace_static(groups: Groups, draft: Draft, old: str, new: str) -> None:
    """The instance has a new life: it has what the old one had, and is in no epoch yet."""
    group = draft.group
    member, target, told = group.members[old], group.targets.get(old), group.current_of(old)
    draft.add(*member_tombstones(group.id, old), member_record(group.id, new, member))
    if target is not None:
        draft.add(target_record(group.id, new, target))
    fresh = Current(JOINING, JOINING, MemberState.STABLE, told.assigned, {})
    draft.add(current_record(group.id, new, fresh))
    groups.timers.cancel((group.id, DUE + old))


# What it wants


def _subscribe(draft: Draft, ask: ConsumerBeat) -> bool:
    """Note what the member says; whether what it subscribes to has changed, or it is new."""
    group = draft.group
    known = group.members.get(ask.member_id)
    old = NEW if known is None else known
    topics = old.subscribed_topic_names
    if ask.topics is not None:
        topics = tuple(dict.fromkeys(ask.topics))
    value = ConsumerGroupMemberMetadataValue(
        instance_id=old.instance_id if ask.instance_id is None else ask.instance_id,
        rack_id=old.rack_id if ask.rack_id is None else ask.rack_id,
        client_id=ask.client_id,
        client_host=ask.client_host,
        subscribed_topic_names=topics,
        subscribed_topic_regex=old.subscribed_topic_regex if ask.regex is None else ask.regex,
        rebalance_timeout_ms=(
            old.rebalance_timeout_ms if ask.rebalance_timeout_ms < 0 else ask.rebalance_timeout_ms
        ),
        server_assignor=old.server_assignor if ask.assignor is None else ask.assignor,
        classic_member_metadata=None,
    )
    if value != known:
        draft.add(member_record(group.id, ask.member_id, value))
    return known is None or _subscription(value) != _subscription(old)


def _subscription(value: ConsumerGroupMemberMetadataValue) -> tuple[frozenset[str], str]:
    return frozenset(value.subscribed_topic_names), value.subscribed_topic_regex or ""


# Leaving


def _leave(groups: Groups, ask: ConsumerBeat, waiter: Waiter) -> Refusal | None:
    group = groups.consumer_group(ask.group_id)
    if group is None:
        text = f"group '{ask.group_id}' is not there"
        return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, text)
    refused = refuse_member(group, ask.member_id, ask.instance_id)
    if refused is not None:
        return refused
    answer = ConsumerBeaten(ask.member_id, ask.epoch, 0, None)
    if ask.epoch == GONE_FOR_NOW:
        draft = Draft(group)
        told = group.current_of(ask.member_id)
        # It has given up everything, and whoever comes in its place gets it back.
        left = Current(GONE_FOR_NOW, told.previous_epoch, MemberState.STABLE, told.assigned, {})
        draft.add(current_record(group.id, ask.member_id, left))
        groups.timers.cancel((group.id, DUE + ask.member_id))
        draft.write(groups, waiter, answer)
    else:
        remove(groups, group, (ask.member_id,), waiter, answer)
    return None
