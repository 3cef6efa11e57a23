"""What is let go of, and when its bytes are given back."""

from __future__ import annotations

from cotidal.log.contract import LogConfig
from cotidal.log.retention import SegmentFacts, expired_segments
from cotidal.values import EpochEntry, LeaderEpoch, Offset, WallMillis
from tests.log.shelf import NOW, Shelf, bases, batch, fill, lead

AGES = LogConfig(segment_bytes=300, retention_ms=1000, file_delete_delay_ms=60_000)


def facts(*sizes: int) -> list[SegmentFacts]:
    """Segments of ten offsets, a minute apart; the last one is active."""
    return [
        SegmentFacts(number * 10, number * 10 + 10, size, number * 60_000)
        for number, size in enumerate(sizes)
    ]


def expired(
    segments: list[SegmentFacts],
    *,
    start: int = 0,
    below: int = 1000,
    now: int = 200_000,
    ms: int = -1,
    size: int = -1,
) -> int:
    return expired_segments(
        segments,
        start_offset=start,
        below=below,
        now_wall=now,
        retention_ms=ms,
        retention_bytes=size,
    ).segments


def test_nothing_goes_without_limits() -> None:
    assert expired(facts(100, 100, 100)) == 0


def test_segments_go_when_their_youngest_record_is_too_old() -> None:
    segments = facts(100, 100, 100, 100)
    assert expired(segments, ms=200_000) == 0
    assert expired(segments, ms=199_999) == 1
    assert expired(segments, ms=139_999) == 2
    assert expired(segments, ms=0) == 4, "the active one too"


def test_empty_active_segment_stays_whatever_its_age() -> None:
    assert expired(facts(100, 100, 0), ms=0) == 2


def test_segments_go_while_the_rest_is_large_enough() -> None:
    segments = facts(100, 100, 100, 50)
    assert expired(segments, size=251) == 0
    assert expired(segments, size=250) == 1
    assert expired(segments, size=149) == 2
    assert expired(segments, size=0) == 3, "never the active one"


def test_nothing_past_the_high_watermark_goes() -> None:
    segments = facts(100, 100, 100)
    assert expired(segments, ms=0, below=19) == 1
    assert expired(segments, ms=0, below=20) == 2


def test_segments_before_the_start_offset_go() -> None:
    assert expired(facts(100, 100, 100), start=19) == 1
    assert expired(facts(100, 100, 100), start=20) == 2


def test_young_segment_keeps_the_older_ones_after_it() -> None:
    segments = facts(100, 100, 100)
    segments[0] = segments[0]._replace(youngest=200_000)
    assert expired(segments, ms=1000) == 0


def test_removed_segments_are_renamed_first_and_unlinked_later(shelf: Shelf) -> None:
    log = shelf.open(AGES)
    fill(log, 10)
    retained = log.retain(WallMillis(NOW + 1001), below=Offset(6))
    assert retained.start_offset == log.start_offset == 6
    assert len(retained.removed) == 2
    assert retained.removed[0] == (
        f"orders-0: removed segment {0:020d} (offsets 0 to 2): "
        "its youngest record is 1001 ms old, retention.ms is 1000"
    )
    assert bases(log) == list(range(6, 10))
    assert f"{0:020d}.log.deleted" in shelf.names()
    log.retain(WallMillis(NOW + 61_000), below=Offset(6))
    assert f"{0:020d}.log.deleted" in shelf.names()
    log.retain(WallMillis(NOW + 61_001), below=Offset(6))
    assert not [name for name in shelf.names() if "deleted" in name]


def test_expired_active_segment_is_rolled_and_goes(shelf: Shelf) -> None:
    log = shelf.open(AGES)
    fill(log, 10)
    log.retain(WallMillis(NOW + 5000), below=Offset(10))
    assert (log.start_offset, log.end_offset, log.segment_bases) == (10, 10, (10,))
    fill(log, 1)
    assert bases(log) == [10]
    assert log.epochs == (EpochEntry(LeaderEpoch(1), Offset(10)),)


def test_records_without_time_age_from_when_their_segment_was_made(shelf: Shelf) -> None:
    log = shelf.open(AGES)
    lead(log, [batch(timestamp=-1)])
    assert log.retain(WallMillis(NOW + 1000), below=Offset(1)).removed == ()
    assert log.retain(WallMillis(NOW + 1001), below=Offset(1)).start_offset == 1


def test_removal_survives_reopening(shelf: Shelf) -> None:
    log = shelf.open(AGES)
    fill(log, 10)
    log.retain(WallMillis(NOW + 1001), below=Offset(6))
    log.close()
    assert not [name for name in shelf.names() if "deleted" in name]
    log = shelf.open(AGES)
    assert (log.start_offset, log.end_offset) == (6, 10)
