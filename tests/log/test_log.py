"""Appending, reading, rolling and cutting a log."""

from __future__ import annotations

import pytest

from cotidal.log.contract import LogConfig
from cotidal.log.failure import OutOfRange, WrongTopic
from cotidal.messages.batch import Placed
from cotidal.messages.producers import ProducerSnapshot
from cotidal.values import EpochEntry, LeaderEpoch, Offset, Uuid, WallMillis
from cotidal.wire.batch import read_batches
from tests.log.shelf import (
    NOW,
    SMALL,
    Shelf,
    bases,
    batch,
    everything,
    fill,
    follow,
    headers,
    lead,
    sized_batch,
    stamped,
)

BIG = LogConfig()


def test_new_log_is_empty_at_its_start(shelf: Shelf) -> None:
    log = shelf.open(log_start=17)
    assert (log.start_offset, log.end_offset, log.size_bytes) == (17, 17, 0)
    assert log.read(Offset(17), max_bytes=1000, below=Offset(17)) == b""
    assert log.opened.repaired == ()


def test_leader_stamps_offsets_and_epoch_and_changes_nothing_else(shelf: Shelf) -> None:
    log = shelf.open()
    sent = [batch(3), batch(1), batch(2)]
    appended = lead(log, sent, epoch=7)
    assert appended.end_offset == log.end_offset == 6
    assert everything(log) == stamped(sent, epoch=7)


def test_several_batches_of_one_request_follow_each_other(shelf: Shelf) -> None:
    log = shelf.open()
    data = read_batches(batch(2) + batch(3))
    log.append([Placed(Offset(0), LeaderEpoch(1), data)], NOW)
    assert bases(log) == [0, 2]
    assert log.end_offset == 5


def test_follower_keeps_every_byte_and_the_gaps_of_compaction(shelf: Shelf) -> None:
    log = shelf.open()
    data = batch(2, base_offset=3, epoch=2) + batch(1, base_offset=9, epoch=4)
    assert follow(log, data).end_offset == 10
    assert everything(log) == data
    assert log.epochs == (
        EpochEntry(LeaderEpoch(2), Offset(3)),
        EpochEntry(LeaderEpoch(4), Offset(9)),
    )


def test_append_anywhere_but_at_the_end_is_a_fault(shelf: Shelf) -> None:
    log = shelf.open()
    lead(log, [batch(3)])
    with pytest.raises(AssertionError, match="exactly at the end offset"):
        log.append([Placed(Offset(2), LeaderEpoch(1), read_batches(batch()))], NOW)
    with pytest.raises(AssertionError, match="exactly at the end offset"):
        follow(log, batch(base_offset=2))
    assert log.end_offset == 3


def test_log_append_time_replaces_every_timestamp(shelf: Shelf) -> None:
    log = shelf.open()
    entry = Placed(Offset(0), LeaderEpoch(1), read_batches(batch(3, step=5)))
    log.append([entry], WallMillis(NOW + 99), stamp_time=True)
    (header,) = headers(log)  # and the crc is right, or this would have failed
    assert header.has_log_append_time
    assert header.max_timestamp == NOW + 99


def test_read_in_the_middle_of_a_batch_returns_the_whole_batch(shelf: Shelf) -> None:
    log = shelf.open(BIG)
    lead(log, [batch(5), batch(5)])
    for offset in range(10):
        (first, *_) = read_batches(
            log.read(Offset(offset), max_bytes=9999, below=Offset(10))
        ).headers
        assert first.base_offset == offset // 5 * 5


def test_read_ends_before_the_given_bound_at_a_batch_boundary(shelf: Shelf) -> None:
    log = shelf.open(BIG)
    lead(log, [batch(5), batch(5)])
    for reopened in (False, True):
        for below, ends in ((3, 0), (5, 5), (7, 5), (10, 10)):
            data = read_batches(log.read(Offset(0), max_bytes=9999, below=Offset(below)))
            assert (data.headers[-1].next_offset if data.headers else 0) == ends
        if not reopened:
            log.close()
            log = shelf.open(BIG)


@pytest.mark.parametrize("reopen", [False, True])
def test_read_takes_whole_batches_up_to_its_size(shelf: Shelf, reopen: bool) -> None:
    log = shelf.open(BIG)
    fill(log, 5)
    if reopen:
        log.close()
        log = shelf.open(BIG)
    end = log.end_offset
    for size, count in ((100, 1), (199, 1), (200, 2), (499, 4), (500, 5), (9999, 5)):
        assert len(log.read(Offset(0), max_bytes=size, below=end)) == 100 * count
    assert len(log.read(Offset(0), max_bytes=10, below=end)) == 100
    assert len(log.read(Offset(4), max_bytes=10, below=end)) == 100
    assert log.read(Offset(0), max_bytes=10, below=end, whole_first=False) == b""
    assert log.read(Offset(4), max_bytes=99, below=end, whole_first=False) == b""


def test_read_outside_the_log_is_refused(shelf: Shelf) -> None:
    log = shelf.open(log_start=5)
    fill(log, 2)
    with pytest.raises(OutOfRange, match="orders-0: offset 4 is before the start, 5"):
        log.read(Offset(4), max_bytes=1, below=Offset(7))
    with pytest.raises(OutOfRange, match="orders-0: offset 8 is past the end, 7"):
        log.read(Offset(8), max_bytes=1, below=Offset(8))


def test_one_append_may_fall_in_several_segments(shelf: Shelf) -> None:
    log = shelf.open()
    sent = [sized_batch(300)] * 10
    assert lead(log, sent).rolled
    assert log.segment_bases == (0, 3, 6, 9)
    assert shelf.logs() == [f"{base:020d}.log" for base in (0, 3, 6, 9)]
    assert everything(log) == stamped(sent)


def test_batch_larger_than_a_segment_has_one_of_its_own(shelf: Shelf) -> None:
    log = shelf.open()
    assert not lead(log, [sized_batch(5000)]).rolled
    assert lead(log, [sized_batch(100)]).rolled
    assert log.segment_bases == (0, 1)


def test_segment_rolls_when_a_record_is_segment_ms_younger_than_its_first(shelf: Shelf) -> None:
    log = shelf.open(LogConfig(segment_ms=1000))
    lead(log, [batch(timestamp=NOW)])
    assert not lead(log, [batch(timestamp=NOW + 1000)]).rolled
    assert lead(log, [batch(timestamp=NOW + 1001)]).rolled
    log.close()
    log = shelf.open(LogConfig(segment_ms=1000))
    assert not lead(log, [batch(timestamp=NOW + 2001)]).rolled
    assert lead(log, [batch(timestamp=NOW + 2002)]).rolled


def test_segment_without_times_rolls_by_the_clock(shelf: Shelf) -> None:
    log = shelf.open(LogConfig(segment_ms=1000))
    lead(log, [batch(timestamp=-1)], now=NOW)
    assert not lead(log, [batch(timestamp=-1)], now=NOW + 1000).rolled
    assert lead(log, [batch(timestamp=-1)], now=NOW + 1001).rolled


def test_age_of_an_empty_segment_does_not_count(shelf: Shelf) -> None:
    log = shelf.open(LogConfig(segment_ms=1000))
    assert not lead(log, [batch(timestamp=-1), batch(timestamp=-1)], now=NOW + 99_999).rolled


def test_jitter_makes_segments_roll_earlier_and_never_differently(shelf: Shelf) -> None:
    log = shelf.open(LogConfig(segment_ms=1000, segment_jitter_ms=900))
    lead(log, [batch(timestamp=NOW)])
    ages = [age for age in range(1001) if not lead(log, [batch(timestamp=NOW + age)]).rolled]
    assert 100 <= len(ages) < 1001


def test_segment_rolls_when_its_index_is_full(shelf: Shelf) -> None:
    log = shelf.open(LogConfig(index_interval_bytes=1, segment_index_bytes=12 * 4))
    for number in range(9):
        lead(log, [batch(timestamp=NOW + number)])
    # three time entries fill an index of four: one place is kept for the last
    assert log.segment_bases == (0, 4, 8)


def test_segment_rolls_when_an_offset_does_not_fit_31_bits(shelf: Shelf) -> None:
    log = shelf.open()
    follow(log, batch(base_offset=0))
    follow(log, batch(base_offset=2**31 - 1))
    assert log.segment_bases == (0,)
    follow(log, batch(base_offset=2**31))
    assert log.segment_bases == (0, 2**31)
    follow(log, batch(base_offset=2**33))
    assert log.segment_bases[-1] == 2**33 - (2**31 - 1)
    assert bases(log) == [0, 2**31 - 1, 2**31, 2**33]


def test_closed_log_opens_with_the_same_content_and_goes_on(shelf: Shelf) -> None:
    log = shelf.open()
    fill(log, 25)
    before = everything(log)
    assert log.close() == 25
    shelf.restart()
    log = shelf.open(recovery_point=25)
    assert log.opened.repaired == ()
    assert (log.opened.start_offset, log.opened.end_offset) == (0, 25)
    assert everything(log) == before
    fill(log, 1)
    assert bases(log) == list(range(26))


def test_reader_far_behind_reads_the_same_as_one_who_keeps_up(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cotidal.limits.LOG_RECENT_BATCHES", 3)
    log = shelf.open(LogConfig(segment_bytes=5000, index_interval_bytes=250))
    fill(log, 120)
    assert bases(log) == list(range(120))
    for offset in range(120):
        data = log.read(Offset(offset), max_bytes=250, below=Offset(120))
        assert read_batches(data).headers[0].base_offset == offset


def test_offset_in_a_gap_reads_the_next_batch(shelf: Shelf) -> None:
    log = shelf.open(SMALL._replace(compacted=True))
    for base in (0, 10, 20, 30, 40):
        follow(log, sized_batch(300, base_offset=base))
    log.close()
    log = shelf.open(SMALL._replace(compacted=True))
    for offset, base in ((5, 10), (15, 20), (25, 30), (31, 40)):
        data = read_batches(log.read(Offset(offset), max_bytes=300, below=Offset(41)))
        assert data.headers[0].base_offset == base


def test_other_topic_id_is_refused(shelf: Shelf) -> None:
    shelf.open().close()
    with pytest.raises(WrongTopic, match="orders-0: this is the log of topic id AAEC"):
        shelf.open(topic_id=Uuid(bytes(16)))


def test_changed_settings_take_effect_at_once(shelf: Shelf) -> None:
    log = shelf.open(BIG)
    fill(log, 20)
    assert len(log.segment_bases) == 1
    log.configure(SMALL)
    fill(log, 11)
    assert log.segment_bases == (0, 20, 30)


# cutting


@pytest.mark.parametrize("target", range(13))
def test_truncation_leaves_exactly_what_is_below(shelf: Shelf, target: int) -> None:
    log = shelf.open(SMALL._replace(segment_bytes=400))
    fill(log, 12)
    before = everything(log)
    log.flush()
    opened = log.truncate_to(Offset(target))
    assert opened.end_offset == log.end_offset == log.recovery_point == target
    assert everything(log) == before[: 100 * target]
    fill(log, 3, epoch=2)
    log.close()
    log = shelf.open(SMALL)
    assert bases(log) == list(range(target + 3))
    assert log.epochs[-1] == EpochEntry(LeaderEpoch(2), Offset(target))


def test_truncation_inside_a_batch_drops_the_whole_batch(shelf: Shelf) -> None:
    log = shelf.open()
    lead(log, [batch(5), batch(5)])
    assert log.truncate_to(Offset(7)).end_offset == 5


def test_truncation_drops_epochs_even_when_no_byte_is_cut(shelf: Shelf) -> None:
    log = shelf.open()
    fill(log, 3)
    log.save_epochs([EpochEntry(LeaderEpoch(1), Offset(0)), EpochEntry(LeaderEpoch(4), Offset(3))])
    assert log.truncate_to(Offset(3)).epochs == (EpochEntry(LeaderEpoch(1), Offset(0)),)
    assert log.end_offset == 3


def test_truncation_forgets_later_producer_snapshots(shelf: Shelf) -> None:
    log = shelf.open()
    for sequence in range(10):
        lead(log, [batch(producer_id=8, sequence=sequence)])
        if sequence in (3, 7):
            log.save_producers(ProducerSnapshot(log.end_offset, ()))
    opened = log.truncate_to(Offset(6))
    assert opened.producer_snapshot == ProducerSnapshot(Offset(4), ())
    assert [header.base_offset for header in opened.headers_after] == [4, 5]


def test_log_can_begin_anew_elsewhere(shelf: Shelf) -> None:
    log = shelf.open()
    fill(log, 25)
    opened = log.truncate_fully_and_start_at(Offset(1000))
    assert (opened.start_offset, opened.end_offset, opened.epochs) == (1000, 1000, ())
    fill(log, 1)
    log.close()
    assert shelf.logs() == [f"{1000:020d}.log"]
    assert bases(shelf.open()) == [1000]


def test_truncation_below_the_first_segment_begins_anew_there(shelf: Shelf) -> None:
    log = shelf.open(log_start=50)
    fill(log, 5)
    opened = log.truncate_to(Offset(20))
    assert (opened.start_offset, opened.end_offset) == (20, 20)


def test_start_moves_into_a_segment_and_older_ones_go(shelf: Shelf) -> None:
    log = shelf.open()
    fill(log, 25)
    log.advance_start(Offset(14), NOW)
    assert log.start_offset == 14
    assert log.segment_bases == (10, 20)
    assert bases(log) == list(range(14, 25))
    assert log.epochs == (EpochEntry(LeaderEpoch(1), Offset(14)),)
    log.close()
    assert shelf.open(log_start=14).start_offset == 14


def test_start_past_the_end_on_disk_begins_anew_there(shelf: Shelf) -> None:
    log = shelf.open()
    fill(log, 5)
    log.close()
    log = shelf.open(log_start=9)
    assert (log.start_offset, log.end_offset) == (9, 9)
    assert log.opened.repaired == ("orders-0: ended at 5, begun anew at its start 9",)


def test_flush_moves_the_recovery_point_and_a_cut_takes_it_back(shelf: Shelf) -> None:
    log = shelf.open()
    fill(log, 15)
    assert log.recovery_point == 0
    assert log.flush() == log.recovery_point == 15
    flush = log.begin_flush()
    log.truncate_to(Offset(4))
    fill(log, 20)
    flush.run()
    assert log.end_flush(flush) == 4, "what was written after the cut was not synced"


def test_flush_promises_only_what_was_there_when_it_began(shelf: Shelf) -> None:
    log = shelf.open()
    fill(log, 15)
    flush = log.begin_flush()
    fill(log, 1)
    flush.run()
    assert log.end_flush(flush) == 15
    assert log.begin_flush().files, "the last batch is still to be synced"


def test_flush_can_run_while_its_files_are_removed(shelf: Shelf) -> None:
    log = shelf.open()
    fill(log, 25)
    flush = log.begin_flush()
    log.advance_start(Offset(20), NOW)
    flush.run()
    assert log.end_flush(flush) == 25
