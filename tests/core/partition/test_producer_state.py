"""Idempotence: once per producer, epoch and sequence."""

from __future__ import annotations

import pytest

from cotidal.core.partition.producer_state import SEQUENCE_MAX, Producers, SeenBatch
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.batch import CONTROL_BIT
from cotidal.values import Offset, WallMillis
from headers import header


def producers_after(*batches: tuple[int, int], epoch: int = 0) -> Producers:
    """(base sequence, records) of producer 7, one after the other from offset 0 on."""
    producers = Producers()
    offset = 0
    for base_sequence, records in batches:
        batch = header(
            records=records, producer_id=7, producer_epoch=epoch, base_sequence=base_sequence
        )
        assert producers.check(batch) is None
        producers.remember(batch, base_offset=Offset(offset))
        offset += records
    return producers


def test_a_producer_that_is_not_known_may_begin_anywhere() -> None:
    batch = header(producer_id=7, producer_epoch=3, base_sequence=500)
    assert Producers().check(batch) is None


def test_the_next_sequence_is_taken() -> None:
    producers = producers_after((0, 3))
    assert producers.check(header(producer_id=7, producer_epoch=0, base_sequence=3)) is None


@pytest.mark.parametrize("sequence", [4, 100, 1])
def test_a_gap_is_refused(sequence: int) -> None:
    verdict = producers_after((0, 3)).check(
        header(producer_id=7, producer_epoch=0, base_sequence=sequence)
    )
    assert isinstance(verdict, Refusal)
    assert verdict.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert "3 was expected" in verdict.text


def test_each_of_the_last_five_batches_is_known_as_a_duplicate() -> None:
    producers = producers_after(*((sequence, 1) for sequence in range(6)))
    for sequence in range(1, 6):
        seen = producers.check(header(producer_id=7, producer_epoch=0, base_sequence=sequence))
        assert isinstance(seen, SeenBatch)
        assert seen.base_offset == sequence
    forgotten = producers.check(header(producer_id=7, producer_epoch=0, base_sequence=0))
    assert isinstance(forgotten, Refusal)


def test_a_batch_of_another_length_is_not_a_duplicate() -> None:
    producers = producers_after((0, 3), (3, 1))
    verdict = producers.check(header(records=2, producer_id=7, producer_epoch=0, base_sequence=0))
    assert isinstance(verdict, Refusal)


def test_an_older_epoch_is_fenced() -> None:
    producers = producers_after((0, 1), epoch=2)
    verdict = producers.check(header(producer_id=7, producer_epoch=1, base_sequence=1))
    assert isinstance(verdict, Refusal)
    assert verdict.error is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_new_epoch_begins_with_sequence_zero() -> None:
    producers = producers_after((0, 5))
    assert producers.check(header(producer_id=7, producer_epoch=1, base_sequence=0)) is None
    verdict = producers.check(header(producer_id=7, producer_epoch=1, base_sequence=5))
    assert isinstance(verdict, Refusal)
    assert verdict.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_wrap_to_zero() -> None:
    producers = producers_after((SEQUENCE_MAX, 1))
    assert producers.check(header(producer_id=7, producer_epoch=0, base_sequence=0)) is None


def test_a_snapshot_keeps_the_last_batch_of_each_producer() -> None:
    before = producers_after((0, 3), (3, 2))
    after = Producers()
    after.load(before.snapshot(offset=Offset(5)))
    seen = after.check(header(records=2, producer_id=7, producer_epoch=0, base_sequence=3))
    assert isinstance(seen, SeenBatch)
    assert (seen.base_offset, seen.last_offset) == (3, 4)
    assert after.check(header(producer_id=7, producer_epoch=0, base_sequence=5)) is None


def test_what_the_log_holds_before_a_snapshot_fills_the_window_of_each_producer() -> None:
    written = [
        header(base_offset=at, producer_id=7, producer_epoch=0, base_sequence=at) for at in range(7)
    ]
    others = [
        header(base_offset=7, producer_id=8, producer_epoch=0, base_sequence=0),
        header(base_offset=8, producer_id=9, producer_epoch=0, base_sequence=0),
    ]
    before = Producers()
    before.replay([*written, others[0]])
    before.replay([header(base_offset=9, producer_id=8, producer_epoch=1, base_sequence=0)])
    after = Producers()
    snapshot = before.snapshot(offset=Offset(10))
    after.load(snapshot._replace(before=(*written, *others)))
    for at in range(2, 7):
        seen = after.check(written[at])
        assert isinstance(seen, SeenBatch)
        assert seen.base_offset == at
    assert isinstance(after.check(written[1]), Refusal)
    assert isinstance(after.check(others[0]), Refusal)  # of an epoch that is over
    assert after.check(others[1]) is None  # its producer had been forgotten
    assert after.snapshot(offset=Offset(10)) == snapshot


def test_what_an_earlier_epoch_wrote_before_a_snapshot_is_no_duplicate_of_a_later_one() -> None:
    old = [
        header(base_offset=at, producer_id=7, producer_epoch=0, base_sequence=at) for at in range(4)
    ]
    new = header(base_offset=4, producer_id=7, producer_epoch=1, base_sequence=0)
    known = Producers()
    known.replay([*old, new])
    after = Producers()
    after.load(known.snapshot(offset=Offset(5))._replace(before=(*old, new)))
    assert isinstance(after.check(new), SeenBatch)
    ahead = header(base_offset=5, producer_id=7, producer_epoch=1, base_sequence=3)
    assert isinstance(after.check(ahead), Refusal)  # not "written already": it never was


def test_a_snapshot_that_lacks_the_last_batches_says_which_is_the_last() -> None:
    batches = [
        header(base_offset=at, producer_id=7, producer_epoch=0, base_sequence=at) for at in range(4)
    ]
    known = Producers()
    known.replay(batches[:2])
    after = Producers()
    after.load(known.snapshot(offset=Offset(2))._replace(before=tuple(batches)))
    assert after.check(batches[2]) is None


def test_replay_of_the_log_gives_the_same_state() -> None:
    written = producers_after((0, 3), (3, 2))
    replayed = Producers()
    replayed.replay(
        [
            header(records=3, base_offset=0, producer_id=7, producer_epoch=0, base_sequence=0),
            header(records=1, base_offset=3),
            header(records=2, base_offset=3, producer_id=7, producer_epoch=0, base_sequence=3),
        ]
    )
    assert replayed.snapshot(offset=Offset(5)) == written.snapshot(offset=Offset(5))


def test_idle_producers_are_forgotten() -> None:
    producers = producers_after((0, 1))
    producers.forget_before(WallMillis(1_000))
    assert len(producers) == 1
    producers.forget_before(WallMillis(1_001))
    assert len(producers) == 0


def test_a_producer_known_by_a_marker_alone_begins_its_epoch_with_sequence_zero() -> None:
    producers = Producers()
    producers.replay([header(attributes=CONTROL_BIT, producer_id=7, producer_epoch=2)])
    assert producers.check(header(producer_id=7, producer_epoch=2, base_sequence=0)) is None
    verdict = producers.check(header(producer_id=7, producer_epoch=2, base_sequence=4))
    assert isinstance(verdict, Refusal)
    assert verdict.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_marker_does_not_forget_the_batches_of_its_epoch() -> None:
    producers = producers_after((0, 3), epoch=2)
    producers.replay([header(attributes=CONTROL_BIT, producer_id=7, producer_epoch=2)])
    assert producers.check(header(producer_id=7, producer_epoch=2, base_sequence=3)) is None


def test_a_follower_takes_what_a_leader_would_refuse() -> None:
    """It copies: what its leader wrote is in the log, gap or not."""
    producers = producers_after((0, 1))
    late = header(producer_id=7, producer_epoch=0, base_sequence=9, base_offset=5)
    assert isinstance(producers.check(late), Refusal)
    producers.replay([late])
    assert producers.check(header(producer_id=7, producer_epoch=0, base_sequence=10)) is None


def test_the_very_first_producer_id_is_remembered_from_the_log() -> None:
    producers = Producers()
    producers.replay([header(producer_id=0, producer_epoch=0, base_sequence=0)])
    assert len(producers) == 1


def test_a_snapshot_tells_when_a_producer_last_wrote_and_that_one_never_did() -> None:
    producers = producers_after((0, 1))
    producers.replay([header(attributes=CONTROL_BIT, producer_id=8, producer_epoch=2)])
    wrote, never = producers.snapshot(offset=Offset(2)).entries
    assert (wrote.timestamp, never.timestamp) == (1_000, -1)
