"""The epoch cache: KIP-101's and KIP-279's rules."""

from __future__ import annotations

import pytest

from cotidal.core.partition.epochs import UNDEFINED, EpochCache, EpochEnd
from cotidal.values import EpochEntry, LeaderEpoch, Offset
from replicas import epochs_of, opened


def cache(*entries: tuple[int, int]) -> EpochCache:
    return EpochCache(tuple(EpochEntry(LeaderEpoch(e), Offset(o)) for e, o in entries))


def test_an_epoch_ends_where_the_next_one_begins() -> None:
    assert cache((1, 0), (3, 10)).end_of(LeaderEpoch(1), log_end=Offset(20)) == (1, 10)


def test_the_latest_epoch_ends_at_the_end_of_the_log() -> None:
    assert cache((1, 0), (3, 10)).end_of(LeaderEpoch(3), log_end=Offset(20)) == (3, 20)


def test_an_epoch_between_two_known_ones_is_answered_with_the_lower() -> None:
    assert cache((1, 0), (4, 10)).end_of(LeaderEpoch(3), log_end=Offset(12)) == (1, 10)


def test_an_epoch_below_all_ended_where_the_first_begins() -> None:
    assert cache((5, 7)).end_of(LeaderEpoch(2), log_end=Offset(9)) == EpochEnd(
        LeaderEpoch(2), Offset(7)
    )


@pytest.mark.parametrize("entries", [(), ((1, 0), (2, 5))])
def test_an_epoch_above_all_is_undefined(entries: tuple[tuple[int, int], ...]) -> None:
    assert cache(*entries).end_of(LeaderEpoch(3), log_end=Offset(9)) == UNDEFINED


def test_a_new_entry_evicts_what_contradicts_it() -> None:
    epochs = cache((1, 0), (2, 5), (3, 9))
    assert epochs.assign(LeaderEpoch(4), start_offset=Offset(5))
    assert epochs.entries == [(1, 0), (4, 5)]


def test_an_epoch_without_records_gives_way_to_the_next_one_at_its_offset() -> None:
    epochs = cache((1, 0))
    epochs.assign(LeaderEpoch(2), start_offset=Offset(5))
    epochs.assign(LeaderEpoch(3), start_offset=Offset(5))
    assert epochs.entries == [(1, 0), (3, 5)]


def test_the_same_epoch_keeps_its_first_start() -> None:
    epochs = cache((1, 0))
    assert not epochs.assign(LeaderEpoch(1), start_offset=Offset(8))
    assert epochs.entries == [(1, 0)]


def test_a_cut_drops_entries_that_begin_at_or_after_it() -> None:
    epochs = cache((1, 0), (2, 5), (3, 9))
    assert epochs.cut_from(Offset(5))
    assert epochs.entries == [(1, 0)]


def test_the_epoch_in_force_at_the_new_start_begins_there() -> None:
    epochs = cache((1, 0), (2, 5), (3, 9))
    assert epochs.cut_below(Offset(7))
    assert epochs.entries == [(2, 7), (3, 9)]
    assert not epochs.cut_below(Offset(7))


def test_each_offset_belongs_to_one_epoch() -> None:
    epochs = cache((1, 3), (2, 5))
    assert [epochs.epoch_at(Offset(o)) for o in (2, 3, 4, 5, 99)] == [-1, 1, 1, 2, 2]


def test_entries_that_do_not_ascend_are_a_fault() -> None:
    with pytest.raises(AssertionError, match="ascend"):
        cache((2, 0), (1, 5))


def test_epochs_below_the_start_of_an_opened_log_are_forgotten() -> None:
    """A crash may come between moving the start and saving the epochs."""
    replica = opened(start=9, end=12, epochs=((0, 0), (2, 8), (4, 11)))
    assert replica.epochs.entries == list(epochs_of((2, 9), (4, 11)))


def test_a_log_of_which_everything_was_deleted_keeps_its_last_epoch() -> None:
    assert opened(start=9, end=9, epochs=((0, 0), (2, 8))).epochs.entries == list(epochs_of((2, 9)))
