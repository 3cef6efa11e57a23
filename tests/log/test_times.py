"""Finding records by their time."""

from __future__ import annotations

import random

import pytest

from cotidal.log.contract import LogConfig, TimedOffset
from cotidal.log.log import Log
from cotidal.messages.batch import Placed
from cotidal.values import LeaderEpoch, Offset, WallMillis
from cotidal.wire.batch import read_batches
from cotidal.wire.compression import Compression
from cotidal.wire.records import Record, build_batch
from tests.log.shelf import NOW, Shelf, batch, lead

CONFIG = LogConfig(segment_bytes=1500, index_interval_bytes=200)


def find(log: Log, timestamp: int, below: int | None = None) -> int | None:
    end = log.end_offset if below is None else Offset(below)
    found = log.offset_for_time(WallMillis(timestamp), below=end)
    return None if found is None else found.offset


def test_empty_log_has_no_times(shelf: Shelf) -> None:
    log = shelf.open()
    assert find(log, 0) is None
    assert log.max_timestamp(Offset(0)) is None


@pytest.mark.parametrize("reopen", ["", "clean", "crashed"])
def test_first_record_at_least_as_young_is_found(shelf: Shelf, reopen: str) -> None:
    """Against a plain search, with times that also go back."""
    chance = random.Random(7)
    log = shelf.open(CONFIG)
    times: list[int] = []
    for _ in range(60):
        stamps = [NOW + len(times) * 10 + chance.randint(-80, 80) for _ in range(3)]
        times += stamps
        lead(log, [build_batch([Record(None, b"v", timestamp=each) for each in stamps])])
    if reopen:
        if reopen == "clean":
            log.close()
        shelf.restart()
        log = shelf.open(CONFIG, clean=reopen == "clean")
    assert len(log.segment_bases) > 3
    for timestamp in range(NOW - 100, NOW + 1900, 7):
        expected = next((o for o, each in enumerate(times) if each >= timestamp), None)
        assert find(log, timestamp) == expected
    for below in (30, 100, 180):
        youngest = max(times[:below])
        found = log.max_timestamp(Offset(below))
        assert found == TimedOffset(
            Offset(times.index(youngest)), WallMillis(youngest), LeaderEpoch(1)
        )


def test_nothing_outside_the_bounds_is_found(shelf: Shelf) -> None:
    log = shelf.open(CONFIG)
    for number in range(10):
        lead(log, [batch(2, timestamp=NOW + number * 10, step=5)])
    assert find(log, NOW + 55, below=11) is None
    assert find(log, NOW + 50, below=11) == 10
    log.advance_start(Offset(7), NOW)
    assert find(log, 0) == 7


def test_compressed_batch_is_searched_record_by_record(shelf: Shelf) -> None:
    log = shelf.open(CONFIG)
    records = [Record(None, b"v", timestamp=NOW + number) for number in range(10)]
    lead(log, [build_batch(records, compression=Compression.ZSTD)])
    assert find(log, NOW + 4) == 4


def test_batch_with_append_time_is_found_as_a_whole(shelf: Shelf) -> None:
    log = shelf.open(CONFIG)
    entry = Placed(Offset(0), LeaderEpoch(3), read_batches(batch(5)))
    log.append([entry], WallMillis(NOW + 9), stamp_time=True)
    found = log.offset_for_time(WallMillis(NOW + 5), below=Offset(5))
    assert found == TimedOffset(Offset(0), WallMillis(NOW + 9), LeaderEpoch(3))
    assert log.max_timestamp(Offset(5)) == found


def test_truncation_forgets_the_times_it_cut(shelf: Shelf) -> None:
    log = shelf.open(CONFIG)
    for number in range(10):
        lead(log, [batch(timestamp=NOW + number * 10)])
    log.truncate_to(Offset(5))
    assert find(log, NOW + 41) is None
    found = log.max_timestamp(Offset(5))
    assert found is not None
    assert found.offset == 4
    lead(log, [batch(timestamp=NOW + 41)])
    assert find(log, NOW + 41) == 5
    log.configure(CONFIG._replace(retention_ms=1000))
    log.retain(WallMillis(NOW + 1042), below=Offset(6))
    assert log.start_offset == 6, "its youngest record is the one at 5"
