"""Damage in a segment that nobody walked at opening is found when it is read, and never served."""

from __future__ import annotations

import pytest

from cotidal.log.contract import LogConfig
from cotidal.log.failure import CorruptLog
from cotidal.log.log import Log
from cotidal.values import Offset
from cotidal.wire.batch import CRC_START, read_batches
from tests.log.shelf import Shelf, fill, lead, memory_shelf, sized_batch

FIRST = f"{0:020d}.log"
CONFIG = LogConfig(index_interval_bytes=250, segment_bytes=1200)


def closed_log(shelf: Shelf) -> bytes:
    """Twelve batches in the first segment, three in the second, epochs 1 and 2."""
    log = shelf.open(CONFIG)
    fill(log, 5, epoch=1)
    fill(log, 10, epoch=2)
    log.close()
    return shelf.bytes_of(FIRST)


def served(log: Log, offset: int, max_bytes: int) -> bytes:
    """What a reader of this offset gets; nothing when the log refuses."""
    try:
        return bytes(log.read(Offset(offset), max_bytes=max_bytes, below=log.end_offset))
    except CorruptLog:
        return b""


def read_all(log: Log) -> None:
    for offset in range(log.start_offset, log.end_offset):
        log.read(Offset(offset), max_bytes=100, below=log.end_offset)


def cut_at_damage(log: Log, damage: CorruptLog) -> int:
    """Where two neighbours contradict each other, the cut itself may find the first one at fault:
    each time at a lesser offset."""
    while True:
        try:
            return log.truncate_to(damage.offset).end_offset
        except CorruptLog as before:
            if before.offset >= damage.offset:
                raise
            damage = before


@pytest.mark.parametrize("max_bytes", [100, 350, 5000])
def test_no_flipped_bit_of_a_segment_is_ever_served(max_bytes: int) -> None:
    shelf = memory_shelf()
    good = closed_log(shelf)
    for position in range(len(good)):
        uncovered = position % 100 < CRC_START  # by the crc: every bit of it, then
        for bit in range(8) if uncovered else (position % 8,):
            shelf.restart()
            shelf.put(FIRST, good)
            shelf.flip(FIRST, position, bit)
            log = shelf.open(CONFIG)
            hit = position // 100
            for offset in range(12):
                data = served(log, offset, max_bytes)
                assert data == good[100 * offset : 100 * offset + len(data)]
                assert data or offset >= hit - 1 or uncovered, (position, offset)
                if offset == hit:
                    assert not data, f"byte {position} is damaged and was served"


@pytest.mark.parametrize("clean", [True, False])
def test_no_flipped_bit_of_the_active_segment_is_ever_served(clean: bool) -> None:
    """But for offset and epoch of the very last batch, which nothing contradicts."""
    shelf = memory_shelf()
    closed_log(shelf)
    name = f"{12:020d}.log"
    good = shelf.bytes_of(name)
    for position in range(len(good)):
        if 200 <= position < 208 or 212 <= position < 216:
            continue
        shelf.restart()
        shelf.put(name, good)
        shelf.flip(name, position, position % 8)
        log = shelf.open(CONFIG, clean=clean)
        hit = 12 + position // 100
        for offset in range(12, log.end_offset):
            data = served(log, offset, 5000)
            start = 100 * (offset - 12)
            assert data == good[start : start + len(data)]
            assert offset != hit or not data, f"byte {position} is damaged and was served"


def test_a_log_that_is_cut_where_its_damage_is_told_is_good_again() -> None:
    """Every byte of the first segment, found by whatever read finds it first."""
    for position in range(1200):
        for bit in (0, 7) if position % 100 < CRC_START else (position % 8,):
            shelf = memory_shelf()
            good = closed_log(shelf)
            shelf.flip(FIRST, position, bit)
            log = shelf.open(CONFIG)
            with pytest.raises(CorruptLog) as found:
                read_all(log)
            cut = cut_at_damage(log, found.value)
            assert position // 100 - 1 <= cut <= position // 100
            assert log.end_offset == cut
            fill(log, 3, epoch=3)
            for offset in range(cut):
                data = log.read(Offset(offset), max_bytes=100, below=log.end_offset)
                assert bytes(data) == good[100 * offset : 100 * offset + 100]
            assert log.verify() == ()
            log.close()


def test_damage_is_told_with_file_place_and_offsets(shelf: Shelf) -> None:
    closed_log(shelf)
    shelf.flip(FIRST, 777)
    log = shelf.open(CONFIG)
    with pytest.raises(CorruptLog) as refused:
        log.read(Offset(7), max_bytes=1000, below=Offset(15))
    assert str(refused.value).startswith(
        "orders-0: 00000000000000000000.log is damaged at byte 700: crc mismatch ("
    )
    (sentence,) = log.verify()
    assert sentence == str(refused.value)


def test_what_stands_before_and_after_the_damage_is_served(shelf: Shelf) -> None:
    good = closed_log(shelf)
    shelf.flip(FIRST, 777)
    log = shelf.open(CONFIG)
    assert log.read(Offset(4), max_bytes=9999, below=Offset(15)) == good[400:700]
    assert log.read(Offset(8), max_bytes=9999, below=Offset(15)) == good[800:]
    last = read_batches(log.read(Offset(12), max_bytes=9999, below=Offset(15)))
    assert [header.base_offset for header in last.headers] == [12, 13, 14]


def test_verify_finds_nothing_in_a_good_log(shelf: Shelf) -> None:
    closed_log(shelf)
    assert shelf.open(CONFIG).verify() == ()


def test_length_that_steps_exactly_over_a_batch_does_not_hide_it(shelf: Shelf) -> None:
    """Batches of 128 bytes: one bit of a length makes a batch seem to end after its neighbour."""
    log = shelf.open(LogConfig())
    lead(log, [sized_batch(128)] * 6)
    log.close()
    data = bytearray(shelf.bytes_of(FIRST))
    data[128 + 8 : 128 + 12] = (128 + 128 - 12).to_bytes(4, "big")
    shelf.put(FIRST, bytes(data))
    log = shelf.open(LogConfig())
    for offset in (1, 2):
        with pytest.raises(CorruptLog, match="damaged at byte 128: crc mismatch"):
            log.read(Offset(offset), max_bytes=128, below=Offset(6))


@pytest.mark.parametrize("max_bytes", [100, 5000])
def test_batch_of_another_epoch_than_the_checkpoint_says_is_not_served(max_bytes: int) -> None:
    """Two bits: the first batch of epoch 2 claims the epoch of the batch before it."""
    shelf = memory_shelf()
    good = closed_log(shelf)
    data = bytearray(good)
    data[500 + 12 : 500 + 16] = (1).to_bytes(4, "big")
    shelf.put(FIRST, bytes(data))
    log = shelf.open(CONFIG)
    assert log.read(Offset(0), max_bytes=5000, below=Offset(15)) == good[:500]
    with pytest.raises(CorruptLog, match="leader epoch 1 where the epoch checkpoint says 2"):
        log.read(Offset(5), max_bytes=max_bytes, below=Offset(15))
