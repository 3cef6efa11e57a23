"""Epoch lines: where epochs end, and where two logs part."""

from __future__ import annotations

import random

import pytest

from cotidal.core.quorum.log_view import EpochEnd, LogView, SnapshotId
from cotidal.values import EpochEntry, LeaderEpoch, Offset


def view(*epochs: int, start: int = 0, start_epoch: int = 0) -> LogView:
    """A log with one record of each of these epochs."""
    log = LogView(
        start_offset=Offset(start), start_epoch=LeaderEpoch(start_epoch), end_offset=Offset(start)
    )
    for epoch in epochs:
        append(log, epoch)
    log.check()
    return log


def append(log: LogView, epoch: int) -> None:
    end = log.end_offset
    log.append(base_offset=end, next_offset=Offset(end + 1), epoch=LeaderEpoch(epoch))


def end(epoch: int, offset: int) -> EpochEnd:
    return EpochEnd(LeaderEpoch(epoch), Offset(offset))


def test_an_epoch_ends_where_the_next_begins() -> None:
    log = view(1, 1, 3, 3, 3)
    assert log.end_of(LeaderEpoch(1)) == end(1, 2)
    assert log.end_of(LeaderEpoch(2)) == end(1, 2)
    assert log.end_of(LeaderEpoch(3)) == end(3, 5)
    assert log.end_of(LeaderEpoch(9)) == end(3, 5)
    assert log.end_of(LeaderEpoch(0)) == end(0, 0)


def test_an_empty_log_is_of_the_epoch_before_all() -> None:
    assert view().last_epoch == 0
    assert view().end_of(LeaderEpoch(0)) == end(0, 0)


def test_logs_part_where_the_smaller_common_epoch_ended() -> None:
    follower = view(1, 1, 2, 2)
    assert follower.cut_for(view(1, 1, 3).end_of(LeaderEpoch(2))) == 2


def test_what_an_older_leader_wrote_is_cut_by_epoch_and_not_by_length() -> None:
    follower = view(*[1] * 5, *[2] * 3, *[3] * 4)
    assert follower.cut_for(end(1, 10)) == 5


def test_a_leader_below_our_snapshot_is_told_apart() -> None:
    assert view(start=10, start_epoch=4).cut_for(end(3, 7)) == 7


def test_cleaning_keeps_the_epoch_before_the_start() -> None:
    log = view(1, 1, 2, 2, 5)
    log.cut_below(Offset(3))
    log.check()
    assert (log.start_offset, log.start_epoch) == (3, 2)
    assert log.line == [EpochEntry(LeaderEpoch(5), Offset(4))]
    assert log.end_of(LeaderEpoch(2)) == end(2, 4)
    log.cut_from(Offset(3))
    assert log.last_epoch == 2


def test_a_snapshot_replaces_everything() -> None:
    log = view(1, 1, 7)
    log.replace(SnapshotId(Offset(20), LeaderEpoch(5)))
    log.check()
    assert log.reach == (5, 20)


def test_the_longer_log_is_the_one_with_the_later_epoch() -> None:
    assert view(2).reach > view(1, 1, 1).reach
    assert view(1, 1).reach > view(1).reach


@pytest.mark.parametrize("block", range(4))
def test_two_logs_meet_after_a_few_rounds_whatever_was_written(block: int) -> None:
    """KIP-279: leaders write without a shared tail; the follower cuts until it fits."""
    for seed in range(block * 250, block * 250 + 250):
        draw = random.Random(seed)
        logs = [view(), view(), view()]
        for epoch in range(1, draw.randint(2, 8)):
            leader, follower = draw.sample(logs, 2)
            if leader.reach < follower.reach:
                leader, follower = follower, leader
            rounds = reconcile(leader, follower, copy=draw.randint(0, 4))
            assert rounds <= 8
            for _ in range(draw.randint(1, 3)):
                append(leader, epoch)
        logs.sort(key=lambda log: log.reach)
        for follower in logs[:-1]:
            reconcile(logs[-1], follower, copy=99)
            assert epochs(follower) == epochs(logs[-1])


def reconcile(leader: LogView, follower: LogView, *, copy: int) -> int:
    rounds = 0
    while True:
        found = leader.end_of(follower.last_epoch)
        if found.epoch == follower.last_epoch and found.end_offset >= follower.end_offset:
            break
        before = follower.end_offset
        follower.cut_from(follower.cut_for(found))
        assert follower.end_offset < before
        rounds += 1
    for offset in range(follower.end_offset, min(leader.end_offset, follower.end_offset + copy)):
        append(follower, leader.epoch_before(Offset(offset + 1)))
    follower.check()
    return rounds


def epochs(log: LogView) -> list[int]:
    return [log.epoch_before(Offset(offset + 1)) for offset in range(log.end_offset)]
