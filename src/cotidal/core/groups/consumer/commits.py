"""Who may commit and fetch offsets of a consumer group. Pure.

Anybody, while nobody is in it; else a member in its own epoch. One that has not heard of its newer
epoch yet may still commit what it has held all along: a partition that it has, or is to give up,
and that was assigned to it in the epoch that it knows or before (KIP-1251).
"""

from __future__ import annotations

from cotidal.core.groups.asks import CommitOffsets, FetchOffsets
from cotidal.core.groups.consumer.group import ConsumerGroup, Current
from cotidal.core.groups.consumer.sessions import keep_alive
from cotidal.core.groups.state import Groups
from cotidal.errors import ErrorCode


def refuse_commit(groups: Groups, group: ConsumerGroup, ask: CommitOffsets) -> ErrorCode | None:
    if ask.generation < 0 and not group.members:
        return None
    says_nothing = ask.generation < 0 and not ask.member_id and ask.instance_id is None
    if ask.transaction is not None and says_nothing:
        return None  # of before KIP-447: it is fenced by its transactional id
    member = group.members.get(ask.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    told = group.current_of(ask.member_id)
    if member.classic_member_metadata is not None:
        if ask.generation != told.epoch:
            return ErrorCode.ILLEGAL_GENERATION
        if ask.transaction is None:
            keep_alive(groups, group, ask.member_id)
        return None
    if not ask.knows_epochs and ask.transaction is None:
        return ErrorCode.UNSUPPORTED_VERSION
    if ask.generation == told.epoch:
        return None
    if ask.generation > told.epoch or not all(
        _held_since(groups, told, ask.generation, *each.partition) for each in ask.commits
    ):
        return ErrorCode.STALE_MEMBER_EPOCH
    return None


def _held_since(groups: Groups, told: Current, epoch: int, topic: str, partition: int) -> bool:
    known = groups.surroundings.topic(topic)
    if known is None:
        return False
    at = (known.topic_id, partition)
    since = told.assigned.get(at, told.revoking.get(at))
    return since is not None and since <= epoch


def refuse_fetch(group: ConsumerGroup, ask: FetchOffsets) -> ErrorCode | None:
    if ask.member_id is None and ask.epoch < 0:
        return None
    member = group.members.get(ask.member_id or "")
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if ask.epoch == group.current_of(ask.member_id or "").epoch:
        return None
    if member.classic_member_metadata is not None:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.STALE_MEMBER_EPOCH
