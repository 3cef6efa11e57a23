"""Follower side of one partition. Pure. KIP-101, 279, 320, 595.

    Fetching     asks the leader for what follows its end          -> Truncating, Waiting
    Truncating   the disk is cutting the log                       -> Fetching when it has
    Waiting      backs off, or knows that its metadata is behind   -> Fetching, or a new role

  LOG_PREFIXES_MATCH  what is appended here is the leader's bytes, at the leader's offsets, in the
                      leader's epochs; what diverged is cut by epoch, never to the high watermark.

Rules:
  F1  an answer to a question of another epoch or another offset is dropped (KAFKA-18723)
  F2  so are batches whose epoch is above the one that was asked in
  F3  a diverging answer moves neither high watermark nor log start (KAFKA-14704)
  F4  the high watermark is the leader's, moved into this log: it may go back after a failover
  F5  truncation is iterative: as often as the leader says that the logs still part (KIP-279)
  F6  the log start follows the leader's and never passes the high watermark
"""

from __future__ import annotations

from typing import NamedTuple

from cotidal.core.partition.effects import (
    AdvanceLogStart,
    AppendFetched,
    PartitionEffect,
    Readable,
    RememberEpochs,
    StartOver,
    Truncate,
)
from cotidal.core.partition.epochs import UNDEFINED, EpochEnd
from cotidal.core.partition.high_watermark import clamped
from cotidal.core.partition.replica import Following, Replica
from cotidal.errors import ErrorCode
from cotidal.messages.batch import Batches, BatchHeader
from cotidal.values import LeaderEpoch, Millis, NodeId, Offset

BACK_OFF_MS = 1_000
"""replica.fetch.backoff.ms."""


class Question(NamedTuple):
    """What a follower asks its leader."""

    leader_epoch: LeaderEpoch
    offset: Offset
    last_fetched_epoch: LeaderEpoch
    start_offset: Offset


class Answered(NamedTuple):
    """The leader's answer to one question."""

    question: Question
    error: ErrorCode
    high_watermark: Offset
    start_offset: Offset
    diverging: EpochEnd | None
    batches: Batches


class LeaderEnds(NamedTuple):
    """Where the leader's log begins and ends: asked after OFFSET_OUT_OF_RANGE."""

    question: Question
    start_offset: Offset
    end_offset: Offset


def follow(replica: Replica, *, leader: NodeId, epoch: LeaderEpoch) -> None:
    """Follow this leader in this epoch; a question under way is forgotten with the old role."""
    replica.leadership = None
    replica.following = Following(leader=leader, epoch=epoch)


def question(replica: Replica, now: Millis) -> Question | None:
    """What to ask now; None while the log is being cut, written or backed off."""
    following = replica.following
    if following is None or not replica.opened or replica.offline_reason is not None:
        return None
    if following.busy or following.needs_metadata or now < following.not_before:
        return None
    return Question(
        leader_epoch=following.epoch,
        offset=replica.end_offset,
        last_fetched_epoch=replica.epochs.latest,
        start_offset=replica.start_offset,
    )


def on_answered(replica: Replica, answered: Answered, now: Millis) -> tuple[PartitionEffect, ...]:
    """Take an answer in: append, cut, or wait."""
    following = replica.following
    if following is None or not _is_current(replica, following, answered.question):
        return ()  # F1
    if answered.error != ErrorCode.NONE:
        return _on_refused(replica, following, answered.error, now)
    if answered.diverging is not None:
        return _on_diverged(replica, following, answered.diverging)  # F3
    taken = _batches_to_take(answered.batches, answered.question.leader_epoch)
    following.leader_high_watermark = answered.high_watermark
    following.leader_start = answered.start_offset
    if not taken.headers:
        return _follow_marks(replica, following)
    following.busy = True
    remember = _enter_epochs(replica, taken.headers)
    replica.producers.replay(taken.headers)
    replica.next_offset = taken.headers[-1].next_offset
    return (*remember, AppendFetched(taken))


def on_appended(replica: Replica, end_offset: Offset) -> tuple[PartitionEffect, ...]:
    """What was fetched is written."""
    replica.end_offset = end_offset
    following = replica.following
    if following is None:
        return ()
    following.busy = False
    return _follow_marks(replica, following)


def on_leader_ends(replica: Replica, ends: LeaderEnds) -> tuple[PartitionEffect, ...]:
    """After OFFSET_OUT_OF_RANGE: cut to the leader's end, or start over at its start."""
    following = replica.following
    if following is None or not _is_current(replica, following, ends.question):
        return ()
    following.lost_range = False
    if ends.end_offset < replica.end_offset:
        return _cut(following, ends.end_offset)
    if ends.start_offset > replica.end_offset:
        following.busy = True
        return (StartOver(ends.start_offset),)
    return ()


def _is_current(replica: Replica, following: Following, asked: Question) -> bool:
    return (
        asked.leader_epoch == following.epoch
        and asked.offset == replica.end_offset
        and not following.busy
    )


def _on_refused(
    replica: Replica, following: Following, error: ErrorCode, now: Millis
) -> tuple[PartitionEffect, ...]:
    if error is ErrorCode.FENCED_LEADER_EPOCH:
        following.needs_metadata = True
    elif error is ErrorCode.OFFSET_OUT_OF_RANGE:
        following.lost_range = True
    else:
        following.not_before = Millis(now + BACK_OFF_MS)
    return ()


def _on_diverged(
    replica: Replica, following: Following, leader: EpochEnd
) -> tuple[PartitionEffect, ...]:
    """F5. The leader's largest epoch not above ours, and where it ended there."""
    ours = replica.epochs.end_of(leader.epoch, log_end=replica.end_offset)
    if ours == UNDEFINED:
        cut = leader.end_offset
    elif ours.epoch != leader.epoch:
        cut = ours.end_offset
    else:
        cut = min(ours.end_offset, leader.end_offset)
    return _cut(following, min(cut, replica.end_offset))


def _cut(following: Following, offset: Offset) -> tuple[PartitionEffect, ...]:
    following.busy = True
    return (Truncate(offset),)


def _batches_to_take(batches: Batches, asked_epoch: LeaderEpoch) -> Batches:
    """F2."""
    size = 0
    for number, header in enumerate(batches.headers):
        if header.leader_epoch > asked_epoch:
            return Batches(batches.headers[:number], memoryview(batches.data)[:size])
        size += header.size_bytes
    return batches


def _enter_epochs(
    replica: Replica, headers: tuple[BatchHeader, ...]
) -> tuple[PartitionEffect, ...]:
    changed = False
    for header in headers:
        if header.leader_epoch > replica.epochs.latest:
            changed |= replica.epochs.assign(header.leader_epoch, start_offset=header.base_offset)
    return (RememberEpochs(tuple(replica.epochs.entries)),) if changed else ()


def _follow_marks(replica: Replica, following: Following) -> tuple[PartitionEffect, ...]:
    """F4, F6."""
    effects: list[PartitionEffect] = []
    reached = clamped(
        following.leader_high_watermark, start=replica.start_offset, end=replica.end_offset
    )
    if reached != replica.high_watermark:
        replica.high_watermark = reached
        effects.append(Readable(reached, replica.last_stable_offset))
    start = min(following.leader_start, replica.high_watermark)
    if start > replica.start_offset:
        effects.append(AdvanceLogStart(start))
    return tuple(effects)
