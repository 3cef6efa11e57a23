"""Follower side of one partition. Pure. KIP-101, 279, 320, 595.

    Fetching     asks the leader for what follows its end          -> Writing, Cutting, Waiting
    Writing      the disk is writing what was fetched              -> Fetching when it has
    Cutting      the disk is cutting the log                       -> Fetching when it has
    Waiting      backs off, or knows that its metadata is behind   -> Fetching, or a new role

Writing and Cutting belong to the log, not to the role: a follower of another leader, too, waits
for the disk before it asks.

  LOG_PREFIXES_MATCH  what is appended here is the leader's bytes, at the leader's offsets, in the
                      leader's epochs; what diverged is cut by epoch, never to the high watermark.

Rules:
  F1  an answer to a question of another epoch, offset or last epoch is dropped (KAFKA-18723)
  F2  so are batches whose epoch is above the one that was asked in
  F3  a diverging answer moves neither high watermark nor log start (KAFKA-14704)
  F4  the high watermark is the leader's, moved into this log: it may go back after a failover
  F5  truncation is iterative: as often as the leader says that the logs still part (KIP-279)
  F6  the log start follows the leader's and never passes the high watermark
  F7  a batch begins at or after our end. Only where we have nothing yet, because the leader's log
      starts inside that batch, may it begin earlier: then so does our log
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cotidal.core.partition.effects import (
    AdvanceLogStart,
    AppendFetched,
    LeadershipLost,
    PartitionEffect,
    RememberEpochs,
    StartOver,
    Truncate,
)
from cotidal.core.partition.epochs import UNDEFINED, EpochEnd
from cotidal.core.partition.high_watermark import clamped
from cotidal.core.partition.replica import (
    Following,
    Replica,
    aborted_up_to,
    move_high_watermark,
    on_log_opened,
)
from cotidal.errors import ErrorCode
from cotidal.invariants import OFFSETS_CONTIGUOUS, ONE_LEADER_PER_EPOCH
from cotidal.messages.batch import Batches, BatchHeader, Marker
from cotidal.messages.producers import ProducerSnapshot
from cotidal.values import NO_OFFSET, EpochEntry, LeaderEpoch, Millis, NodeId, Offset

BACK_OFF_FIRST_MS = 20
"""A leader that does not know yet that it leads will know in a moment: metadata travels in
milliseconds. Doubled each time, up to BACK_OFF_MS."""
BACK_OFF_MS = 1_000
"""replica.fetch.backoff.ms."""

_new: Final = tuple.__new__


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


def follow(replica: Replica, *, leader: NodeId, epoch: LeaderEpoch) -> tuple[PartitionEffect, ...]:
    """Follow this leader in this epoch; a question under way is forgotten with the old role."""
    following = replica.following
    if following is not None and (following.leader, following.epoch) == (leader, epoch):
        return ()
    assert epoch >= replica.leader_epoch, ONE_LEADER_PER_EPOCH
    lost: tuple[PartitionEffect, ...] = ()
    if replica.leadership is not None:
        reason = f"{replica.partition} is led by broker {leader} in epoch {epoch}"
        lost = (LeadershipLost(reason),)
    replica.leadership = None
    replica.following = Following(leader=leader, epoch=epoch)
    return lost


def stop_following(replica: Replica) -> None:
    """There is no leader to follow."""
    replica.following = None


def question(replica: Replica, now: Millis) -> Question | None:
    """What to ask with the next fetch; None while the disk works, or while it must wait."""
    following = replica.following
    if following is None or following.lost_range or not _may_ask(replica, following, now):
        return None
    return _question(replica, following)


def asks_again(replica: Replica, asked: Question, now: Millis) -> bool:
    """Whether ``question`` would be this one once more."""
    following = replica.following
    return (
        following is not None
        and asked.offset == replica.end_offset == replica.next_offset
        and asked.leader_epoch == following.epoch
        and asked.start_offset == replica.start_offset
        and asked.last_fetched_epoch == replica.epochs.latest
        and now >= following.not_before
        and replica.opened
        and not following.lost_range
        and not following.needs_metadata
    )


def question_of_ends(replica: Replica, now: Millis) -> Question | None:
    """After OFFSET_OUT_OF_RANGE: the leader's log start and end are to be asked for instead.

    A failure of that is an ``Answered`` with its error.
    """
    following = replica.following
    if following is None or not following.lost_range or not _may_ask(replica, following, now):
        return None
    return _question(replica, following)


def on_answered(replica: Replica, answered: Answered, now: Millis) -> tuple[PartitionEffect, ...]:
    """Take an answer in: append, cut, or wait."""
    following = replica.following
    if following is None or not _is_current(replica, following, answered.question):
        return ()  # F1
    if answered.error != ErrorCode.NONE:
        _on_refused(following, answered.error, now)
        return ()
    following.lost_range = False
    following.refusals = 0
    if answered.diverging is not None:
        return _on_diverged(replica, following, answered.diverging, now)  # F3
    taken = _batches_to_take(answered.batches, answered.question.leader_epoch)
    if taken.headers and taken.headers[0].base_offset < replica.end_offset:
        return _on_overlapped(replica, following, taken, answered.start_offset, now)  # F7
    following.leader_high_watermark = answered.high_watermark
    following.leader_start = answered.start_offset
    if not taken.headers:
        return _follow_marks(replica, following)
    return _append(replica, taken)


def on_appended(replica: Replica, end_offset: Offset) -> tuple[PartitionEffect, ...]:
    """What was fetched is written."""
    assert replica.end_offset <= end_offset <= replica.next_offset, OFFSETS_CONTIGUOUS
    replica.end_offset = end_offset
    aborted = aborted_up_to(replica, end_offset)
    following = replica.following
    if following is None:
        return aborted
    return (*aborted, *_follow_marks(replica, following))


def on_leader_ends(replica: Replica, ends: LeaderEnds) -> tuple[PartitionEffect, ...]:
    """After OFFSET_OUT_OF_RANGE: cut to the leader's end, or start over at its start."""
    following = replica.following
    if following is None or not _is_current(replica, following, ends.question):
        return ()
    following.lost_range = False
    if ends.end_offset < replica.end_offset:
        return _cut(replica, ends.end_offset)
    if ends.start_offset > replica.end_offset:
        return _start_over(replica, ends.start_offset)
    return ()


def on_log_cut(
    replica: Replica,
    *,
    start_offset: Offset,
    end_offset: Offset,
    epochs: tuple[EpochEntry, ...],
    producers: ProducerSnapshot | None,
    headers_after: tuple[BatchHeader, ...],
    markers: tuple[Marker, ...] = (),
) -> tuple[PartitionEffect, ...]:
    """The disk has obeyed Truncate or StartOver, and this is what is left.

    If the role has changed in the meantime, it is to be taken now.
    """
    effects = on_log_opened(
        replica,
        start_offset=start_offset,
        end_offset=end_offset,
        high_watermark=replica.high_watermark,
        epochs=epochs,
        producers=producers,
        headers_after=headers_after,
        markers=markers,
    )
    following = replica.following
    if following is None or following.held is None:
        return effects
    held, following.held = following.held, None
    return (*effects, *_append(replica, held))


def _may_ask(replica: Replica, following: Following, now: Millis) -> bool:
    if not replica.is_steady or replica.offline_reason is not None:
        return False
    return not following.needs_metadata and now >= following.not_before


def _question(replica: Replica, following: Following) -> Question:
    epoch, latest = following.epoch, replica.epochs.latest
    return _new(Question, (epoch, replica.end_offset, latest, replica.start_offset))


def _is_current(replica: Replica, following: Following, asked: Question) -> bool:
    """F1. Equal epoch, end and last epoch mean an equal log, and so an answer that still holds."""
    return (
        replica.is_steady
        and asked.leader_epoch == following.epoch
        and asked.offset == replica.end_offset
        and asked.last_fetched_epoch == replica.epochs.latest
    )


def _on_refused(following: Following, error: ErrorCode, now: Millis) -> None:
    if error is ErrorCode.FENCED_LEADER_EPOCH:
        following.needs_metadata = True
    elif error is ErrorCode.OFFSET_OUT_OF_RANGE and not following.lost_range:
        following.lost_range = True
    else:
        delay = min(BACK_OFF_MS, BACK_OFF_FIRST_MS << min(following.refusals, 10))
        following.refusals += 1
        following.not_before = Millis(now + delay)


def _on_diverged(
    replica: Replica, following: Following, leader: EpochEnd, now: Millis
) -> tuple[PartitionEffect, ...]:
    """F5. The leader's largest epoch not above ours, and where it ended there."""
    if leader.end_offset < 0:  # no leader says so: nothing is cut on such a word
        following.not_before = Millis(now + BACK_OFF_MS)
        return ()
    ours = replica.epochs.end_of(leader.epoch, log_end=replica.end_offset)
    if ours == UNDEFINED:
        cut = leader.end_offset
    elif ours.epoch != leader.epoch:
        cut = ours.end_offset
    else:
        cut = min(ours.end_offset, leader.end_offset)
    return _cut(replica, min(cut, replica.end_offset))


def _on_overlapped(
    replica: Replica, following: Following, taken: Batches, leader_start: Offset, now: Millis
) -> tuple[PartitionEffect, ...]:
    """F7. Anything but a first batch that the leader's log start cuts through is not to be had.

    It is taken by a log that has nothing else: one that is empty, or whose records are all deleted
    at the leader, as after a cut to the very offset where the leader's log begins.
    """
    first = taken.headers[0]
    has_more = replica.start_offset < replica.end_offset and leader_start < replica.end_offset
    if has_more or first.next_offset <= replica.end_offset:
        following.not_before = Millis(now + BACK_OFF_MS)
        return ()
    following.held = taken
    return _start_over(replica, first.base_offset)


def _cut(replica: Replica, offset: Offset) -> tuple[PartitionEffect, ...]:
    replica.opened = False
    return (Truncate(offset),)


def _start_over(replica: Replica, offset: Offset) -> tuple[PartitionEffect, ...]:
    replica.opened = False
    return (StartOver(offset),)


def _append(replica: Replica, taken: Batches) -> tuple[PartitionEffect, ...]:
    remember = _enter_epochs(replica, taken.headers)
    replica.producers.replay(taken.headers, taken.markers)
    replica.next_offset = taken.headers[-1].next_offset
    return (*remember, _new(AppendFetched, (taken,)))


def _batches_to_take(batches: Batches, asked_epoch: LeaderEpoch) -> Batches:
    """F2."""
    size = 0
    for number, header in enumerate(batches.headers):
        if header.leader_epoch > asked_epoch:
            taken = batches.headers[:number]
            markers = tuple(each for each in batches.markers if each.offset < header.base_offset)
            return Batches(taken, memoryview(batches.data)[:size], markers=markers)
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
    if following.leader_high_watermark == NO_OFFSET:
        return ()  # this leader has told nothing yet; what is written now is of the role before
    effects: list[PartitionEffect] = []
    reached = clamped(
        following.leader_high_watermark, start=replica.start_offset, end=replica.end_offset
    )
    if reached != replica.high_watermark:
        effects.extend(move_high_watermark(replica, reached))
    start = min(following.leader_start, replica.high_watermark)
    if start > replica.start_offset:
        effects.append(AdvanceLogStart(start))
    return tuple(effects)
