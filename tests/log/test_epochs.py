"""Which epoch each offset was written in."""

from __future__ import annotations

from cotidal.log.epochs import EpochLine
from cotidal.values import EpochEntry, LeaderEpoch, Offset


def line(*entries: tuple[int, int]) -> EpochLine:
    return EpochLine(EpochEntry(LeaderEpoch(epoch), Offset(start)) for epoch, start in entries)


def test_epoch_of_an_offset_is_that_of_the_last_entry_before_it() -> None:
    epochs = line((1, 5), (4, 9))
    assert [epochs.epoch_at(offset) for offset in (4, 5, 8, 9, 100)] == [-1, 1, 1, 4, 4]
    assert epochs.latest == 4
    assert [epochs.next_start(offset) for offset in (4, 5, 8, 9)] == [5, 9, 9, 1 << 62]


def test_new_entry_evicts_what_contradicts_it() -> None:
    epochs = line((1, 0), (3, 10), (5, 20))
    epochs.assign(LeaderEpoch(4), Offset(15))
    assert epochs.entries == ((1, 0), (3, 10), (4, 15))
    epochs.assign(LeaderEpoch(6), Offset(10))
    assert epochs.entries == ((1, 0), (6, 10))


def test_batch_of_an_older_epoch_takes_back_one_that_wrote_nothing() -> None:
    epochs = line((1, 0), (4, 5), (6, 10))
    epochs.begin(LeaderEpoch(4), Offset(10))
    assert epochs.entries == ((1, 0), (4, 5))
    epochs.begin(LeaderEpoch(5), Offset(12))
    assert epochs.entries == ((1, 0), (4, 5), (5, 12))


def test_truncation_at_the_end_drops_entries_that_begin_there() -> None:
    epochs = line((1, 0), (3, 10))
    epochs.truncate_end(11)
    assert epochs.latest == 3
    epochs.truncate_end(10)
    assert (epochs.entries, epochs.latest) == (((1, 0),), 1)
    epochs.truncate_end(0)
    assert (epochs.entries, epochs.latest) == ((), -1)


def test_truncation_at_the_start_moves_the_entry_it_falls_in() -> None:
    epochs = line((1, 0), (3, 10), (5, 20))
    assert epochs.truncate_start(Offset(15))
    assert epochs.entries == ((3, 15), (5, 20))
    assert not epochs.truncate_start(Offset(15))
    assert not epochs.truncate_start(Offset(3))
    assert epochs.truncate_start(Offset(20))
    assert epochs.entries == ((5, 20),)
