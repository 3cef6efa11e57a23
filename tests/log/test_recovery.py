"""Opening a log that was left in disorder."""

from __future__ import annotations

import random
from struct import pack

import pytest

from cotidal.log.checkpoint import PARTITION_METADATA, decode_partition_metadata
from cotidal.log.contract import LogConfig
from cotidal.log.memory import MemoryFiles
from cotidal.messages.producers import ProducerSnapshot
from cotidal.values import EpochEntry, LeaderEpoch, Offset
from cotidal.wire.batch import CRC_START
from tests.log.shelf import (
    NOW,
    SMALL,
    TOPIC_ID,
    Shelf,
    bases,
    batch,
    everything,
    fill,
    follow,
    lead,
    memory_shelf,
    sized_batch,
)

FIRST = f"{0:020d}"
SECOND = f"{10:020d}"


def left_open(shelf: Shelf, count: int = 25) -> bytes:
    """A log of three segments whose process died."""
    log = shelf.open()
    fill(log, count)
    data = everything(log)
    shelf.restart()
    return data


def test_killed_process_loses_nothing(shelf: Shelf) -> None:
    before = left_open(shelf)
    log = shelf.open(clean=False)
    assert log.opened.repaired == ("orders-0: made leader-epoch-checkpoint anew from the batches",)
    assert everything(log) == before
    assert log.epochs == (EpochEntry(LeaderEpoch(1), Offset(0)),)


@pytest.mark.parametrize("flushed", [False, True])
def test_file_cut_at_any_byte_of_its_last_three_batches_keeps_the_whole_ones(flushed: bool) -> None:
    """Also when the recovery point lies inside the file, and the index leads to it."""
    sizes = (400, 97, 130, 111)
    for cut in range(sum(sizes[1:]) + 1):
        shelf = memory_shelf()
        log = shelf.open(LogConfig(index_interval_bytes=100))
        lead(log, [sized_batch(size) for size in sizes[:2]])
        point = log.flush() if flushed else Offset(0)
        if flushed and cut > sum(sizes[2:]):
            break  # what was flushed cannot be torn
        lead(log, [sized_batch(size) for size in sizes[2:]])
        whole = shelf.bytes_of(FIRST + ".log")
        shelf.restart()
        shelf.put(FIRST + ".log", whole[: len(whole) - cut])
        log = shelf.open(clean=False, recovery_point=point)
        ends = [sum(sizes[: number + 1]) for number in range(4)]
        kept = sum(end <= len(whole) - cut for end in ends)
        assert log.end_offset == kept
        assert everything(log) == whole[: ends[kept - 1]]
        torn = len(whole) - cut - ends[kept - 1]
        assert any(f"cut {torn} bytes after offset" in each for each in log.opened.repaired) == (
            torn > 0
        )
        fill(log, 2)
        log.close()
        assert bases(shelf.open()) == list(range(kept + 2))


def test_zeros_anywhere_after_what_was_flushed_leave_it_alone() -> None:
    """A file's length may reach the disk before its bytes do. The first batch begins an epoch, so
    what follows is asked about it; zeros say nothing."""
    for first in range(100):
        for end in (first + 1, first + 8, first + 30, 100):
            shelf = memory_shelf()
            log = shelf.open()
            lead(log, [sized_batch(100)], epoch=3)
            point = log.flush()
            lead(log, [sized_batch(100)], epoch=3)
            shelf.restart()
            data = bytearray(shelf.bytes_of(FIRST + ".log"))
            data[100 + first : 100 + min(end, 100)] = bytes(min(end, 100) - first)
            shelf.put(FIRST + ".log", bytes(data))
            log = shelf.open(clean=False, recovery_point=point)
            assert log.end_offset in (1, 2), (first, end)
            assert everything(log)[:100] == bytes(data[:100])


def test_a_clean_log_ends_with_its_batches_whatever_its_index_promises() -> None:
    shelf = memory_shelf()
    log = shelf.open()
    fill(log, 5)
    log.close()
    shelf.put(FIRST + ".index", pack(">ii", 90, 250))
    assert shelf.open().end_offset == 5


LINE = tuple(EpochEntry(LeaderEpoch(n + 1), Offset(10 * n)) for n in range(3))
"""Ten batches of each of the first three epochs."""


def three_epochs(*, told: tuple[EpochEntry, ...]) -> Shelf:
    """All of it flushed, and the file of its epochs as ``told``; then its process died."""
    shelf = memory_shelf()
    log = shelf.open()
    for epoch in (1, 2, 3):
        fill(log, 10, epoch=epoch)
        log.save_epochs(log.epochs)
    assert log.epochs == LINE
    log.flush()
    log.save_epochs(told)
    shelf.restart()
    return shelf


@pytest.mark.parametrize(
    "told", [LINE[:1], LINE[:2], LINE[1:], (EpochEntry(LeaderEpoch(3), Offset(25)),), ()]
)
def test_epochs_that_a_disk_has_lost_are_those_of_the_batches(told: tuple[EpochEntry, ...]) -> None:
    """One that says it has synced and has not: what was flushed is not walked otherwise."""
    log = three_epochs(told=told).open(clean=False, recovery_point=30)
    assert log.epochs == LINE
    assert log.opened.repaired == ("orders-0: made leader-epoch-checkpoint anew from the batches",)
    for offset in range(30):
        assert log.read(offset, max_bytes=100, below=30)


def test_epochs_that_agree_with_the_batches_are_left_alone() -> None:
    empty = EpochEntry(LeaderEpoch(7), Offset(30))
    begun = (EpochEntry(LeaderEpoch(2), Offset(15)), LINE[2])
    for told, log_start, kept in (
        (LINE, 0, LINE),
        ((*LINE, empty), 0, LINE),
        (begun, 15, begun),
        ((), 30, (EpochEntry(LeaderEpoch(3), Offset(30)),)),
    ):
        log = three_epochs(told=told).open(clean=False, recovery_point=30, log_start=log_start)
        assert (log.opened.repaired, log.epochs) == ((), kept)


def test_epochs_of_a_log_that_starts_within_a_batch_are_left_alone() -> None:
    shelf = memory_shelf()
    log = shelf.open()
    lead(log, [batch(5)])
    point = log.flush()
    told = (EpochEntry(LeaderEpoch(1), Offset(3)),)
    log.save_epochs(told)
    shelf.restart()
    log = shelf.open(clean=False, recovery_point=point, log_start=3)
    assert (log.opened.repaired, log.epochs) == ((), told)


def test_sentence_names_partition_bytes_offset_file_and_reason(shelf: Shelf) -> None:
    left_open(shelf, 9)
    shelf.flip(FIRST + ".log", 650)
    log = shelf.open(clean=False)
    (sentence,) = [each for each in log.opened.repaired if "cut" in each]
    assert sentence.startswith(
        f"orders-0: cut 300 bytes after offset 5 in {FIRST}.log: crc mismatch ("
    )
    assert sentence.endswith("at byte 600")


def test_every_flipped_bit_after_the_recovery_point_is_found(shelf: Shelf) -> None:
    """But for the leader epoch and offset of the very last batch, which nothing contradicts."""
    before = left_open(shelf, 4)
    for position in range(200, 400):
        if 300 <= position < 308 or 312 <= position < 316:
            continue
        for bit in range(8) if position % 100 < CRC_START else (position % 8,):
            data = bytearray(before)
            data[position] ^= 1 << bit
            shelf.put(FIRST + ".log", bytes(data))
            log = shelf.open(clean=False)
            assert log.end_offset <= position // 100, (position, bit)
            shelf.restart()


def test_segments_after_a_cut_go(shelf: Shelf) -> None:
    before = left_open(shelf)
    shelf.flip(SECOND + ".log", 333)
    log = shelf.open(clean=False)
    assert log.end_offset == 13
    assert everything(log) == before[:1300]
    assert shelf.logs() == [FIRST + ".log", SECOND + ".log"]
    assert (
        f"orders-0: removed {20:020d}.log (500 bytes): what comes before it was cut"
        in log.opened.repaired
    )


def test_segments_after_a_missing_tail_go(shelf: Shelf) -> None:
    """The machine died before the first segment was written back; what follows is no log."""
    before = left_open(shelf)
    shelf.put(FIRST + ".log", before[:700])
    log = shelf.open(clean=False)
    assert log.end_offset == 7
    assert shelf.logs() == [FIRST + ".log"]


@pytest.mark.parametrize("points", [{"recovery_point": 15}, {"cleaned_to": 10}], ids=str)
def test_gaps_between_segments_stay_where_all_was_synced(
    shelf: Shelf, points: dict[str, int]
) -> None:
    """They are of Kafka's compaction."""
    config = SMALL._replace(compacted=True)
    log = shelf.open(config)
    fill(log, 25)
    whole = shelf.bytes_of(FIRST + ".log")
    shelf.restart()
    shelf.put(FIRST + ".log", whole[:700])
    log = shelf.open(config, clean=False, **points)
    assert bases(log) == [*range(7), *range(10, 25)]


def test_gap_after_what_was_synced_is_a_hole_also_in_a_compacted_log(shelf: Shelf) -> None:
    config = SMALL._replace(compacted=True)
    log = shelf.open(config)
    fill(log, 25)
    whole = shelf.bytes_of(FIRST + ".log")
    shelf.restart()
    shelf.put(FIRST + ".log", whole[:700])
    log = shelf.open(config, clean=False, recovery_point=5)
    assert bases(log) == [*range(7)]


def test_batches_below_the_recovery_point_are_not_walked(shelf: Shelf) -> None:
    log = shelf.open()
    fill(log, 25)
    point = log.flush()
    fill(log, 1)
    shelf.restart()
    shelf.flip(FIRST + ".log", 333)
    log = shelf.open(clean=False, recovery_point=point)
    assert log.end_offset == 26
    assert log.opened.repaired == ()


def test_recovery_point_past_what_is_left_is_no_reason_to_believe_it(shelf: Shelf) -> None:
    log = shelf.open()
    fill(log, 5)
    log.flush()
    data = shelf.bytes_of(FIRST + ".log")
    shelf.restart()
    shelf.put(FIRST + ".log", data[:250])
    log = shelf.open(clean=False, recovery_point=5)
    assert log.end_offset == log.recovery_point == 2


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", ["missing", "torn", "beyond", "zeros"])
def test_bad_index_is_made_anew(shelf: Shelf, suffix: str, damage: str) -> None:
    log = shelf.open(LogConfig(index_interval_bytes=100))
    for number in range(40):
        lead(log, [batch(timestamp=NOW + number)])
    log.close()
    good = shelf.bytes_of(FIRST + suffix)
    assert len(good) > 100
    match damage:
        case "missing":
            shelf.filesystem.unlink(shelf.path(FIRST + suffix))
        case "torn":
            shelf.put(FIRST + suffix, good[:-1])
        case "beyond":
            shelf.put(FIRST + suffix, good[:-4] + b"\xff\xff\xff\x00")
        case _:
            shelf.put(FIRST + suffix, good + bytes(1200))  # as Kafka preallocates: no damage
    log = shelf.open(LogConfig(index_interval_bytes=100))
    told = [each for each in log.opened.repaired if f"made {FIRST}{suffix} anew" in each]
    assert len(told) == (damage != "zeros")
    assert bases(log) == list(range(40))
    found = log.offset_for_time(NOW + 13, below=Offset(40))  # type: ignore[arg-type]
    assert found is not None
    assert found.offset == 13
    log.close()
    assert shelf.bytes_of(FIRST + suffix) == good


def test_index_that_points_to_wrong_places_is_made_anew_when_it_is_used(shelf: Shelf) -> None:
    log = shelf.open(LogConfig(index_interval_bytes=100))
    fill(log, 20)
    log.close()
    good = shelf.bytes_of(FIRST + ".index")
    for position in range(len(good) - 8):
        for bit in (0, 3, 6):
            shelf.restart()
            shelf.put(FIRST + ".index", good)
            shelf.flip(FIRST + ".index", position, bit)
            log = shelf.open(LogConfig(index_interval_bytes=100))
            for offset in range(20):
                data = log.read(Offset(offset), max_bytes=100, below=Offset(20))
                assert int.from_bytes(data[:8], "big") == offset


@pytest.mark.parametrize("garbage", [bytes(64), bytes(range(64)), b"\x00\x00\x00\x02" * 16, b""])
def test_garbage_at_the_end_of_an_index_is_replaced(shelf: Shelf, garbage: bytes) -> None:
    """What the disk may hold of index entries that were not synced."""
    config = LogConfig(index_interval_bytes=100)
    log = shelf.open(config)
    fill(log, 20)
    point = log.flush()
    synced = shelf.bytes_of(FIRST + ".index")
    fill(log, 20)
    log.close()
    good = shelf.bytes_of(FIRST + ".index")
    shelf.restart()
    shelf.put(FIRST + ".index", synced + (garbage or synced[:16]))
    shelf.open(config, clean=False, recovery_point=point).close()
    entries = [int.from_bytes(good[at : at + 4], "big") for at in range(0, len(good), 8)]
    mended = shelf.bytes_of(FIRST + ".index")
    found = [int.from_bytes(mended[at : at + 4], "big") for at in range(0, len(mended), 8)]
    assert found[: len(synced) // 8 - 1] == entries[: len(synced) // 8 - 1]
    assert found == sorted(set(found))
    assert abs(len(found) - len(entries)) <= 1


def test_removed_segments_do_not_come_back_under_newer_ones() -> None:
    """A crash, a recovery that removes a segment, batches of a new epoch up to where it began, and
    a second crash before any flush."""
    came_far = 0
    for seed in range(150):
        shelf = memory_shelf()
        files = shelf.filesystem
        assert isinstance(files, MemoryFiles)
        log = shelf.open()
        fill(log, 15, epoch=1)
        log.flush()
        files.crash()
        shelf.flip(FIRST + ".log", 777)
        log = shelf.open(clean=False)
        assert log.end_offset == 7
        fill(log, 3, epoch=1)
        files.crash(random.Random(seed).randrange)
        log = shelf.open(clean=False)
        came_far += log.end_offset == 10
        assert log.end_offset <= 10, "offsets from 10 on are those of the removed segment"
    assert came_far > 5


def test_clean_log_that_is_not_clean_is_recovered(shelf: Shelf) -> None:
    log = shelf.open()
    fill(log, 5)
    log.close()
    data = shelf.bytes_of(FIRST + ".log")
    shelf.put(FIRST + ".log", data[:450])
    log = shelf.open(clean=True)
    assert log.end_offset == 4
    assert "not as a clean shutdown leaves it" in log.opened.repaired[0]


def test_epochs_are_cut_with_the_log(shelf: Shelf) -> None:
    log = shelf.open()
    for epoch in (1, 2, 5):
        fill(log, 3, epoch=epoch)
    log.save_epochs(log.epochs)
    data = shelf.bytes_of(FIRST + ".log")
    shelf.restart()
    shelf.put(FIRST + ".log", data[:599])
    log = shelf.open(clean=False)
    assert log.opened.epochs == (
        EpochEntry(LeaderEpoch(1), Offset(0)),
        EpochEntry(LeaderEpoch(2), Offset(3)),
    )


def test_epoch_in_which_nothing_was_written_is_forgotten(shelf: Shelf) -> None:
    log = shelf.open()
    fill(log, 3)
    log.save_epochs([*log.epochs, EpochEntry(LeaderEpoch(6), Offset(3))])
    log.close()
    assert shelf.open().epochs == (EpochEntry(LeaderEpoch(1), Offset(0)),)


def test_epochs_that_were_not_saved_are_found_in_the_batches(shelf: Shelf) -> None:
    log = shelf.open()
    fill(log, 3, epoch=1)
    log.save_epochs(log.epochs)
    fill(log, 3, epoch=4)
    shelf.restart()
    log = shelf.open(clean=False)
    assert log.epochs == (
        EpochEntry(LeaderEpoch(1), Offset(0)),
        EpochEntry(LeaderEpoch(4), Offset(3)),
    )


def test_batches_after_the_producer_snapshot_are_told(shelf: Shelf) -> None:
    log = shelf.open()
    for sequence in range(15):
        lead(log, [batch(producer_id=8, sequence=sequence)])
        lead(log, [batch()])
        if log.end_offset == 20:
            log.save_producers(ProducerSnapshot(Offset(20), ()))
    shelf.restart()
    log = shelf.open(clean=False)
    assert log.opened.producer_snapshot == ProducerSnapshot(Offset(20), ())
    assert [header.base_sequence for header in log.opened.headers_after] == list(range(10, 15))
    log.forget_headers()
    assert log.opened.headers_after == ()


def test_debris_is_cleared_away_and_strange_files_are_left(shelf: Shelf) -> None:
    left_open(shelf, 3)
    debris = (f"{5:020d}.index", f"{0:020d}.log.deleted", f"{0:020d}.log.cleaned")
    for name in (*debris, "quorum-state", "00000000000000000005-0000000001.checkpoint"):
        shelf.put(name, b"x")
    shelf.open(clean=False)
    names = shelf.names()
    assert not set(debris) & set(names)
    assert {"quorum-state", "00000000000000000005-0000000001.checkpoint"} <= set(names)


def test_follower_log_with_rising_epochs_recovers_whole(shelf: Shelf) -> None:
    log = shelf.open()
    for base in range(0, 30, 3):
        follow(log, batch(3, base_offset=base, epoch=base // 6))
    before = everything(log)
    shelf.restart()
    log = shelf.open(clean=False)
    assert everything(log) == before
    assert [entry.start_offset for entry in log.epochs] == [0, 6, 12, 18, 24]


def test_a_log_that_outlives_a_power_cut_still_knows_whose_it_is() -> None:
    """Or the records of a deleted topic would be taken for those of its namesake."""
    outlived = 0
    for seed in range(200):
        shelf = memory_shelf()
        lead(shelf.open(), [batch(3)])
        assert isinstance(shelf.filesystem, MemoryFiles)
        shelf.filesystem.sync_directory(shelf.root)
        shelf.filesystem.crash(random.Random(seed).randrange)
        if f"{FIRST}.log" in shelf.names() and shelf.bytes_of(f"{FIRST}.log"):
            outlived += 1
            assert decode_partition_metadata(shelf.bytes_of(PARTITION_METADATA)) == TOPIC_ID
    assert outlived > 0
