"""What a group coordinator says of its groups to those who look. Pure."""

from __future__ import annotations

from cotidal.core.coordinator import Tell, Waiter
from cotidal.core.groups.asks import (
    ConsumersDescribed,
    DescribeConsumers,
    DescribedConsumer,
    DescribeGroup,
    GroupDescribed,
    GroupListed,
    GroupsListed,
)
from cotidal.core.groups.consumer.group import ConsumerGroup
from cotidal.core.groups.consumer.targets import assignor_of
from cotidal.core.groups.group import CONSUMER, State
from cotidal.core.groups.state import Groups
from cotidal.errors import ErrorCode, Refusal


def describe(groups: Groups, ask: DescribeGroup, waiter: Waiter) -> None:
    group = groups.live.get(ask.group_id)
    answer: GroupDescribed | Refusal
    if group is not None:
        answer = GroupDescribed(
            group.state.value,
            group.protocol_type or "",
            (group.protocol or "") if group.state is State.STABLE else "",
            group.described_members(),
        )
    elif groups.consumer_group(ask.group_id) is not None:
        text = f"group '{ask.group_id}' is not a classic group"
        answer = Refusal(ErrorCode.GROUP_ID_NOT_FOUND, text)
    elif groups.exists(ask.group_id):
        answer = GroupDescribed(State.EMPTY.value, "", "", ())
    else:
        answer = Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group '{ask.group_id}'")
    groups.acts.append(Tell(waiter, answer))


def describe_consumers(groups: Groups, ask: DescribeConsumers, waiter: Waiter) -> None:
    group = groups.consumer_group(ask.group_id)
    answer: ConsumersDescribed | Refusal
    if group is not None:
        answer = ConsumersDescribed(
            group.state.value,
            group.epoch,
            group.target_epoch,
            assignor_of(groups, group),
            tuple(_member(group, member_id) for member_id in group.members),
        )
    else:
        text = f"there is no group '{ask.group_id}' of the consumer protocol"
        answer = Refusal(ErrorCode.GROUP_ID_NOT_FOUND, text)
    groups.acts.append(Tell(waiter, answer))


def _member(group: ConsumerGroup, member_id: str) -> DescribedConsumer:
    member = group.members[member_id]
    told = group.current_of(member_id)
    return DescribedConsumer(
        member_id=member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        epoch=told.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=tuple(sorted(member.subscribed_topic_names)),
        regex=member.subscribed_topic_regex or None,
        assignment=tuple(told.assigned),
        target=group.targets.get(member_id, ()),
        is_classic=member.classic_member_metadata is not None,
    )


def list_all(groups: Groups, waiter: Waiter) -> None:
    listed = [
        GroupListed(group.id, group.protocol_type or "", group.state.value)
        for group in groups.live.values()
    ]
    listed += [
        GroupListed(group.id, CONSUMER, group.state.value, CONSUMER)
        for group in groups.image.consumers.values()
        if group.id not in groups.live
    ]
    listed += [
        GroupListed(group_id, "", State.EMPTY.value)
        for group_id in dict.fromkeys((*groups.image.offsets, *groups.image.pending.groups()))
        if group_id not in groups.live and group_id not in groups.image.consumers
    ]
    groups.acts.append(Tell(waiter, GroupsListed(tuple(listed))))
