"""What a leader knows of a follower: section by section of the rule for being caught up."""

from __future__ import annotations

from cotidal.core.partition.leader import become_leader
from cotidal.core.partition.progress import NEVER, Progress
from cotidal.values import BrokerEpoch, Millis, Offset
from replicas import LAG_MS, appointment, fetched, leadership_of, leading, nodes


def fetch(progress: Progress, offset: int, *, leader_end: int, now: int) -> None:
    progress.on_fetched(
        offset=Offset(offset),
        start_offset=Offset(0),
        leader_end=Offset(leader_end),
        broker_epoch=BrokerEpoch(7),
        now=Millis(now),
    )


def caught_up(progress: Progress, *, leader_end: int, now: int) -> bool:
    return progress.is_caught_up(leader_end=Offset(leader_end), now=Millis(now), lag_max_ms=LAG_MS)


def test_the_offset_asked_for_is_the_end_of_the_followers_log() -> None:
    progress = Progress(caught_up=NEVER)
    fetch(progress, 8, leader_end=10, now=5)
    assert (progress.end_offset, progress.broker_epoch) == (8, 7)


def test_a_fetch_at_the_leaders_end_is_caught_up_now() -> None:
    progress = Progress(caught_up=NEVER)
    fetch(progress, 10, leader_end=10, now=5)
    assert progress.last_caught_up == 5


def test_a_fetch_at_the_end_of_the_fetch_before_was_caught_up_then() -> None:
    progress = Progress(caught_up=NEVER)
    fetch(progress, 8, leader_end=10, now=5)
    fetch(progress, 10, leader_end=20, now=9)
    assert progress.last_caught_up == 5


def test_a_fetch_that_reaches_neither_end_leaves_the_time_alone() -> None:
    progress = Progress(caught_up=NEVER)
    fetch(progress, 8, leader_end=10, now=5)
    fetch(progress, 9, leader_end=20, now=9)
    assert progress.last_caught_up == NEVER


def test_the_first_fetch_of_all_proves_nothing_about_a_time_before() -> None:
    progress = Progress(caught_up=Millis(3))
    fetch(progress, 8, leader_end=10, now=5)
    assert progress.last_caught_up == 3


def test_the_time_of_being_caught_up_never_goes_back() -> None:
    progress = Progress(caught_up=Millis(100))
    fetch(progress, 10, leader_end=10, now=5)
    assert progress.last_caught_up == 100


def test_who_is_at_the_end_is_caught_up_however_long_ago_it_fetched() -> None:
    progress = Progress(caught_up=NEVER)
    fetch(progress, 10, leader_end=10, now=0)
    assert caught_up(progress, leader_end=10, now=99 * LAG_MS)


def test_who_is_behind_is_caught_up_for_the_lag_time_and_not_a_moment_longer() -> None:
    progress = Progress(caught_up=NEVER)
    fetch(progress, 10, leader_end=10, now=0)
    assert caught_up(progress, leader_end=11, now=LAG_MS)
    assert not caught_up(progress, leader_end=11, now=LAG_MS + 1)


def test_a_new_leader_knows_nothing_of_its_followers_but_trusts_the_isr_for_the_lag_time() -> None:
    followers = leadership_of(leading(told=appointment(isr=(1, 2)), now=50)).followers
    member, outsider = (followers[node] for node in nodes(2, 3))
    assert (member.end_offset, member.broker_epoch, member.last_caught_up) == (-1, -1, 50)
    assert (outsider.end_offset, outsider.broker_epoch, outsider.last_caught_up) == (-1, -1, NEVER)


def test_the_same_leader_in_the_next_epoch_keeps_the_ends_and_restarts_the_clocks() -> None:
    replica = leading(end=10)
    fetched(replica, 2, 10, now=1)
    fetched(replica, 3, 9, now=1)
    become_leader(replica, appointment(epoch=6, isr=(1, 2)), Millis(70))
    member, outsider = (leadership_of(replica).followers[node] for node in nodes(2, 3))
    assert (member.end_offset, member.broker_epoch, member.last_caught_up) == (10, 102, 70)
    assert (outsider.end_offset, outsider.broker_epoch, outsider.last_caught_up) == (9, 103, NEVER)


def test_a_leader_that_has_missed_an_epoch_knows_nothing_of_its_followers() -> None:
    """Whoever led in between may have had them cut what they once told of here."""
    replica = leading(end=10)
    fetched(replica, 2, 10, now=1)
    become_leader(replica, appointment(epoch=7, isr=(1, 2)), Millis(70))
    (node,) = nodes(2)
    follower = leadership_of(replica).followers[node]
    assert (follower.end_offset, follower.broker_epoch) == (-1, -1)
    assert replica.high_watermark == 0
