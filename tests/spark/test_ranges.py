from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cotidal.spark.ranges import OffsetRange, limited_ends, shared_tasks, split_ranges
from cotidal.values import ZERO_UUID, LeaderEpoch, Offset, TopicPartition


def range_of(partition: int, begin: int, end: int) -> OffsetRange:
    return OffsetRange("orders", ZERO_UUID, partition, Offset(begin), Offset(end), LeaderEpoch(0))


sizes = st.lists(st.integers(0, 10_000), min_size=1, max_size=6)
limits = st.none() | st.integers(1, 40)


@given(sizes, limits, st.none() | st.integers(1, 5_000))
def test_pieces_cover_each_range_once_and_in_order(
    sizes: list[int], partitions_min: int | None, records_max: int | None
) -> None:
    whole = [range_of(at, 7, 7 + size) for at, size in enumerate(sizes)]
    pieces = split_ranges(whole, partitions_min=partitions_min, records_max=records_max)
    for each in whole:
        of = [piece for piece in pieces if piece.partition == each.partition]
        assert all(piece.size for piece in of)
        edges = [each.begin, *(piece.end for piece in of)]
        assert [piece.begin for piece in of] == edges[:-1]
        assert edges[-1] == each.end or not each.size
    if records_max is not None:
        assert all(piece.size <= records_max for piece in pieces)


def test_a_large_partition_is_cut_and_a_small_one_is_not() -> None:
    pieces = split_ranges(
        [range_of(0, 0, 9_000), range_of(1, 0, 10)], partitions_min=4, records_max=None
    )
    assert [(piece.partition, piece.size) for piece in pieces] == [
        (0, 3000), (0, 3000), (0, 3000), (1, 10),
    ]  # fmt: skip


@given(sizes, st.integers(1, 20_000))
def test_small_ranges_share_a_task_and_no_more_than_are_small(
    sizes: list[int], records_min: int
) -> None:
    ranges = [range_of(at, 7, 7 + size) for at, size in enumerate(sizes) if size]
    tasks = shared_tasks(ranges, records_min=records_min)
    assert [each for task in tasks for each in task] == ranges
    held = [sum(each.size for each in task) for task in tasks]
    for task, size in zip(tasks, held, strict=True):
        assert len(task) == 1 or size <= records_min
    for size, following in zip(held, tasks[1:], strict=False):
        assert size + following[0].size > records_min, "it would have had room there"


@given(sizes, st.integers(1, 5_000))
def test_a_limit_is_kept_and_something_is_always_read(sizes: list[int], most: int) -> None:
    begins = {TopicPartition("orders", at): 100 for at in range(len(sizes))}
    ends = {TopicPartition("orders", at): 100 + size for at, size in enumerate(sizes)}
    limited = limited_ends(begins, ends, most=most)
    taken = {at: end - begins[at] for at, end in limited.items()}
    assert all(0 <= taken[at] <= ends[at] - begins[at] for at in ends)
    assert sum(taken.values()) <= max(most, 0)
    assert sum(taken.values()) > 0 or not sum(sizes)
    if sum(sizes) <= most:
        assert limited == ends


def test_a_limit_is_shared_in_proportion() -> None:
    begins = {TopicPartition("orders", at): 0 for at in range(2)}
    ends = {TopicPartition("orders", 0): 900, TopicPartition("orders", 1): 100}
    assert list(limited_ends(begins, ends, most=100).values()) == [90, 10]
