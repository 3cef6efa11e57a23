"""Who counts, who may join, who must go, and what the controller's answers do."""

from __future__ import annotations

import pytest

from cotidal.core.partition.effects import CompleteAcks, IsrMember, ProposeIsr, Readable
from cotidal.core.partition.isr import maximal_isr
from cotidal.core.partition.leader import (
    FollowerFetched,
    IsrAnswered,
    become_leader,
    on_brokers_changed,
    on_follower_fetched,
    on_isr_answered,
    on_partition_changed,
    shrink_isr,
)
from cotidal.core.partition.replica import Replica
from cotidal.errors import ErrorCode
from cotidal.values import BrokerEpoch, LeaderEpoch, Millis, NodeId, Offset, PartitionEpoch
from replicas import (
    ACTIVE,
    LAG_MS,
    appointment,
    fetched,
    isr_answer,
    leadership_of,
    leading,
    nodes,
    write,
)

OUTSIDE = appointment(isr=(1, 2), min_isr=2)
"""Broker 3 is a replica and not in the ISR."""


def proposed(replica: Replica) -> tuple[int, ...] | None:
    return leadership_of(replica).proposed


def joining(*, end: int = 10) -> Replica:
    """Broker 3 has caught up and is proposed."""
    replica = leading(end=end, told=OUTSIDE)
    fetched(replica, 2, end)
    fetched(replica, 3, end)
    assert proposed(replica) == (1, 2, 3)
    return replica


def leaving() -> Replica:
    """Broker 3 has not fetched for too long and is proposed to leave; broker 2 is at the end."""
    replica = leading(end=10, told=appointment(min_isr=2))
    fetched(replica, 2, 10)
    fetched(replica, 3, 9)
    shrink_isr(replica, Millis(LAG_MS + 1))
    assert proposed(replica) == (1, 2)
    return replica


# --- expand -------------------------------------------------------------------------------------


def test_a_follower_at_the_high_watermark_and_the_epoch_start_is_proposed_with_incarnations() -> (
    None
):
    replica = leading(end=10, told=OUTSIDE)
    assert fetched(replica, 3, 10) == (
        ProposeIsr(
            (
                IsrMember(NodeId(1), BrokerEpoch(101)),
                IsrMember(NodeId(2), BrokerEpoch(-1)),  # it has not fetched yet
                IsrMember(NodeId(3), BrokerEpoch(103)),
            ),
            LeaderEpoch(5),
            PartitionEpoch(9),
        ),
    )


def test_a_follower_behind_the_high_watermark_is_not_proposed() -> None:
    replica = leading(end=0, epochs=(), told=OUTSIDE)
    write(replica, 10)
    fetched(replica, 2, 10)
    assert replica.high_watermark == 10
    fetched(replica, 3, 9)
    assert proposed(replica) is None


def test_a_follower_at_the_high_watermark_but_behind_the_epoch_start_is_not_proposed() -> None:
    replica = leading(end=10, hw=4, told=OUTSIDE)
    fetched(replica, 3, 9)
    assert (replica.high_watermark, proposed(replica)) == (4, None)
    fetched(replica, 3, 10)
    assert proposed(replica) == (1, 2, 3)


def test_how_long_a_follower_lagged_is_not_asked_when_it_joins() -> None:
    replica = leading(end=10, told=OUTSIDE)
    write(replica, 5)
    fetched(replica, 3, 10, now=99 * LAG_MS)
    assert proposed(replica) == (1, 2, 3)


def test_nobody_is_proposed_while_a_proposal_is_open() -> None:
    replica = leading(end=10, told=appointment(isr=(1,)))
    fetched(replica, 2, 10)
    fetched(replica, 3, 10)
    assert proposed(replica) == (1, 2)
    assert shrink_isr(replica, Millis(9 * LAG_MS)) == ()


def test_a_fenced_or_stopping_follower_is_not_proposed() -> None:
    active = {node: epoch for node, epoch in ACTIVE.items() if node != 3}
    replica = leading(end=10, told=OUTSIDE._replace(active=active))
    fetched(replica, 3, 10)
    assert proposed(replica) is None


def test_what_waited_for_a_follower_outside_the_isr_is_committed_when_that_is_fenced() -> None:
    replica = leading(end=10, told=OUTSIDE)
    (asked,) = fetched(replica, 3, 10)
    assert isinstance(asked, ProposeIsr)
    on_isr_answered(replica, IsrAnswered(asked, ErrorCode.INELIGIBLE_REPLICA), Millis(0))
    write(replica, 5)
    fetched(replica, 2, 15)
    assert replica.high_watermark == 10, "broker 3 was caught up a moment ago, and may join"
    active = {node: epoch for node, epoch in ACTIVE.items() if node != 3}
    assert on_brokers_changed(replica, active, Millis(0)) == (
        Readable(Offset(15), Offset(15)),
        CompleteAcks(Offset(15)),
    )


def test_a_fetch_of_an_incarnation_that_is_not_the_registered_one_proposes_nobody() -> None:
    replica = leading(end=10, told=OUTSIDE)
    fetched(replica, 3, 10, broker_epoch=104)
    assert proposed(replica) is None


def test_a_fetch_that_names_no_incarnation_is_not_held_to_one() -> None:
    replica = leading(end=10, told=OUTSIDE)
    fetched(replica, 3, 10, broker_epoch=-1)
    assert proposed(replica) == (1, 2, 3)


def test_a_member_is_not_proposed_again() -> None:
    replica = leading(end=10)
    fetched(replica, 2, 10)
    assert proposed(replica) is None


def test_a_follower_whose_log_begins_before_ours_may_not_join() -> None:
    """What it has there was never compared with ours: of ours that part is deleted."""
    replica = leading(start=4, end=10, hw=10, told=appointment(isr=(1,)))
    event = FollowerFetched(NodeId(2), Offset(10), Offset(3), ACTIVE[NodeId(2)])
    on_follower_fetched(replica, event, Millis(0))
    assert leadership_of(replica).proposal is None
    on_follower_fetched(replica, event._replace(start_offset=Offset(4)), Millis(0))
    assert proposed(replica) == (1, 2)


# --- shrink -------------------------------------------------------------------------------------


def test_a_member_that_was_not_caught_up_for_the_lag_time_is_proposed_to_leave() -> None:
    replica = leading(end=10)
    fetched(replica, 2, 10)
    fetched(replica, 3, 9)
    assert shrink_isr(replica, Millis(LAG_MS)) == ()
    (effect,) = shrink_isr(replica, Millis(LAG_MS + 1))
    assert isinstance(effect, ProposeIsr)
    assert proposed(replica) == (1, 2)


def test_a_member_that_never_fetched_leaves_after_the_lag_time() -> None:
    replica = leading(end=10, now=7)
    assert shrink_isr(replica, Millis(7 + LAG_MS)) == ()
    shrink_isr(replica, Millis(8 + LAG_MS))
    assert proposed(replica) == (1,)


def test_a_silent_member_stays_while_nothing_is_written() -> None:
    replica = leading(end=10)
    fetched(replica, 2, 10)
    fetched(replica, 3, 10)
    assert shrink_isr(replica, Millis(99 * LAG_MS)) == ()


def test_the_leader_never_proposes_to_leave_itself() -> None:
    replica = leading(end=10, told=appointment(isr=(1,)))
    assert shrink_isr(replica, Millis(99 * LAG_MS)) == ()


# --- who counts ---------------------------------------------------------------------------------


def test_who_is_proposed_counts_before_the_controller_has_answered() -> None:
    replica = joining()
    assert maximal_isr(leadership_of(replica)) == (1, 2, 3)
    write(replica, 2)
    fetched(replica, 2, 12, now=9 * LAG_MS)
    assert replica.high_watermark == 10
    fetched(replica, 3, 11, now=9 * LAG_MS)
    assert replica.high_watermark == 11


def test_who_is_to_leave_counts_until_the_controller_has_answered() -> None:
    replica = leaving()
    assert maximal_isr(leadership_of(replica)) == (1, 2, 3)
    assert replica.high_watermark == 9
    effects = on_isr_answered(replica, isr_answer(replica), Millis(LAG_MS + 1))
    assert effects == (Readable(Offset(10), Offset(10)), CompleteAcks(Offset(10)))


def test_a_caught_up_follower_that_may_join_is_waited_for() -> None:
    """Or the high watermark would run away from it and it could never join."""
    replica = leading(end=0, epochs=(), told=OUTSIDE)
    fetched(replica, 3, 0)
    on_isr_answered(replica, isr_answer(replica, ErrorCode.OPERATION_NOT_ATTEMPTED), Millis(0))
    write(replica, 5)
    fetched(replica, 2, 5, now=1)
    assert replica.high_watermark == 0


def test_a_stopping_follower_that_is_caught_up_does_not_hold_the_high_watermark() -> None:
    """KAFKA-15021."""
    replica = leading(end=0, epochs=(), told=OUTSIDE)
    fetched(replica, 3, 0)
    on_isr_answered(replica, isr_answer(replica, ErrorCode.INELIGIBLE_REPLICA), Millis(0))
    stopping = {node: epoch for node, epoch in ACTIVE.items() if node != 3}
    on_partition_changed(replica, OUTSIDE._replace(active=stopping), Millis(0))
    write(replica, 5)
    fetched(replica, 2, 5, now=1)
    assert replica.high_watermark == 5


def test_a_follower_that_restarted_does_not_hold_the_high_watermark_with_its_old_life() -> None:
    replica = leading(end=0, epochs=(), told=OUTSIDE)
    fetched(replica, 3, 0)
    on_isr_answered(replica, isr_answer(replica, ErrorCode.INELIGIBLE_REPLICA), Millis(0))
    restarted = {**ACTIVE, NodeId(3): BrokerEpoch(200)}
    on_partition_changed(replica, OUTSIDE._replace(active=restarted), Millis(0))
    write(replica, 5)
    fetched(replica, 2, 5, now=1)
    assert replica.high_watermark == 5


# --- the controller's answers -------------------------------------------------------------------


@pytest.mark.parametrize("error", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_a_refused_member_reverts_to_the_committed_isr(error: ErrorCode) -> None:
    replica = joining()
    on_isr_answered(replica, isr_answer(replica, error), Millis(0))
    assert (proposed(replica), leadership_of(replica).isr) == (None, (1, 2))


@pytest.mark.parametrize("error", [3, 100, 74, 95, 42, 108])
def test_a_proposal_refused_for_old_knowledge_stands_until_metadata_comes(error: int) -> None:
    replica = joining()
    assert on_isr_answered(replica, isr_answer(replica, ErrorCode(error)), Millis(0)) == ()
    assert maximal_isr(leadership_of(replica)) == (1, 2, 3)
    on_partition_changed(replica, OUTSIDE._replace(partition_epoch=PartitionEpoch(10)), Millis(0))
    assert (proposed(replica), maximal_isr(leadership_of(replica))) == (None, (1, 2))


@pytest.mark.parametrize("error", [41, 7, 13, -1])
def test_any_other_error_asks_the_same_again(error: int) -> None:
    replica = joining()
    asked = leadership_of(replica).proposal
    assert on_isr_answered(replica, isr_answer(replica, ErrorCode(error)), Millis(0)) == (asked,)
    assert leadership_of(replica).proposal == asked


def test_asking_again_vouches_only_for_the_incarnation_that_had_caught_up() -> None:
    """Broker 3 comes back with less than it had; the new incarnation must not join on the word of
    the old one."""
    replica = joining()
    asked = leadership_of(replica).proposal
    on_partition_changed(
        replica, OUTSIDE._replace(active={**ACTIVE, NodeId(3): BrokerEpoch(200)}), Millis(0)
    )
    fetched(replica, 3, 2, broker_epoch=200)
    (again,) = on_isr_answered(replica, isr_answer(replica, ErrorCode.REQUEST_TIMED_OUT), Millis(0))
    assert again == asked


def test_a_granted_proposal_becomes_the_isr() -> None:
    replica = joining()
    on_isr_answered(replica, isr_answer(replica), Millis(0))
    leadership = leadership_of(replica)
    assert (leadership.isr, leadership.partition_epoch, proposed(replica)) == ((1, 2, 3), 10, None)


def test_a_grant_that_changed_nothing_settles_the_proposal_too() -> None:
    replica = joining()
    on_isr_answered(replica, isr_answer(replica, partition_epoch=9), Millis(0))
    assert (leadership_of(replica).isr, proposed(replica)) == ((1, 2, 3), None)


@pytest.mark.parametrize(("epoch", "partition_epoch"), [(6, 10), (5, 8)])
def test_a_grant_from_another_time_is_not_taken(epoch: int, partition_epoch: int) -> None:
    replica = joining()
    answer = isr_answer(replica, epoch=epoch, partition_epoch=partition_epoch)
    on_isr_answered(replica, answer, Millis(0))
    assert (leadership_of(replica).isr, proposed(replica)) == ((1, 2), (1, 2, 3))


def test_a_late_answer_to_an_earlier_proposal_does_not_settle_this_one() -> None:
    """The controller may have granted this one already: it must go on counting."""
    replica = joining()
    late = isr_answer(replica, ErrorCode.OPERATION_NOT_ATTEMPTED)
    late_grant = isr_answer(replica)
    on_partition_changed(replica, OUTSIDE._replace(partition_epoch=PartitionEpoch(10)), Millis(0))
    fetched(replica, 3, 10)
    on_isr_answered(replica, late, Millis(0))
    on_isr_answered(replica, late_grant, Millis(0))
    assert maximal_isr(leadership_of(replica)) == (1, 2, 3)
    assert proposed(replica) == (1, 2, 3)


def test_an_answer_to_a_proposal_of_an_earlier_leadership_says_nothing() -> None:
    replica = joining()
    answer = isr_answer(replica)
    become_leader(replica, OUTSIDE._replace(epoch=LeaderEpoch(6)), Millis(0))
    assert on_isr_answered(replica, answer, Millis(0)) == ()
    assert leadership_of(replica).isr == (1, 2)


# --- metadata -----------------------------------------------------------------------------------


def test_metadata_outranks_a_proposal() -> None:
    replica = joining()
    told = appointment(isr=(1, 2, 3), min_isr=2, partition_epoch=10)
    on_partition_changed(replica, told, Millis(0))
    assert (leadership_of(replica).isr, proposed(replica)) == ((1, 2, 3), None)


def test_metadata_older_than_what_was_granted_does_not_bring_the_old_isr_back() -> None:
    replica = joining()
    on_isr_answered(replica, isr_answer(replica), Millis(0))
    on_partition_changed(replica, OUTSIDE, Millis(0))
    assert leadership_of(replica).isr == (1, 2, 3)


def test_settings_that_change_in_the_same_partition_epoch_leave_a_proposal_open() -> None:
    replica = joining()
    on_partition_changed(replica, OUTSIDE._replace(min_isr=3), Millis(0))
    assert (leadership_of(replica).min_isr, proposed(replica)) == (3, (1, 2, 3))


def test_a_replica_that_is_added_starts_unknown_and_one_that_stays_keeps_its_place() -> None:
    replica = leading(end=10, told=appointment(replicas=(1, 2), isr=(1, 2)))
    fetched(replica, 2, 10)
    on_partition_changed(replica, appointment(isr=(1, 2), partition_epoch=10), Millis(0))
    followers = leadership_of(replica).followers
    assert [followers[node].end_offset for node in nodes(2, 3)] == [10, -1]
