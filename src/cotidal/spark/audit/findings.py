"""What is wrong with the replicas of a partition, told by broker, offset and epoch. Pure.

Against the leader's log, or, where that is damaged by itself, against what most others hold. Two
kinds are no fault: a replica that is out of sync lacks what it has not fetched yet, and one that
cannot be read says nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from cotidal.spark.audit.copies import Subject
from cotidal.spark.audit.stretches import Line, Stretch


class Kind(Enum):
    DAMAGED = "damaged"
    MISSING = "missing"
    DIFFERS = "differs"
    TAIL = "tail"
    ACKNOWLEDGED = "acknowledged"
    DOUBLED = "doubled"
    LAGS = "lags"
    UNREAD = "unread"

    @property
    def is_fault(self) -> bool:
        return self not in (Kind.LAGS, Kind.UNREAD)

    @property
    def is_of_replica(self) -> bool:
        """Of one replica against the others, not of what all of them hold."""
        return self.is_fault and self not in (Kind.ACKNOWLEDGED, Kind.DOUBLED)


class Finding(NamedTuple):
    kind: Kind
    topic: str
    partition: int
    broker: int
    offset: int
    epoch: int
    sentence: str


class Doubt(NamedTuple):
    """A range in which a replica's bytes are not those of the log it is held against."""

    first: int
    below: int
    broker: int
    against: int


def judged(subject: Subject, stretches: Sequence[Stretch]) -> tuple[list[Finding], list[Doubt]]:
    """Of one range, as every replica holds it: what is certain, and what asks for a close look."""
    findings = [found for each in stretches if (found := _by_itself(subject, each)) is not None]
    whole = [each for each in stretches if each.unread is None and each.fault is None]
    reference = _reference(subject, whole)
    if reference is None or subject.compacted:
        return findings, []
    return findings, [
        Doubt(each.first, each.below, each.broker, reference.broker)
        for each in whole
        if each.digest != reference.digest
    ]


def _by_itself(subject: Subject, stretch: Stretch) -> Finding | None:
    if stretch.unread is not None:
        return _finding(subject, Kind.UNREAD, stretch.broker, stretch.first, -1, stretch.unread)
    if stretch.fault is not None:
        return _finding(
            subject,
            Kind.DAMAGED,
            stretch.broker,
            stretch.fault_offset,
            stretch.last_epoch,
            f"the log is damaged at offset {stretch.fault_offset}: {stretch.fault}",
        )
    return None


def _reference(subject: Subject, whole: Sequence[Stretch]) -> Stretch | None:
    """The leader's, or that of which there are most."""
    for each in whole:
        if each.broker == subject.leader:
            return each
    if not whole:
        return None
    digest = Counter(each.digest for each in whole).most_common(1)[0][0]
    return next(each for each in whole if each.digest == digest)


def parted(
    subject: Subject, doubt: Doubt, mine: Sequence[Line], theirs: Sequence[Line]
) -> list[Finding]:
    """Where two logs part: the first batch that only one of them has, or that differs."""
    for own, other in zip(mine, theirs, strict=False):
        if own == other:
            continue
        if own.base_offset > other.base_offset:
            return [_missing(subject, doubt, other)]
        sentence = (
            f"offset {own.base_offset} is of epoch {own.leader_epoch}, at broker {doubt.against} of"
            f" epoch {other.leader_epoch}"
            if own.leader_epoch != other.leader_epoch
            else f"the batch at offset {own.base_offset} (epoch {own.leader_epoch}) is not that of"
            f" broker {doubt.against}"
        )
        return [
            _finding(
                subject, Kind.DIFFERS, doubt.broker, own.base_offset, own.leader_epoch, sentence
            )
        ]
    if len(mine) < len(theirs):
        in_sync = subject.copy_of(doubt.broker).in_sync  # else that is its lag
        return [_missing(subject, doubt, theirs[len(mine)])] if in_sync else []
    if len(mine) > len(theirs):
        return [_extra(subject, doubt.broker, mine[len(theirs) :], doubt.against)]
    return []


def tail(
    subject: Subject, broker: int, mine: Sequence[Line], leader: Sequence[Line]
) -> list[Finding]:
    """What a follower holds above the high watermark must be the beginning of the leader's."""
    for number, own in enumerate(mine):
        if number >= len(leader) or own != leader[number]:
            return [_extra(subject, broker, mine[number:], subject.leader)]
    return []


def lag(subject: Subject, broker: int, end_offset: int) -> Finding | None:
    """A replica that ends below the high watermark: a loss if it counts as in sync."""
    short = subject.high_watermark - end_offset
    if short <= 0:
        return None
    if subject.copy_of(broker).in_sync:
        sentence = (
            f"it is in sync and lacks the last {short:,} records, from offset {end_offset} on"
        )
        return _finding(subject, Kind.MISSING, broker, end_offset, -1, sentence)
    sentence = f"it is out of sync and has {short:,} records still to fetch"
    return _finding(subject, Kind.LAGS, broker, end_offset, -1, sentence)


def unreachable(subject: Subject) -> Iterable[Finding]:
    for broker in subject.unreachable:
        sentence = "it is down, and no directory of its was given"
        yield _finding(subject, Kind.UNREAD, broker, -1, -1, sentence)


def _missing(subject: Subject, doubt: Doubt, line: Line) -> Finding:
    sentence = (
        f"offsets {line.base_offset} to {line.last_offset} (epoch {line.leader_epoch}) are missing;"
        f" broker {doubt.against} has them"
    )
    return _finding(
        subject, Kind.MISSING, doubt.broker, line.base_offset, line.leader_epoch, sentence
    )


def _extra(subject: Subject, broker: int, lines: Sequence[Line], against: int) -> Finding:
    first, last = lines[0], lines[-1]
    sentence = (
        f"it ends with offsets {first.base_offset} to {last.last_offset} (epoch"
        f" {first.leader_epoch}), which broker {against} does not have"
    )
    return _finding(subject, Kind.TAIL, broker, first.base_offset, first.leader_epoch, sentence)


def _finding(
    subject: Subject, kind: Kind, broker: int, offset: int, epoch: int, sentence: str
) -> Finding:
    return Finding(kind, subject.topic, subject.partition, broker, offset, epoch, sentence)
