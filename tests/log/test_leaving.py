"""Bytes that are only sent on, and stay in their file until then."""

from __future__ import annotations

import gc
import os
import random
import socket
import struct
import sys
from pathlib import Path

import pytest

from cotidal.log.contract import LogConfig
from cotidal.log.failure import CorruptLog, Gone
from cotidal.log.files import LeftBytes, OsFiles
from cotidal.log.log import Log
from cotidal.log.segment import LEAVE_BYTES_MIN
from cotidal.values import Offset
from cotidal.wire.batch import read_batches
from tests.log.shelf import Shelf, fill, follow, lead, memory_shelf, os_shelf, sized_batch
from tests.log.test_files import descriptors

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="files are sent on Linux only")

BATCH_BYTES = 5_000
LARGE = LogConfig(segment_bytes=600_000, index_interval_bytes=4096)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return os_shelf(tmp_path)


def filled(shelf: Shelf, batches: int = 100) -> Log:
    log = shelf.open(LARGE)
    fill(log, batches, size=BATCH_BYTES)
    return log


def left(log: Log, offset: int = 0, *, max_bytes: int = 1 << 20, below: int = 1 << 40) -> LeftBytes:
    data = log.leave(Offset(offset), max_bytes=max_bytes, below=Offset(below))
    assert isinstance(data, LeftBytes)
    return data


def taken(data: LeftBytes) -> bytes:
    """What its reader gets, some by the kernel and some by hand."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        got = b""
        while data.unsent:
            before = data.unsent
            if len(got) % 3:
                got += data.read(10_000)
            else:
                data.send_to(ours.fileno())
                got += theirs.recv(before - data.unsent, socket.MSG_WAITALL)
    return got


def takes(data: LeftBytes, ours: socket.socket) -> bool:
    try:
        data.send_to(ours.fileno())
    except BlockingIOError:
        return False
    return True


@pytest.mark.parametrize(
    ("recent", "interval", "least"),
    [(1024, 4096, 100), (3, 4096, 100), (3, 250_000, 10)],
    ids=["at the tail", "by the index", "by an index with few entries"],
)
def test_what_is_left_is_what_a_read_begins_with(
    shelf: Shelf, recent: int, interval: int, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cotidal.limits.LOG_RECENT_BATCHES", recent)
    log = shelf.open(LogConfig(segment_bytes=3_000_000, index_interval_bytes=interval))
    chance = random.Random(recent)
    for _ in range(300):
        lead(log, [sized_batch(chance.randint(500, 9_000)) for _ in range(chance.randint(1, 3))])
    end = log.end_offset
    met = 0
    for _ in range(300):
        offset, below = sorted((chance.randrange(end), chance.randrange(1, end + 1)))
        asked = chance.randint(LEAVE_BYTES_MIN, 300_000)
        data = log.leave(Offset(offset), max_bytes=asked, below=Offset(below))
        read = bytes(log.read(Offset(offset), max_bytes=asked, below=Offset(below)))
        if not isinstance(data, LeftBytes):
            assert data == read
            continue
        met += 1
        assert LEAVE_BYTES_MIN <= len(data) <= asked
        assert len(data) >= len(read) // 2 - 9_000
        got = taken(data)
        assert read.startswith(got)
        found = read_batches(got)
        assert found.fault is None
        assert not found.cut
        assert found.headers[0].base_offset <= offset
        assert found.headers[-1].next_offset <= below
    assert met > least


def test_one_who_goes_on_where_the_last_answer_ended_reads_everything(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cotidal.limits.LOG_RECENT_BATCHES", 3)
    log = filled(shelf, 300)
    offset, kinds = 0, set()
    while offset < log.end_offset:
        data = log.leave(Offset(offset), max_bytes=100_000, below=log.end_offset)
        kinds.add(type(data))
        headers = read_batches(taken(data) if isinstance(data, LeftBytes) else data).headers
        assert headers[0].base_offset == offset
        offset = headers[-1].next_offset
    assert LeftBytes in kinds


def test_an_offset_in_a_gap_of_compaction_leaves_the_next_batches(shelf: Shelf) -> None:
    log = shelf.open(LARGE._replace(compacted=True))
    for number in range(100):
        follow(log, sized_batch(BATCH_BYTES, base_offset=10 * number))
    data = taken(left(log, 15, below=log.end_offset))
    assert [h.base_offset for h in read_batches(data).headers] == list(range(20, 1000, 10))


@pytest.mark.parametrize("by", [1, 3 * BATCH_BYTES], ids=["inside a batch", "at another batch"])
def test_an_index_that_is_wrong_is_not_believed(shelf: Shelf, by: int) -> None:
    """Every entry but the last tells of a place behind the batch that it means."""
    log = filled(shelf)
    log.close()
    (name,) = (name for name in shelf.names() if name.endswith(".index"))
    *entries, last = struct.iter_unpack(">II", shelf.bytes_of(name))
    wrong = [(offset, position + by) for offset, position in entries]
    shelf.restart()
    shelf.put(name, b"".join(struct.pack(">II", *entry) for entry in (*wrong, last)))
    log = shelf.open(LARGE)
    log.read(Offset(0), max_bytes=1 << 20, below=Offset(100))  # the first reader checks for all
    data = log.leave(Offset(0), max_bytes=1 << 20, below=Offset(90))
    found = read_batches(taken(data) if isinstance(data, LeftBytes) else data)
    assert not found.cut
    assert found.fault is None
    assert found.headers[-1].next_offset <= 90


def test_few_bytes_are_read(shelf: Shelf) -> None:
    log = filled(shelf)
    data = log.leave(Offset(0), max_bytes=LEAVE_BYTES_MIN - 1, below=log.end_offset)
    assert isinstance(data, bytes)
    assert len(data) == LEAVE_BYTES_MIN // BATCH_BYTES * BATCH_BYTES


def test_memory_has_nothing_to_leave() -> None:
    log = filled(memory_shelf())
    data = log.leave(Offset(0), max_bytes=1 << 20, below=log.end_offset)
    assert isinstance(data, bytes)
    assert len(data) == 100 * BATCH_BYTES


def test_what_no_one_has_checked_is_read_and_not_left(shelf: Shelf) -> None:
    """After a restart a bit is wrong in the middle: what stands before it is served, it is not."""
    log = filled(shelf)
    log.close()
    shelf.restart()
    (name,) = shelf.logs()
    shelf.flip(name, 60 * BATCH_BYTES + 2_000)
    log = shelf.open(LARGE)
    for _ in range(2):  # the first reader checks for all
        data = log.leave(Offset(0), max_bytes=1 << 20, below=Offset(100))
        got = taken(data) if isinstance(data, LeftBytes) else bytes(data)
        found = read_batches(got)
        assert found.fault is None
        assert found.headers[-1].next_offset <= 60
    assert isinstance(data, LeftBytes)
    with pytest.raises(CorruptLog):
        log.leave(Offset(60), max_bytes=1 << 20, below=Offset(100))


def test_what_was_cut_is_gone_and_never_sent(shelf: Shelf) -> None:
    log = filled(shelf)
    data = left(log, below=100)
    first = data.read(7)
    log.truncate_to(Offset(90))
    fill(log, 10, size=BATCH_BYTES, epoch=2)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        with pytest.raises(Gone, match="was cut"):
            data.send_to(ours.fileno())
        ours.close()
        assert theirs.recv(100) == b""
    with pytest.raises(Gone):
        data.read(100)
    again = log.read(Offset(0), max_bytes=1 << 20, below=Offset(100))
    assert bytes(again[:7]) == first
    assert bytes(again).startswith(taken(left(log, below=100)))


def test_a_file_that_ends_early_is_told_and_not_waited_for(shelf: Shelf) -> None:
    log = filled(shelf)
    data = left(log, below=100)
    os.truncate(shelf.path(shelf.logs()[0]), 3 * BATCH_BYTES)  # by somebody else
    assert len(data.read(1 << 20)) == 3 * BATCH_BYTES
    with pytest.raises(Gone, match="ends before"):
        data.read(100)
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(Gone):
        data.send_to(ours.fileno())


def test_what_is_left_outlives_its_log(shelf: Shelf) -> None:
    """Retention or a deletion removes the file: who was promised it gets it."""
    log = filled(shelf)
    whole = bytes(log.read(Offset(0), max_bytes=1 << 20, below=log.end_offset))
    data = left(log, below=100)
    log.close()
    (name,) = shelf.logs()
    os.unlink(shelf.path(name))
    assert descriptors(Path(shelf.directory)) == 1
    assert taken(data) == whole
    del data
    gc.collect()
    assert descriptors(Path(shelf.directory)) == 0


def test_what_is_left_keeps_its_descriptor_when_others_take_the_file_s(tmp_path: Path) -> None:
    few = OsFiles(max_open=4)
    file = few.open(str(tmp_path / "one"), create=True)
    file.append([b"0123456789"])
    data = file.leave(10, 0)
    assert isinstance(data, LeftBytes)
    others = [few.open(str(tmp_path / f"{number}"), create=True) for number in range(9)]
    for _ in range(2):
        for other in others:
            other.append([b"x"])
    assert few.open_count == 3
    assert descriptors(tmp_path) == 4
    assert data.read(4) == b"0123"
    assert file.pread(10, 0) == b"0123456789"
    assert data.read(100) == b"456789"
    assert descriptors(tmp_path) == 4
    del data
    assert descriptors(tmp_path) == few.open_count == 3
    for each in (file, *others):
        each.close()
    assert descriptors(tmp_path) == 0


def test_no_more_is_left_than_a_share_of_the_files_that_may_be_open(tmp_path: Path) -> None:
    """Twelve files in turns, four of which may be open at a time; nobody takes what is left."""
    few = OsFiles(max_open=8)
    files = [few.open(str(tmp_path / f"{number}"), create=True) for number in range(12)]
    kept = []
    for _ in range(3):
        for file in files:
            file.append([b"0123"])
            kept.append(file.leave(4, 0))
            assert descriptors(tmp_path) <= 8
    assert [isinstance(each, LeftBytes) for each in kept] == [True] * 2 + [False] * 34
    assert kept[2:] == [b"0123"] * 34
    kept.clear()
    assert isinstance(files[0].leave(4, 0), LeftBytes)


def test_bytes_past_the_end_are_not_promised(tmp_path: Path) -> None:
    file = OsFiles().open(str(tmp_path / "one"), create=True)
    file.append([b"0123456789"])
    assert file.leave(11, 0) == b"0123456789"
    assert isinstance(file.leave(10, 0), LeftBytes)


def test_a_socket_that_is_full_takes_nothing(shelf: Shelf) -> None:
    data = left(filled(shelf), below=100)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        while takes(data, ours):
            pass
        assert 0 < data.unsent < len(data) == 100 * BATCH_BYTES
