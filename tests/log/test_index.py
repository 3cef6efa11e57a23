"""Offset and time index: Kafka's bytes, look-ups, cuts, preallocated and torn files."""

from __future__ import annotations

import pytest

from cotidal.log.index import OffsetIndex, TimeIndex
from cotidal.log.memory import MemoryFiles
from cotidal.values import Offset


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


def offsets(files: MemoryFiles, count: int = 200) -> OffsetIndex:
    """Entries at 1005, 1015, … for positions 100, 200, …"""
    index = OffsetIndex(files, "/i", Offset(1000))
    for number in range(count):
        index.append(1005 + number * 10, 100 + number * 100)
    return index


def test_entries_have_kafkas_bytes(files: MemoryFiles) -> None:
    index = offsets(files, 2)
    index.entries.write_pending()
    assert files.read("/i").hex() == "00000005000000640000000f000000c8"
    times = TimeIndex(files, "/t", Offset(1000))
    times.append_if_younger(0x123456789A, 1007)
    times.entries.write_pending()
    assert files.read("/t").hex() == "000000123456789a00000007"


def test_floor_is_the_last_entry_at_or_below(files: MemoryFiles) -> None:
    index = offsets(files)
    for reopened in (False, True):
        assert index.floor(1004) == (1000, 0)
        for number in (0, 1, 63, 64, 100, 199):
            entry = (1005 + number * 10, 100 + number * 100)
            assert index.floor(entry[0]) == entry
            assert index.floor(entry[0] + 9) == entry
        assert index.last() == (2995, 20000)
        if not reopened:
            index.entries.write_pending()
            index.entries.close()
            index = OffsetIndex(files, "/i", Offset(1000))


@pytest.mark.parametrize("written", [False, True])
def test_within_is_the_last_batch_that_begins_no_later_and_ends_below(
    files: MemoryFiles, written: bool
) -> None:
    index = offsets(files)
    if written:
        index.entries.write_pending()
    every = 1 << 30
    assert index.within(99, every) == (1000, 0)
    assert index.within(every, 1005) == (1000, 0)
    for number in (0, 1, 63, 64, 100, 199):
        entry = (1005 + number * 10, 100 + number * 100)
        assert index.within(entry[1], every) == entry
        assert index.within(entry[1] + 99, every) == entry
        assert index.within(every, entry[0] + 1) == entry
        assert index.within(every, entry[0] + 10) == entry


def test_entries_are_written_in_groups(files: MemoryFiles) -> None:
    index = offsets(files, 63)
    assert not files.exists("/i")
    index.append(5000, 9999)
    assert files.size("/i") == 64 * 8


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("kept", [0, 1, 63, 64, 65, 150, 200])
def test_cut_drops_exactly_the_entries_after_it(
    files: MemoryFiles, kept: int, written: bool
) -> None:
    index = offsets(files)
    if written:
        index.entries.write_pending()
    index.truncate_at(100 + kept * 100, 1 << 30)
    assert len(index.entries) == kept
    index.append(9000, 50000)
    index.entries.write_pending()
    assert files.size("/i") == (kept + 1) * 8
    assert index.last() == (9000, 50000)


def test_cut_drops_an_entry_that_claims_a_later_offset_at_an_earlier_place(
    files: MemoryFiles,
) -> None:
    index = OffsetIndex(files, "/i", Offset(1000))
    index.append(1004, 200)
    index.append(1011, 435)
    index.append(1015, 512)  # it was 607, of which a power cut has left this
    index.truncate_at(570, 1013)
    assert index.last() == (1011, 435)


@pytest.mark.parametrize("real", [0, 1, 7, 100])
def test_preallocated_file_ends_where_its_zeros_begin(files: MemoryFiles, real: int) -> None:
    index = offsets(files, real)
    index.entries.write_pending()
    files.write("/i", files.read("/i") + bytes(8 * 1000))
    index = OffsetIndex(files, "/i", Offset(1000))
    assert len(index.entries) == real
    assert index.fault(segment_bytes=10**6) is None
    index.append(9000, 50000)
    index.entries.write_pending()
    assert files.size("/i") == (real + 1) * 8


def test_faults_are_named(files: MemoryFiles) -> None:
    index = offsets(files, 5)
    index.entries.write_pending()
    assert index.fault(segment_bytes=501) is None
    assert index.fault(segment_bytes=500) == "its last entry points to byte 500 of 500"
    files.write("/i", files.read("/i") + b"x")
    assert OffsetIndex(files, "/i", Offset(1000)).fault(segment_bytes=501) == (
        "its length is not a whole number of entries"
    )
    assert OffsetIndex(files, "/no", Offset(0)).fault(segment_bytes=1) == "missing"
    assert OffsetIndex(files, "/no", Offset(0)).fault(segment_bytes=0) is None


def test_ascending_prefix_ends_at_garbage(files: MemoryFiles) -> None:
    index = offsets(files, 50)
    index.entries.write_pending()
    data = bytearray(files.read("/i"))
    data[30 * 8 : 31 * 8] = bytes(8)
    files.write("/i", bytes(data))
    assert OffsetIndex(files, "/i", Offset(1000)).ascending_prefix() == 30


def test_time_index_takes_only_younger_entries(files: MemoryFiles) -> None:
    times = TimeIndex(files, "/t", Offset(0))
    for timestamp, offset in ((10, 1), (10, 2), (5, 3), (11, 4), (-1, 5)):
        times.append_if_younger(timestamp, offset)
    assert len(times.entries) == 2
    assert times.last() == (11, 4)
    assert [times.floor(timestamp).offset for timestamp in (9, 10, 11, 99)] == [0, 1, 4, 4]
    times.truncate_from(4)
    assert times.last() == (10, 1)
    times.append_if_younger(11, 2)
    assert times.last() == (11, 2)
