"""Committed offsets: kept, told, deleted, forgotten. Pure.

  COMMITS_KEPT  a commit that was acknowledged is what every later fetch finds, or a later commit,
                until it is deleted or expires

Offsets expire offsets.retention.minutes after their group became empty; those of a group without
members ever (a simple one), and of topics that a stable group of consumers no longer subscribes to,
that long after they were committed (KIP-211); those of a group of the consumer protocol likewise,
unless somebody in it subscribes to their topic. An empty group without offsets is forgotten.

What is committed in a transaction is pending until that ends (pending.py): it expires no offset and
no group meanwhile, and is deleted with them.
"""

from __future__ import annotations

from typing import Final

from cotidal.core.coordinator import KeyedRecord, Tell, Waiter, Write
from cotidal.core.groups.asks import (
    Commit,
    CommitOffsets,
    DeleteGroup,
    DeleteOffsets,
    FetchOffsets,
    ForgetTopics,
    GroupDeleted,
    OffsetsCommitted,
    OffsetsDeleted,
    OffsetsFetched,
)
from cotidal.core.groups.consumer import commits
from cotidal.core.groups.consumer.records import group_tombstones
from cotidal.core.groups.group import CONSUMER, ClassicGroup, State
from cotidal.core.groups.image import group_record, offset_record
from cotidal.core.groups.rebalance import keep_alive
from cotidal.core.groups.state import Groups, NoMore, Then
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.group import OffsetCommitValue
from cotidal.values import Millis, TopicPartition, WallMillis

UNSTABLE: Final = Refusal(ErrorCode.UNSTABLE_OFFSET_COMMIT)
"""T21."""
TIME_MAX_MS: Final = 2**63 - 1
"""The last moment that a record can name: a client may ask for any retention."""
TOMBSTONES_PER_WRITE: Final = 1_000
"""Records of one batch that take offsets away: far below the largest batch, whatever the names."""


def commit(groups: Groups, ask: CommitOffsets, waiter: Waiter) -> None:
    group = groups.live.get(ask.group_id)
    consumers = groups.consumer_group(ask.group_id)
    if consumers is not None:
        refused = commits.refuse_commit(groups, consumers, ask)
    else:
        refused = _refuse(group, ask)
    if refused is not None:
        groups.acts.append(Tell(waiter, Refusal(refused)))
        return
    if group is not None and ask.member_id in group.members and ask.transaction is None:
        keep_alive(groups, group, group.members[ask.member_id])
    longest = groups.rules.metadata_length_max
    errors: list[ErrorCode] = []
    records: list[KeyedRecord] = []
    for each in ask.commits:
        if len(each.metadata) > longest:
            errors.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
            continue
        errors.append(ErrorCode.NONE)
        value = _value(each, ask.retention_ms, groups.at.wall)
        records.append(offset_record(ask.group_id, each.partition, value))
    answer = Tell(waiter, OffsetsCommitted(tuple(errors)))
    groups.acts.append(Write(tuple(records), answer, ask.transaction) if records else answer)


def _refuse(group: ClassicGroup | None, ask: CommitOffsets) -> ErrorCode | None:
    """Who may commit: a member of this generation; anybody while there are no members.

    In a transaction also whoever does not say that it is a member: clients from before KIP-447 have
    one transactional id for each partition, and are fenced by that.
    """
    if group is None:
        return None if ask.generation < 0 else ask.without_group
    if ask.generation < 0 and group.state is State.EMPTY:
        return None
    if ask.generation < 0 and not ask.member_id and ask.instance_id is None:
        return ErrorCode.UNKNOWN_MEMBER_ID if ask.transaction is None else None
    refused = group.refusal_of(ask.member_id, ask.instance_id)
    if refused is not None:
        return refused
    if ask.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if group.state is State.COMPLETING and ask.transaction is None:
        # It knows the generation and has no assignment in it yet: what it read was of the last one.
        return ErrorCode.REBALANCE_IN_PROGRESS
    return None


def _value(each: Commit, retention_ms: int | None, wall: WallMillis) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=each.offset,
        leader_epoch=each.leader_epoch,
        metadata=each.metadata,
        commit_timestamp=wall,
        expire_timestamp=-1 if retention_ms is None else min(wall + retention_ms, TIME_MAX_MS),
        topic_id=each.topic_id,
    )


def fetch(groups: Groups, ask: FetchOffsets, waiter: Waiter) -> None:
    consumers = groups.consumer_group(ask.group_id)
    refused = None if consumers is None else commits.refuse_fetch(consumers, ask)
    if refused is not None:
        groups.acts.append(Tell(waiter, Refusal(refused)))
        return
    held = groups.image.offsets.get(ask.group_id, {})
    unstable = groups.image.pending.partitions(ask.group_id) if ask.require_stable else {}
    found = tuple(
        (each, UNSTABLE if each in unstable else held.get(each))
        for each in (held if ask.partitions is None else ask.partitions)
    )
    groups.acts.append(Tell(waiter, OffsetsFetched(found)))


def delete(groups: Groups, ask: DeleteOffsets, waiter: Waiter) -> None:
    group = groups.live.get(ask.group_id)
    if not groups.exists(ask.group_id):
        groups.acts.append(Tell(waiter, Refusal(ErrorCode.GROUP_ID_NOT_FOUND)))
        return
    if group is not None and group.state is not State.EMPTY and group.protocol_type != CONSUMER:
        groups.acts.append(Tell(waiter, Refusal(ErrorCode.NON_EMPTY_GROUP)))
        return
    held = groups.image.held(ask.group_id)
    errors: list[ErrorCode] = []
    gone: list[TopicPartition] = []
    consumers = groups.consumer_group(ask.group_id)
    wanted = {} if consumers is None else consumers.subscribed_topics()
    for partition in ask.partitions:
        if partition.topic in wanted or (group is not None and _subscribes(group, partition.topic)):
            errors.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
            continue
        errors.append(ErrorCode.NONE)
        if partition in held:
            gone.append(partition)
    answer = Tell(waiter, OffsetsDeleted(tuple(errors)))
    if not gone:
        groups.acts.append(answer)
        return
    records = [offset_record(ask.group_id, partition, None) for partition in gone]
    write_away(groups, records, answer)


def _subscribes(group: ClassicGroup, topic: str) -> bool:
    if group.topics is None:
        return group.protocol_type == CONSUMER
    return topic in group.topics


def forget_topics(groups: Groups, ask: ForgetTopics) -> None:
    image = groups.image
    gone = dict.fromkeys(
        (group_id, partition)
        for group_id, held in image.offsets.items()
        for partition, value in held.items()
        if value.topic_id in ask.ids
    )
    gone |= dict.fromkeys(image.pending.of_topics(ask.ids))
    write_away(groups, [offset_record(*each, None) for each in gone], NoMore())


def delete_group(groups: Groups, ask: DeleteGroup, waiter: Waiter) -> None:
    group = groups.live.get(ask.group_id)
    consumers = groups.consumer_group(ask.group_id)
    if not groups.exists(ask.group_id):
        groups.acts.append(Tell(waiter, Refusal(ErrorCode.GROUP_ID_NOT_FOUND)))
        return
    if (group is not None and group.state is not State.EMPTY) or (consumers and consumers.members):
        groups.acts.append(Tell(waiter, Refusal(ErrorCode.NON_EMPTY_GROUP)))
        return
    held = groups.image.held(ask.group_id)
    records = [offset_record(ask.group_id, partition, None) for partition in held]
    if consumers is not None:
        records.extend(group_tombstones(consumers))
    elif ask.group_id in groups.image.groups:
        records.append(group_record(ask.group_id, None))
    else:
        groups.live.pop(ask.group_id, None)  # the record takes it away otherwise
    answer = Tell(waiter, GroupDeleted())
    if records:
        write_away(groups, records, answer)
    else:
        groups.acts.append(answer)


# Expiry


def expire(groups: Groups) -> None:
    """Every offsets.retention.check.interval.ms."""
    groups.next_expiry = Millis(groups.at.now + groups.rules.expiry_interval_ms)
    records: list[KeyedRecord] = []
    pending = groups.image.pending
    for group_id, held in groups.image.offsets.items():
        due = [
            partition
            for partition, value in held.items()
            if not pending.holds(group_id, partition)
            and _has_expired(groups, group_id, partition, value)
        ]
        records.extend(offset_record(group_id, partition, None) for partition in due)
        if len(due) == len(held) and group_id not in pending:
            records.extend(_forget_group(groups, group_id))
    for group_id in (*groups.live, *groups.image.consumers):
        if group_id not in groups.image.offsets and group_id not in pending:
            records.extend(_forget_group(groups, group_id))
    write_away(groups, records, NoMore())


def _has_expired(
    groups: Groups,
    group_id: str,
    partition: TopicPartition,
    value: OffsetCommitValue,
) -> bool:
    group = groups.live.get(group_id)
    since = value.commit_timestamp
    if group is None:
        consumers = groups.consumer_group(group_id)
        if consumers is not None and partition.topic in consumers.subscribed_topics():
            return False
    elif group.protocol_type is None:
        pass
    elif group.state is State.EMPTY:
        since = group.since if group.since >= 0 else value.commit_timestamp
    elif group.state is not State.STABLE or group.topics is None or partition.topic in group.topics:
        return False
    if value.expire_timestamp >= 0:
        return groups.at.wall >= value.expire_timestamp
    return groups.at.wall - since >= groups.rules.retention_ms


def _forget_group(groups: Groups, group_id: str) -> list[KeyedRecord]:
    """A group that nobody is in."""
    group = groups.live.get(group_id)
    consumers = groups.consumer_group(group_id)
    if consumers is not None and not consumers.members:
        return group_tombstones(consumers)
    if group is None or not group.is_abandoned or group_id not in groups.image.groups:
        return []
    return [group_record(group_id, None)]


def write_away(groups: Groups, records: list[KeyedRecord], then: Then | Tell) -> None:
    """Tombstones, in as many batches as they need; ``then`` follows the last of them."""
    for first in range(0, len(records), TOMBSTONES_PER_WRITE):
        last = first + TOMBSTONES_PER_WRITE
        part = tuple(records[first:last])
        groups.acts.append(Write(part, then if last >= len(records) else NoMore()))
