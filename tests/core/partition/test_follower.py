"""The follower's rules: what it asks, what it takes, where it cuts, when it waits."""

from __future__ import annotations

import pytest

from cotidal.core.partition import leader as leader_side
from cotidal.core.partition.effects import (
    AdvanceLogStart,
    AppendFetched,
    LeadershipLost,
    PartitionEffect,
    Readable,
    RememberEpochs,
    StartOver,
    Truncate,
)
from cotidal.core.partition.epochs import EpochEnd
from cotidal.core.partition.follower import (
    BACK_OFF_FIRST_MS,
    BACK_OFF_MS,
    Answered,
    LeaderEnds,
    Question,
    follow,
    on_answered,
    on_appended,
    on_leader_ends,
    on_log_cut,
    question,
    question_of_ends,
)
from cotidal.core.partition.leader import ACKS_ALL, Admitted, WriteRules, admit_batch, become_leader
from cotidal.core.partition.replica import Replica, on_start_moved
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.batch import NO_BATCHES, Batches
from cotidal.values import LeaderEpoch, Millis, NodeId, Offset, WallMillis
from headers import header, one_batch
from replicas import appointment, epochs_of, fetched, following, leading

NOW = Millis(0)


def asked(replica: Replica, now: int = 0) -> Question:
    asks = question(replica, Millis(now))
    assert asks is not None
    return asks


def batches(*placed: tuple[int, int, int]) -> Batches:
    """(base offset, records, leader epoch) of each."""
    headers = tuple(
        header(base_offset=base, records=records)._replace(leader_epoch=LeaderEpoch(epoch))
        for base, records, epoch in placed
    )
    return Batches(headers, bytes(sum(each.size_bytes for each in headers)))


def answer(
    asks: Question,
    *,
    hw: int = 0,
    start: int = 0,
    error: ErrorCode = ErrorCode.NONE,
    diverging: tuple[int, int] | None = None,
    taken: Batches = NO_BATCHES,
) -> Answered:
    end = None if diverging is None else EpochEnd(LeaderEpoch(diverging[0]), Offset(diverging[1]))
    return Answered(asks, error, Offset(hw), Offset(start), end, taken)


def cut_to(replica: Replica, offset: int) -> tuple[PartitionEffect, ...]:
    """The disk has cut the log there."""
    start = min(replica.start_offset, offset)
    return on_log_cut(
        replica,
        start_offset=Offset(start),
        end_offset=Offset(offset),
        epochs=tuple(replica.epochs.entries),
        producers=None,
        headers_after=(),
    )


# --- the question -------------------------------------------------------------------------------


def test_it_asks_at_its_end_with_its_last_epoch_and_its_log_start() -> None:
    replica = following(start=2, end=10, epochs=((1, 2), (3, 6)), epoch=7)
    assert asked(replica) == Question(LeaderEpoch(7), Offset(10), LeaderEpoch(3), Offset(2))


def test_an_empty_log_claims_no_last_epoch() -> None:
    assert asked(following(end=0, epochs=())).last_fetched_epoch == -1


def test_it_asks_nothing_while_what_it_fetched_is_being_written() -> None:
    replica = following(end=10)
    on_answered(replica, answer(asked(replica), taken=batches((10, 2, 5))), NOW)
    assert question(replica, NOW) is None
    on_appended(replica, Offset(12))
    assert asked(replica).offset == 12


def test_another_leader_is_not_asked_before_the_disk_has_written_either() -> None:
    """Or the same records would be fetched, and written, twice."""
    replica = following(end=10)
    first = asked(replica)
    on_answered(replica, answer(first, taken=batches((10, 2, 5))), NOW)
    follow(replica, leader=NodeId(3), epoch=LeaderEpoch(6))
    assert question(replica, NOW) is None
    on_appended(replica, Offset(12))
    assert asked(replica).offset == 12


def test_another_leader_is_not_asked_before_the_disk_has_cut_either() -> None:
    replica = following(end=12, epochs=((1, 0), (2, 10)))
    on_answered(replica, answer(asked(replica), diverging=(1, 10)), NOW)
    follow(replica, leader=NodeId(3), epoch=LeaderEpoch(6))
    assert question(replica, NOW) is None
    cut_to(replica, 10)
    assert asked(replica) == Question(LeaderEpoch(6), Offset(10), LeaderEpoch(1), Offset(0))


def test_following_the_same_leader_in_the_same_epoch_again_changes_nothing() -> None:
    replica = following()
    on_answered(replica, answer(asked(replica), error=ErrorCode.NOT_LEADER_OR_FOLLOWER), NOW)
    follow(replica, leader=NodeId(1), epoch=LeaderEpoch(5))
    assert question(replica, NOW) is None


def test_a_leader_that_follows_tells_that_it_no_longer_leads() -> None:
    replica = leading()
    (effect,) = follow(replica, leader=NodeId(2), epoch=LeaderEpoch(6))
    assert effect == LeadershipLost("orders-0 is led by broker 2 in epoch 6")


def test_an_epoch_never_goes_back() -> None:
    with pytest.raises(AssertionError, match="epochs never go back"):
        follow(leading(), leader=NodeId(2), epoch=LeaderEpoch(4))


# --- the answer ---------------------------------------------------------------------------------


def test_what_is_fetched_is_written_as_it_is_and_its_epochs_are_remembered_first() -> None:
    replica = following(end=10, epochs=((1, 0),))
    taken = batches((10, 2, 1), (12, 1, 4))
    assert on_answered(replica, answer(asked(replica), taken=taken), NOW) == (
        RememberEpochs(epochs_of((1, 0), (4, 12))),
        AppendFetched(taken),
    )


def test_epochs_are_written_only_when_a_new_one_begins() -> None:
    replica = following(end=10, epochs=((1, 0),))
    taken = batches((10, 2, 1))
    assert on_answered(replica, answer(asked(replica), taken=taken), NOW) == (AppendFetched(taken),)


def test_the_high_watermark_is_the_leaders_once_the_records_are_written() -> None:
    replica = following(end=10)
    on_answered(replica, answer(asked(replica), hw=11, taken=batches((10, 3, 5))), NOW)
    assert replica.high_watermark == 0
    assert on_appended(replica, Offset(13)) == (Readable(Offset(11), Offset(11)),)


def test_the_high_watermark_does_not_pass_the_followers_end() -> None:
    replica = following(end=10)
    on_answered(replica, answer(asked(replica), hw=99), NOW)
    assert replica.high_watermark == 10


def test_the_high_watermark_may_go_back_under_a_new_leader() -> None:
    replica = following(end=10, hw=9)
    assert on_answered(replica, answer(asked(replica), hw=6), NOW) == (
        Readable(Offset(6), Offset(6)),
    )


def test_an_empty_answer_keeps_the_last_epoch() -> None:
    """KAFKA-15510."""
    replica = following(end=10, epochs=((3, 0),))
    on_answered(replica, answer(asked(replica), hw=10), NOW)
    assert asked(replica).last_fetched_epoch == 3


def test_the_log_start_follows_the_leaders_up_to_the_high_watermark() -> None:
    replica = following(end=10, hw=3)
    effects = on_answered(replica, answer(asked(replica), hw=5, start=7), NOW)
    assert effects == (Readable(Offset(5), Offset(5)), AdvanceLogStart(Offset(5)))


def test_the_log_start_never_goes_back() -> None:
    replica = following(start=6, end=10, hw=8, epochs=((1, 6),))
    assert on_answered(replica, answer(asked(replica), hw=8, start=2), NOW) == ()


def test_a_mark_that_goes_back_while_the_log_start_moves_stays_in_the_log() -> None:
    replica = following(end=10, hw=9)
    on_answered(replica, answer(asked(replica), hw=9, start=8), NOW)
    on_answered(replica, answer(asked(replica), hw=5), NOW)
    on_start_moved(replica, Offset(8))
    assert (replica.start_offset, replica.high_watermark) == (8, 8)


def test_records_of_the_time_as_leader_do_not_move_the_high_watermark_when_they_are_written() -> (
    None
):
    """The new leader has told nothing yet."""
    replica = leading(end=10, hw=8)
    replica.next_offset = Offset(12)
    follow(replica, leader=NodeId(2), epoch=LeaderEpoch(6))
    assert on_appended(replica, Offset(12)) == ()
    assert replica.high_watermark == 8


# --- late answers -------------------------------------------------------------------------------


def test_an_answer_of_another_epoch_is_dropped() -> None:
    replica = following(end=10, epoch=5)
    late = answer(asked(replica), hw=10, taken=batches((10, 2, 5)))
    follow(replica, leader=NodeId(3), epoch=LeaderEpoch(6))
    assert on_answered(replica, late, NOW) == ()
    assert (replica.next_offset, replica.high_watermark) == (10, 0)


def test_an_answer_to_another_offset_is_dropped() -> None:
    replica = following(end=10)
    asks = asked(replica)
    on_answered(replica, answer(asks, taken=batches((10, 2, 5))), NOW)
    on_appended(replica, Offset(12))
    assert on_answered(replica, answer(asks, taken=batches((10, 2, 5))), NOW) == ()


def test_an_answer_that_comes_while_the_disk_works_is_dropped() -> None:
    replica = following(end=10)
    asks = asked(replica)
    on_answered(replica, answer(asks, taken=batches((10, 2, 5))), NOW)
    assert on_answered(replica, answer(asks, diverging=(0, 5)), NOW) == ()


def test_a_late_divergence_does_not_cut_what_was_fetched_since() -> None:
    """Same epoch, same end: but the log that diverged is not the log that is here now."""
    replica = following(end=12, epochs=((1, 0), (3, 5)))
    late = answer(asked(replica), diverging=(1, 5))
    on_answered(replica, late, NOW)
    cut_to(replica, 5)
    on_answered(replica, answer(asked(replica), hw=12, taken=batches((5, 7, 4))), NOW)
    on_appended(replica, Offset(12))
    assert on_answered(replica, late, NOW) == ()


def test_batches_of_a_later_epoch_than_was_asked_in_are_left() -> None:
    """KAFKA-18723."""
    replica = following(end=10, epoch=5)
    taken = batches((10, 2, 5), (12, 1, 6))
    effects = on_answered(replica, answer(asked(replica), taken=taken), NOW)
    (append,) = (effect for effect in effects if isinstance(effect, AppendFetched))
    assert [each.base_offset for each in append.batches.headers] == [10]
    assert len(append.batches.data) == append.batches.headers[0].size_bytes


def test_an_answer_of_later_batches_only_writes_nothing() -> None:
    replica = following(end=10, epoch=5)
    on_answered(replica, answer(asked(replica), hw=4, taken=batches((10, 1, 6))), NOW)
    assert (replica.next_offset, replica.high_watermark) == (10, 4)


def test_a_batch_that_reaches_back_into_the_log_is_not_written() -> None:
    replica = following(end=10)
    assert on_answered(replica, answer(asked(replica), taken=batches((8, 4, 5))), NOW) == ()
    assert replica.next_offset == 10
    assert question(replica, Millis(BACK_OFF_MS - 1)) is None
    assert asked(replica, BACK_OFF_MS).offset == 10


# --- divergence ---------------------------------------------------------------------------------


def cuts_at(replica: Replica, diverging: tuple[int, int]) -> int:
    (effect,) = on_answered(replica, answer(asked(replica), hw=99, diverging=diverging), NOW)
    assert isinstance(effect, Truncate)
    return effect.offset


def test_first_worked_example_an_epoch_that_the_leader_never_had() -> None:
    """Leader {1@0, 3@2}, follower {1@0, 2@2} with end 4: the answer is (1, 2), the cut is at 2."""
    assert cuts_at(following(end=4, epochs=((1, 0), (2, 2))), (1, 2)) == 2


def test_second_worked_example_the_followers_own_end_of_that_epoch_is_lower() -> None:
    """Leader {1@0, 4@10}, follower {1@0, 2@5, 3@8} with end 12: min(5, 10)."""
    assert cuts_at(following(end=12, epochs=((1, 0), (2, 5), (3, 8))), (1, 10)) == 5


def test_where_the_followers_epoch_is_another_it_cuts_its_own_and_asks_again() -> None:
    replica = following(end=12, epochs=((1, 0), (3, 8)))
    assert cuts_at(replica, (2, 10)) == 8
    cut_to(replica, 8)
    assert asked(replica) == Question(LeaderEpoch(5), Offset(8), LeaderEpoch(1), Offset(0))


def test_where_the_follower_knows_no_epoch_so_high_it_cuts_where_the_leader_says() -> None:
    assert cuts_at(following(end=12, epochs=((1, 0),)), (2, 7)) == 7


def test_logs_that_share_nothing_are_cut_to_the_beginning() -> None:
    assert cuts_at(following(end=12, epochs=((2, 0),)), (1, 0)) == 0


def test_a_cut_never_lies_past_the_end() -> None:
    assert cuts_at(following(end=12, epochs=((1, 0),)), (2, 70)) == 12


def test_a_divergence_that_names_no_offset_cuts_nothing() -> None:
    replica = following(end=12, epochs=((1, 0),))
    assert on_answered(replica, answer(asked(replica), diverging=(-1, -1)), NOW) == ()
    assert question(replica, NOW) is None
    assert asked(replica, BACK_OFF_MS).offset == 12


def test_a_divergence_moves_neither_high_watermark_nor_log_start() -> None:
    """KAFKA-14704: the records above are not the leader's."""
    replica = following(end=12, hw=3, epochs=((1, 0), (2, 2)))
    asks = asked(replica)
    effects = on_answered(replica, answer(asks, hw=12, start=1, diverging=(1, 2)), NOW)
    assert effects == (Truncate(Offset(2)),)
    assert (replica.high_watermark, replica.start_offset) == (3, 0)


def test_a_cut_takes_the_high_watermark_along_and_the_epochs_and_what_producers_wrote() -> None:
    replica = following(end=4, hw=3, epochs=((1, 0), (2, 2)))
    replica.producers.replay([header(producer_id=7, producer_epoch=0, base_sequence=0)])
    cuts_at(replica, (1, 2))
    cut_to(replica, 2)
    assert (replica.end_offset, replica.next_offset, replica.high_watermark) == (2, 2, 2)
    assert replica.epochs.entries == [(1, 0)]
    assert len(replica.producers) == 0


def test_an_epoch_entered_without_records_is_dropped_though_nothing_is_cut() -> None:
    """It led in epoch 2 and wrote nothing. The leader of epoch 3 never heard of 2."""
    replica = leading(end=10, epochs=((1, 0),), told=appointment(epoch=2))
    follow(replica, leader=NodeId(2), epoch=LeaderEpoch(3))
    assert asked(replica).last_fetched_epoch == 2
    assert cuts_at(replica, (1, 10)) == 10
    cut_to(replica, 10)
    assert asked(replica).last_fetched_epoch == 1


# --- refusals -----------------------------------------------------------------------------------


def refused(replica: Replica, error: ErrorCode) -> None:
    assert on_answered(replica, answer(asked(replica), error=error), NOW) == ()


@pytest.mark.parametrize(
    "error", [ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER]
)
def test_a_leader_that_is_behind_is_asked_again_in_a_moment(error: ErrorCode) -> None:
    replica = following()
    refused(replica, error)
    assert question(replica, Millis(BACK_OFF_FIRST_MS - 1)) is None
    assert asked(replica, BACK_OFF_FIRST_MS).offset == 10


def test_a_leader_that_goes_on_refusing_is_asked_less_and_less_often() -> None:
    replica = following()
    now, waits = 0, []
    for _ in range(8):
        on_answered(
            replica,
            answer(asked(replica, now), error=ErrorCode.NOT_LEADER_OR_FOLLOWER),
            Millis(now),
        )
        assert replica.following is not None
        waits.append(replica.following.not_before - now)
        now = replica.following.not_before
    assert waits == [20, 40, 80, 160, 320, 640, 1_000, 1_000]


def test_a_fenced_follower_stops_until_metadata_brings_another_epoch() -> None:
    replica = following(epoch=5)
    refused(replica, ErrorCode.FENCED_LEADER_EPOCH)
    assert question(replica, Millis(1 << 40)) is None
    follow(replica, leader=NodeId(1), epoch=LeaderEpoch(6))
    assert asked(replica).leader_epoch == 6


def ends(replica: Replica, *, start: int, end: int) -> tuple[PartitionEffect, ...]:
    assert question(replica, NOW) is None
    asks = question_of_ends(replica, NOW)
    assert asks is not None
    return on_leader_ends(replica, LeaderEnds(asks, Offset(start), Offset(end)))


def test_out_of_range_above_the_leaders_end_is_cut_to_it() -> None:
    replica = following(end=10)
    refused(replica, ErrorCode.OFFSET_OUT_OF_RANGE)
    assert ends(replica, start=0, end=7) == (Truncate(Offset(7)),)


def test_out_of_range_below_the_leaders_start_starts_over_there_once() -> None:
    replica = following(end=10, hw=10)
    refused(replica, ErrorCode.OFFSET_OUT_OF_RANGE)
    assert ends(replica, start=50, end=70) == (StartOver(Offset(50)),)
    on_log_cut(
        replica,
        start_offset=Offset(50),
        end_offset=Offset(50),
        epochs=(),
        producers=None,
        headers_after=(),
    )
    assert asked(replica) == Question(LeaderEpoch(5), Offset(50), LeaderEpoch(-1), Offset(50))
    assert (replica.high_watermark, question_of_ends(replica, NOW)) == (50, None)


@pytest.mark.parametrize(("start", "end"), [(3, 12), (0, 10), (10, 12)])
def test_in_range_after_all_it_just_asks_again(start: int, end: int) -> None:
    replica = following(end=10)
    refused(replica, ErrorCode.OFFSET_OUT_OF_RANGE)
    assert ends(replica, start=start, end=end) == ()
    assert asked(replica).offset == 10


def test_nothing_is_asked_while_the_disk_starts_over() -> None:
    replica = following(end=10)
    refused(replica, ErrorCode.OFFSET_OUT_OF_RANGE)
    ends(replica, start=50, end=70)
    assert question(replica, NOW) is None


def test_ends_that_cannot_be_had_are_asked_for_again_in_a_moment() -> None:
    replica = following(end=10)
    refused(replica, ErrorCode.OFFSET_OUT_OF_RANGE)
    asks = question_of_ends(replica, NOW)
    assert asks is not None
    on_answered(replica, answer(asks, error=ErrorCode.NOT_LEADER_OR_FOLLOWER), NOW)
    assert question_of_ends(replica, Millis(BACK_OFF_FIRST_MS - 1)) is None
    assert question_of_ends(replica, Millis(BACK_OFF_FIRST_MS)) == asks


def test_ends_of_another_epoch_are_dropped() -> None:
    replica = following(end=10)
    refused(replica, ErrorCode.OFFSET_OUT_OF_RANGE)
    asks = question_of_ends(replica, NOW)
    assert asks is not None
    follow(replica, leader=NodeId(3), epoch=LeaderEpoch(6))
    assert on_leader_ends(replica, LeaderEnds(asks, Offset(0), Offset(2))) == ()


def test_a_log_of_which_the_leader_has_deleted_everything_takes_the_batch_its_log_starts_in() -> (
    None
):
    """Cut to where the leader's log begins, it would wait there for ever otherwise."""
    replica = following(start=6, end=16, hw=14, epochs=((0, 6),))
    taken = batches((15, 2, 5), (17, 3, 5))
    reply = answer(asked(replica), hw=20, start=16, taken=taken)
    assert on_answered(replica, reply, NOW) == (StartOver(Offset(15)),)


def test_a_log_that_has_records_of_the_leader_is_not_given_up_for_a_batch_that_overlaps() -> None:
    replica = following(start=6, end=16, hw=14, epochs=((0, 6),))
    reply = answer(asked(replica), hw=20, start=15, taken=batches((15, 2, 5)))
    assert on_answered(replica, reply, NOW) == ()


def test_a_leader_log_that_starts_inside_a_batch_is_copied_from_the_batchs_base() -> None:
    replica = following(start=57, end=57, hw=57, epochs=())
    taken = batches((50, 10, 5))
    assert on_answered(replica, answer(asked(replica), hw=60, start=57, taken=taken), NOW) == (
        StartOver(Offset(50)),
    )
    effects = on_log_cut(
        replica,
        start_offset=Offset(50),
        end_offset=Offset(50),
        epochs=(),
        producers=None,
        headers_after=(),
    )
    assert effects == (RememberEpochs(epochs_of((5, 50))), AppendFetched(taken))
    on_appended(replica, Offset(60))
    asks = asked(replica)
    assert (asks.offset, asks.last_fetched_epoch) == (60, 5)
    on_answered(replica, answer(asks, hw=60, start=57), NOW)
    assert replica.high_watermark == 60


@pytest.mark.parametrize("records", [5, 7])
def test_a_first_batch_that_lies_wholly_before_the_log_is_not_taken(records: int) -> None:
    replica = following(start=57, end=57, hw=57, epochs=())
    taken = batches((50, records, 5))
    assert on_answered(replica, answer(asked(replica), taken=taken), NOW) == ()
    assert question(replica, NOW) is None


# --- from follower to leader --------------------------------------------------------------------


def test_a_new_leaders_epoch_begins_after_what_the_disk_is_still_writing() -> None:
    """Those records are of the epoch before: the cache must not claim them for this one."""
    replica = following(end=10, epochs=((1, 0),), epoch=5)
    on_answered(replica, answer(asked(replica), hw=10, taken=batches((10, 2, 5))), NOW)
    become_leader(replica, appointment(epoch=6), NOW)
    assert replica.epochs.entries == [(1, 0), (5, 10), (6, 12)]
    leader_side.on_appended(replica, Offset(12), NOW)
    replica.check()
    fetched(replica, 2, 11)
    fetched(replica, 3, 12)
    assert replica.high_watermark == 11


def test_nobody_leads_with_a_log_that_is_being_cut() -> None:
    replica = following(end=12, epochs=((1, 0), (2, 10)))
    cuts_at(replica, (1, 10))
    with pytest.raises(AssertionError):
        become_leader(replica, appointment(epoch=6), NOW)


def test_a_follower_that_becomes_leader_knows_the_producers_of_what_it_copied() -> None:
    replica = following(end=0, epochs=())
    batch = header(records=2, producer_id=7, producer_epoch=0, base_sequence=0)
    taken = Batches((batch._replace(leader_epoch=LeaderEpoch(5)),), bytes(batch.size_bytes))
    on_answered(replica, answer(asked(replica), taken=taken), NOW)
    on_appended(replica, Offset(2))
    become_leader(replica, appointment(epoch=6), NOW)
    rules = WriteRules(1_000, 2_000, 3_600_000, stamps_time=False)
    again = one_batch(records=2, producer_id=7, producer_epoch=0, base_sequence=0)
    gap = one_batch(records=1, producer_id=7, producer_epoch=0, base_sequence=9)
    for sent, expected in ((again, Admitted), (gap, Refusal)):
        verdict = admit_batch(replica, sent, acks=ACKS_ALL, rules=rules, wall=WallMillis(1_000))
        assert isinstance(verdict, expected)
    assert replica.next_offset == 2
