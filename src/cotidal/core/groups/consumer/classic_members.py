"""Members of a consumer group that still speak the classic protocol. Pure.

They are members like the others. What the classic protocol calls a generation is their own epoch,
and whatever they have to hear makes them join again: a heartbeat is answered REBALANCE_IN_PROGRESS
when the group has come to a newer epoch, when they are to give something up, and when what they
wait for has become free. There is no leader: the coordinator assigns.
"""

from __future__ import annotations

from cotidal.core.coordinator import Tell, Waiter
from cotidal.core.groups.asks import (
    Beat,
    Beaten,
    Join,
    Joined,
    JoinRefused,
    Leave,
    Leaver,
    Left,
    Sync,
    Synced,
)
from cotidal.core.groups.consumer.conversion import classic_assignment, may_downgrade
from cotidal.core.groups.consumer.draft import Draft
from cotidal.core.groups.consumer.group import ConsumerGroup, MemberState
from cotidal.core.groups.consumer.heartbeat import reconcile, refuse_member, replace_static
from cotidal.core.groups.consumer.leaving import downgrade, remove
from cotidal.core.groups.consumer.reconciliation import Said
from cotidal.core.groups.consumer.records import member_record
from cotidal.core.groups.consumer.sessions import keep_alive, set_due
from cotidal.core.groups.consumer.targets import bring_up_to_date
from cotidal.core.groups.group import CONSUMER
from cotidal.core.groups.membership import new_id, refuse_session
from cotidal.core.groups.state import DUE, Groups
from cotidal.core.groups.subscription import Subscription, read_subscription
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.group import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
)


def join(groups: Groups, group: ConsumerGroup, ask: Join, waiter: Waiter) -> None:
    said = read_subscription(ask.protocols[0].metadata) if ask.protocols else None
    refused = refuse_session(groups, ask) or _refuse_join(groups, group, ask)
    if refused is None and said is None:
        refused = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if refused is not None or said is None:
        error = refused or ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        groups.acts.append(Tell(waiter, JoinRefused(error, ask.member_id)))
        return
    member_id = ask.member_id
    if not member_id:
        prefix = ask.client_id if ask.instance_id is None else ask.instance_id
        member_id = f"{prefix}-{new_id(groups)}"
        if ask.instance_id is None and ask.takes_member_id:
            required = JoinRefused(ErrorCode.MEMBER_ID_REQUIRED, member_id)
            groups.acts.append(Tell(waiter, required))
            return
    draft = Draft(group)
    known = None if ask.instance_id is None else group.static.get(ask.instance_id)
    if known is not None and known != member_id:
        replace_static(groups, draft, known, member_id)
    _join(groups, draft, ask, said, member_id, waiter)


def _refuse_join(groups: Groups, group: ConsumerGroup, ask: Join) -> ErrorCode | None:
    is_new = ask.member_id not in group.members
    known = None if ask.instance_id is None else group.static.get(ask.instance_id)
    if is_new and known is None and len(group.members) >= groups.rules.consumers.members_max:
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    if known is not None and ask.member_id not in ("", known):
        return ErrorCode.FENCED_INSTANCE_ID
    names = {each.name: None for each in ask.protocols}
    others = (
        member.classic_member_metadata.supported_protocols
        for id_, member in group.members.items()
        if member.classic_member_metadata is not None and id_ not in (ask.member_id, known)
    )
    if ask.protocol_type != CONSUMER or not all(
        any(each.name in names for each in protocols) for protocols in others
    ):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return None


def _join(
    groups: Groups, draft: Draft, ask: Join, said: Subscription, member_id: str, waiter: Waiter
) -> None:
    group = draft.group
    known = group.members.get(member_id)
    value = ConsumerGroupMemberMetadataValue(
        instance_id=ask.instance_id,
        rack_id=said.rack_id,
        client_id=ask.client_id,
        client_host=ask.client_host,
        subscribed_topic_names=said.topics,
        subscribed_topic_regex=None,
        rebalance_timeout_ms=ask.rebalance_timeout_ms,
        server_assignor=None,
        classic_member_metadata=ClassicMemberMetadata(
            ask.session_timeout_ms,
            tuple(ClassicProtocol(each.name, each.metadata) for each in ask.protocols),
        ),
    )
    if value != known:
        draft.add(member_record(group.id, member_id, value))
    if may_downgrade(groups, draft.group):
        # It has taken the place of the last one of the consumer protocol.
        again = JoinRefused(ErrorCode.REBALANCE_IN_PROGRESS, member_id)
        downgrade(groups, group, draft, waiter, again)
        return
    changed = (
        known is None
        or frozenset(known.subscribed_topic_names) != frozenset(said.topics)
        or bool(known.subscribed_topic_regex)
    )
    bring_up_to_date(groups, draft, changed=changed)
    owned = tuple(
        (topic.topic_id, partition)
        for name, partition in said.owned
        if (topic := groups.surroundings.topic(name)) is not None
    )
    groups.timers.cancel((group.id, DUE + member_id))
    told = reconcile(groups, draft, member_id, Said(owned))
    keep_alive(groups, draft.group, member_id)
    set_due(groups, draft.group, member_id)  # to ask for its assignment
    answer = Joined(member_id, told.epoch, CONSUMER, ask.protocols[0].name, "", ())
    draft.write(groups, waiter, answer)


def _refuse(
    groups: Groups, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> Refusal | None:
    refused = refuse_member(group, member_id, instance_id)
    if refused is not None:
        return refused
    if group.members[member_id].classic_member_metadata is None:
        return Refusal(ErrorCode.UNKNOWN_MEMBER_ID, "the member speaks the consumer protocol")
    if generation != group.current_of(member_id).epoch:
        return Refusal(ErrorCode.ILLEGAL_GENERATION)
    return None


def sync(groups: Groups, group: ConsumerGroup, ask: Sync, waiter: Waiter) -> None:
    refused = _refuse(groups, group, ask.member_id, ask.instance_id, ask.generation)
    if refused is not None:
        groups.acts.append(Tell(waiter, refused))
        return
    classic = group.members[ask.member_id].classic_member_metadata
    assert classic is not None
    protocol = classic.supported_protocols[0].name
    told = group.current_of(ask.member_id)
    if ask.protocol_type not in (None, CONSUMER) or ask.protocol not in (None, protocol):
        answer: object = Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    elif group.epoch > told.epoch and told.state is not MemberState.UNREVOKED:
        set_due(groups, group, ask.member_id)
        answer = Refusal(ErrorCode.REBALANCE_IN_PROGRESS)
    else:
        groups.timers.cancel((group.id, DUE + ask.member_id))
        if told.state is MemberState.UNREVOKED:
            set_due(groups, group, ask.member_id)  # to give up, and to join again
        keep_alive(groups, group, ask.member_id)
        answer = Synced(CONSUMER, protocol, classic_assignment(groups, group, ask.member_id))
    groups.acts.append(Tell(waiter, answer))


def beat(groups: Groups, group: ConsumerGroup, ask: Beat, waiter: Waiter) -> None:
    answer: object = _refuse(groups, group, ask.member_id, ask.instance_id, ask.generation)
    if answer is None:
        keep_alive(groups, group, ask.member_id)
        answer = Beaten()
        if _must_rejoin(group, ask.member_id):
            set_due(groups, group, ask.member_id)
            answer = Refusal(ErrorCode.REBALANCE_IN_PROGRESS)
    groups.acts.append(Tell(waiter, answer))


def _must_rejoin(group: ConsumerGroup, member_id: str) -> bool:
    told = group.current_of(member_id)
    if told.epoch < group.epoch:  # as it is while it has something to give up
        return True
    return told.state is MemberState.UNRELEASED and not group.waits_in_vain(member_id)


def leave(groups: Groups, group: ConsumerGroup, ask: Leave, waiter: Waiter) -> None:
    gone: dict[str, None] = {}
    errors = tuple(_leave_one(group, each, gone) for each in ask.members)
    if gone:
        remove(groups, group, tuple(gone), waiter, Left(errors))
    else:
        groups.acts.append(Tell(waiter, Left(errors)))


def _leave_one(group: ConsumerGroup, leaver: Leaver, gone: dict[str, None]) -> ErrorCode:
    member_id = leaver.member_id
    if not member_id:
        member_id = group.static.get(leaver.instance_id or "", "")
        if not member_id:
            return ErrorCode.UNKNOWN_MEMBER_ID
    else:
        refused = refuse_member(group, member_id, leaver.instance_id)
        if refused is not None:
            return refused.error
        if group.members[member_id].classic_member_metadata is None:
            return ErrorCode.UNKNOWN_MEMBER_ID  # of the consumer protocol: it leaves otherwise
    gone[member_id] = None
    return ErrorCode.NONE
