"""Committed is what every replica that could be elected holds."""

from __future__ import annotations

import pytest

from cotidal.core.partition.effects import CompleteAcks, Readable, RememberEpochs
from cotidal.core.partition.high_watermark import clamped, committed_offset
from cotidal.core.partition.leader import become_leader, on_isr_answered, on_partition_changed
from cotidal.values import Millis, Offset, PartitionEpoch
from replicas import (
    appointment,
    epochs_of,
    fetched,
    isr_answer,
    leading,
    opened,
    write,
)


def test_the_slowest_replica_that_counts_decides() -> None:
    ends = (Offset(11), Offset(9))
    assert committed_offset(leader_end=Offset(12), ends_waited_for=ends) == 9


def test_the_leaders_own_end_counts() -> None:
    assert committed_offset(leader_end=Offset(8), ends_waited_for=(Offset(9),)) == 8


def test_one_that_never_fetched_holds_everything_back() -> None:
    assert committed_offset(leader_end=Offset(8), ends_waited_for=(Offset(-1),)) == -1


@pytest.mark.parametrize(("given", "moved"), [(3, 5), (7, 7), (12, 10)])
def test_a_mark_from_elsewhere_is_moved_into_the_log(given: int, moved: int) -> None:
    assert clamped(Offset(given), start=Offset(5), end=Offset(10)) == moved


def test_it_moves_when_the_last_of_the_isr_has_fetched() -> None:
    replica = leading(end=10)
    assert fetched(replica, 2, 10) == ()
    assert fetched(replica, 3, 9) == (Readable(Offset(9), Offset(9)), CompleteAcks(Offset(9)))


def test_a_follower_outside_the_isr_that_is_not_caught_up_does_not_hold_it_back() -> None:
    replica = leading(end=10, told=appointment(isr=(1, 2)))
    fetched(replica, 3, 4)
    fetched(replica, 2, 10)
    assert replica.high_watermark == 10


def test_it_never_goes_back_when_a_follower_does() -> None:
    replica = leading(end=10)
    fetched(replica, 2, 10)
    fetched(replica, 3, 10)
    fetched(replica, 3, 2)
    assert replica.high_watermark == 10


def test_it_moves_with_an_append_where_nobody_else_counts() -> None:
    replica = leading(end=10, told=appointment(isr=(1,)))
    write(replica, 3)
    assert replica.high_watermark == 13


def test_it_moves_on_taking_over_where_nobody_else_counts() -> None:
    replica = opened(end=10, hw=4, epochs=((1, 0),))
    effects = become_leader(replica, appointment(isr=(1,)), Millis(0))
    assert effects == (
        RememberEpochs(epochs_of((1, 0), (5, 10))),
        Readable(Offset(10), Offset(10)),
        CompleteAcks(Offset(10)),
    )


def test_it_stands_still_below_min_isr_and_moves_on_when_the_isr_has_grown() -> None:
    replica = leading(end=10, told=appointment(isr=(1,), min_isr=2))
    write(replica, 2)
    fetched(replica, 2, 12)
    assert replica.high_watermark == 0
    on_isr_answered(replica, isr_answer(replica), Millis(0))
    assert replica.high_watermark == 12


def test_a_proposed_member_does_not_help_to_reach_min_isr() -> None:
    """The controller may not have accepted it: the committed ISR decides whether to move."""
    replica = leading(end=10, told=appointment(isr=(1,), min_isr=2))
    fetched(replica, 2, 10)
    write(replica, 2)
    fetched(replica, 2, 12)
    assert replica.high_watermark == 0


def test_min_isr_is_never_more_than_there_are_replicas() -> None:
    replica = leading(end=10, told=appointment(replicas=(1,), isr=(1,), min_isr=2))
    assert replica.high_watermark == 10
    told = appointment(replicas=(1,), isr=(1,), min_isr=3, partition_epoch=10)
    on_partition_changed(replica, told, Millis(0))
    write(replica, 1)
    assert replica.high_watermark == 11


def test_it_moves_when_the_controller_takes_a_slow_member_out() -> None:
    replica = leading(end=10)
    fetched(replica, 2, 10)
    told = appointment(isr=(1, 2))._replace(partition_epoch=PartitionEpoch(10))
    effects = on_partition_changed(replica, told, Millis(99_999))
    assert CompleteAcks(Offset(10)) in effects
