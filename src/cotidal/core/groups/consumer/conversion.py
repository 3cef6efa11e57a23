"""A group changes its protocol while its members go on (group.consumer.migration.policy). Pure.

    upgrade    somebody joins a classic group of consumers with the consumer protocol: what each
               member has becomes its assignment, the generation becomes the epoch; members go on
               with the classic protocol (classic_members.py) until they come back with the other
    downgrade  the last member of the consumer protocol has gone, and those who stay all speak the
               classic one: the epoch becomes the generation, and they rebalance

A group that nobody is in makes way for one of the other kind; its offsets stay.

  ONE_OWNER  what a member had stays its own through the change
"""

from __future__ import annotations

from cotidal.core.coordinator import KeyedRecord
from cotidal.core.groups.consumer.assignors import TopicIdPartition
from cotidal.core.groups.consumer.draft import Draft
from cotidal.core.groups.consumer.group import ConsumerGroup, Current, MemberState
from cotidal.core.groups.consumer.records import (
    current_record,
    epoch_record,
    group_tombstones,
    member_record,
    target_epoch_record,
    target_record,
)
from cotidal.core.groups.consumer.sessions import keep_alive
from cotidal.core.groups.group import CONSUMER, ClassicGroup, Member
from cotidal.core.groups.image import group_record
from cotidal.core.groups.rebalance import keep_alive as keep_classic_alive
from cotidal.core.groups.rebalance import prepare, refuse_join, refuse_sync
from cotidal.core.groups.state import Downgraded, Groups
from cotidal.core.groups.subscription import read_assignment, read_subscription, write_assignment
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.group import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
    GroupMetadataValue,
    MemberMetadata,
)
from cotidal.values import TopicPartition

# From classic to consumer


def upgraded(groups: Groups, classic: ClassicGroup) -> Draft | Refusal:
    """The group as one of the consumer protocol."""
    refused = _refuse_upgrade(groups, classic)
    if refused is not None:
        return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"group '{classic.id}' {refused}")
    known = groups.image.consumers.get(classic.id, ConsumerGroup(classic.id))
    draft = Draft(known, before=(group_record(classic.id, None),))
    generation = classic.generation
    draft.add(epoch_record(classic.id, generation, 0))
    for member in classic.members.values():
        draft.add(member_record(classic.id, member.id, _as_consumer(member, classic)))
        held = tuple(
            at
            for at in _ids(groups, read_assignment(member.assignment))
            if at not in draft.group.owners
        )
        told = Current(generation, generation, MemberState.STABLE, dict.fromkeys(held, generation))
        draft.add(target_record(classic.id, member.id, held))
        draft.add(current_record(classic.id, member.id, told))
    draft.add(target_epoch_record(classic.id, generation, groups.at.wall))
    for member_id in draft.group.members:
        keep_alive(groups, draft.group, member_id)
    return draft


def _refuse_upgrade(groups: Groups, classic: ClassicGroup) -> str | None:
    rules = groups.rules.consumers
    if not rules.upgrades:
        return "is a classic one, and group.consumer.migration.policy lets none be upgraded"
    if classic.protocol_type != CONSUMER or (
        classic.topics is None and classic.protocol is not None
    ):
        return "is a classic one, and not of consumers that can be understood"
    if len(classic.members) > rules.members_max:
        return f"has more than {rules.members_max} members"
    return None


def interrupt(groups: Groups, classic: ClassicGroup) -> None:
    """Whatever members wait for does not come: they begin again, as members of the new group.

    Timers are left alone: should the change not be written, the group is what it was.
    """
    for member in classic.members.values():
        refuse_join(groups, member, ErrorCode.REBALANCE_IN_PROGRESS)
        refuse_sync(groups, member, ErrorCode.REBALANCE_IN_PROGRESS)


def _as_consumer(member: Member, classic: ClassicGroup) -> ConsumerGroupMemberMetadataValue:
    said = read_subscription(member.metadata(classic.protocol) or member.protocols[0].metadata)
    return ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=None if said is None else said.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=() if said is None else said.topics,
        subscribed_topic_regex=None,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=None,
        classic_member_metadata=ClassicMemberMetadata(
            member.session_timeout_ms,
            tuple(ClassicProtocol(each.name, each.metadata) for each in member.protocols),
        ),
    )


def _ids(groups: Groups, partitions: tuple[TopicPartition, ...]) -> list[TopicIdPartition]:
    """Of topics that are there."""
    found: list[TopicIdPartition] = []
    for name, partition in partitions:
        topic = groups.surroundings.topic(name)
        if topic is not None:
            found.append((topic.topic_id, partition))
    return found


# From consumer to classic


def may_downgrade(groups: Groups, group: ConsumerGroup) -> bool:
    """Whether those who are left make a classic group."""
    return (
        groups.rules.consumers.downgrades
        and bool(group.members)
        and len(group.classic_members) == len(group.members) <= groups.rules.members_max
        and shared_protocol(group) is not None
    )


def shared_protocol(group: ConsumerGroup) -> str | None:
    """The first that all members of the classic protocol have."""
    shared: dict[str, None] | None = None
    for member in group.members.values():
        if member.classic_member_metadata is not None:
            names = {each.name: None for each in member.classic_member_metadata.supported_protocols}
            shared = names if shared is None else {n: None for n in shared if n in names}
    return next(iter(shared or ()), None)


def to_classic(groups: Groups, was: ConsumerGroup, left: ConsumerGroup) -> list[KeyedRecord]:
    """Tombstones of the group as it is left, and the classic group in its place."""
    protocol = shared_protocol(left)
    members = tuple(
        _as_classic(groups, left, member_id, protocol or "") for member_id in left.members
    )
    value = GroupMetadataValue(
        protocol_type=CONSUMER,
        generation=was.epoch,
        protocol=protocol,
        leader=members[0].member_id,
        current_state_timestamp=groups.at.wall,
        members=members,
    )
    return [*group_tombstones(left), group_record(was.id, value)]


def _as_classic(
    groups: Groups, group: ConsumerGroup, member_id: str, protocol: str
) -> MemberMetadata:
    member = group.members[member_id]
    classic = member.classic_member_metadata
    assert classic is not None
    said = next(
        (each.metadata for each in classic.supported_protocols if each.name == protocol), b""
    )
    return MemberMetadata(
        member_id=member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=classic.session_timeout_ms,
        subscription=said,
        assignment=classic_assignment(groups, group, member_id),
    )


def classic_assignment(groups: Groups, group: ConsumerGroup, member_id: str) -> bytes:
    """What a member has, as a consumer of the classic protocol reads it."""
    classic = group.members[member_id].classic_member_metadata
    assert classic is not None
    version = int.from_bytes(classic.supported_protocols[0].metadata[:2], "big")
    assigned = group.current_of(member_id).assigned
    names = ((groups.surroundings.topic_name(topic_id), number) for topic_id, number in assigned)
    known = (TopicPartition(name, number) for name, number in names if name is not None)
    return write_assignment(version, known)


def on_downgraded(groups: Groups, then: Downgraded) -> None:
    """It is committed: they rebalance."""
    group = groups.live.get(then.group_id)
    if group is None or not group.members:
        return
    for member in group.members.values():
        keep_classic_alive(groups, group, member)
    prepare(groups, group)
