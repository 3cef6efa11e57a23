"""When a compacted log is worth cleaning, up to where, and in what groups."""

from __future__ import annotations

import tracemalloc

from cotidal.log.compaction import Cleanable, CompactionRules, cleanable, group_by_size
from cotidal.log.key_map import KEY_BYTES, KeyMap, capacity
from cotidal.log.retention import SegmentFacts

NOW = 1_000_000
RULES = CompactionRules()


def segments(*sizes: int, young: int = 0) -> list[SegmentFacts]:
    """Ten offsets each, the active one last; ``young``: how many of the last are of just now."""
    count = len(sizes)
    return [
        SegmentFacts(
            10 * number,
            10 * number + 10,
            size,
            NOW if number >= count - young else 500_000,
            NOW if number >= count - young else 400_000,
        )
        for number, size in enumerate(sizes)
    ]


def decide(
    facts: list[SegmentFacts],
    *,
    cleaned_to: int = 0,
    start: int = 0,
    below: int = 1 << 40,
    rules: CompactionRules = RULES,
) -> Cleanable | None:
    return cleanable(
        facts, cleaned_to=cleaned_to, start_offset=start, below=below, now_wall=NOW, rules=rules
    )


def test_active_segment_is_never_cleaned() -> None:
    found = decide(segments(100, 100, 100))
    assert found == Cleanable(2, 0, 20, 1.0, overdue=False)
    assert decide(segments(100)) is None


def test_dirty_part_must_be_more_than_its_share() -> None:
    facts = segments(100, 100, 100)
    assert decide(facts, cleaned_to=10) is None  # half is not more than half
    less = RULES._replace(min_dirty_ratio=0.49)
    found = decide(facts, cleaned_to=10, rules=less)
    assert found == Cleanable(2, 10, 20, 0.5, overdue=False)


def test_segment_that_reaches_past_the_high_watermark_is_not_cleaned() -> None:
    found = decide(segments(100, 100, 100), below=19)
    assert found is not None
    assert (found.segments, found.end_offset) == (1, 10)
    assert decide(segments(100, 100), below=9) is None


def test_young_segment_waits_for_the_compaction_lag() -> None:
    rules = RULES._replace(min_lag_ms=1000)
    found = decide(segments(100, 100, 100, young=2), rules=rules)
    assert found is not None
    assert found.segments == 1


def test_young_segment_that_is_clean_already_waits_for_nothing() -> None:
    """A long log is cleaned by segments; new ones inherit the times of old records."""
    rules = RULES._replace(min_lag_ms=1000, min_dirty_ratio=0.1)
    facts = [SegmentFacts(0, 10, 100, NOW, NOW), *segments(0, 100, 100)[1:]]
    found = decide(facts, cleaned_to=10, rules=rules)
    assert found is not None
    assert found.segments == 2


def test_record_that_waited_too_long_makes_a_log_overdue() -> None:
    facts = segments(1000, 10, 100)
    assert decide(facts, cleaned_to=10) is None
    found = decide(facts, cleaned_to=10, rules=RULES._replace(max_lag_ms=599_999))
    assert found is not None
    assert found.overdue
    assert decide(facts, cleaned_to=10, rules=RULES._replace(max_lag_ms=600_000)) is None


def test_clean_point_outside_the_log_makes_all_of_it_dirty() -> None:
    facts = segments(100, 100, 100)
    past = decide(facts, cleaned_to=31)
    assert past is not None
    assert past.first_dirty == 0
    before = decide(facts, cleaned_to=2, start=5)
    assert before is not None
    assert before.first_dirty == 5


def test_log_without_a_dirty_byte_is_clean() -> None:
    assert decide(segments(100, 100, 100), cleaned_to=20) is None
    assert decide(segments(0, 0)) is None


def test_groups_hold_neighbours_up_to_the_size_of_a_segment() -> None:
    facts = segments(40, 60, 50, 200, 10)
    groups = group_by_size(facts, bytes_max=100, offsets_max=1000)
    assert [[each.base_offset for each in group] for group in groups] == [[0, 10], [20], [30], [40]]


def test_groups_hold_no_more_offsets_than_an_index_can() -> None:
    groups = group_by_size(segments(1, 1, 1), bytes_max=100, offsets_max=20)
    assert [len(group) for group in groups] == [2, 1]


def test_map_knows_the_newest_offset_of_long_and_short_keys() -> None:
    keys = KeyMap(10)
    for offset, key in enumerate((b"", b"a", b"x" * 16, b"y" * 500, b"a")):
        keys.note(key, offset)
    assert [keys.newest(key) for key in (b"", b"a", b"x" * 16, b"y" * 500)] == [0, 4, 2, 3]
    assert keys.newest(b"never") == -1
    assert not keys.is_full


def test_map_keeps_to_the_memory_that_it_is_given() -> None:
    """At the worst moment of its growth, when its table has just doubled."""
    worst = 0.0
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        keys = KeyMap(capacity(1 << 30))
        for number in range(90_000):
            keys.note(b"some key of some length %d" % number, 1 << 40 | number)
            if number > 20_000:
                worst = max(worst, (tracemalloc.get_traced_memory()[0] - before) / len(keys))
    finally:
        tracemalloc.stop()
    assert worst <= KEY_BYTES
    assert worst > KEY_BYTES / 2  # nor does it promise far less than it could


def test_tiny_buffer_still_holds_a_key() -> None:
    assert capacity(1) == 1
