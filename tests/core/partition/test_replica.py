"""What a log that was found says about the replica, and what deletion does to it."""

from __future__ import annotations

import pytest

from cotidal.core.partition.effects import RememberProducers
from cotidal.core.partition.replica import on_rolled, on_start_moved
from cotidal.values import Offset
from headers import header
from replicas import leading, opened


def test_an_epoch_at_the_very_end_of_the_log_has_no_record_and_is_not_believed() -> None:
    assert opened(end=10, epochs=((1, 0), (2, 10))).epochs.entries == [(1, 0)]


def test_deleted_records_take_their_epochs_along() -> None:
    replica = opened(end=10, hw=8, epochs=((1, 0), (2, 4)))
    assert on_start_moved(replica, Offset(6))
    assert (replica.start_offset, replica.epochs.entries) == (6, [(2, 6)])
    assert not on_start_moved(replica, Offset(5))
    assert replica.start_offset == 6


def test_a_roll_keeps_what_is_known_of_producers() -> None:
    replica = opened(end=1)
    assert on_rolled(replica) == ()
    replica.producers.replay([header(producer_id=7, producer_epoch=0, base_sequence=0)])
    (effect,) = on_rolled(replica)
    assert isinstance(effect, RememberProducers)
    assert (effect.snapshot.offset, len(effect.snapshot.entries)) == (1, 1)


def test_a_high_watermark_outside_the_log_is_a_fault() -> None:
    replica = leading(end=10)
    replica.high_watermark = Offset(11)
    with pytest.raises(AssertionError, match="high watermark"):
        replica.check()


def test_an_epoch_that_begins_after_the_log_is_a_fault() -> None:
    replica = opened(end=10)
    replica.epochs.entries = leading(end=12).epochs.entries
    with pytest.raises(AssertionError, match="ascend"):
        replica.check()
