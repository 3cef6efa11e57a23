"""A disk that refuses takes the log offline, in a sentence; what was there stays readable."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from cotidal.log.contract import LogConfig
from cotidal.log.failure import LogOffline
from cotidal.log.log import Log
from cotidal.log.memory import MemoryFiles
from cotidal.messages.producers import ProducerSnapshot
from cotidal.values import Offset
from tests.log.shelf import (
    NOW,
    SMALL,
    Shelf,
    bases,
    everything,
    fill,
    lead,
    memory_shelf,
    sized_batch,
)

FIRST = f"{0:020d}"


def files_of(shelf: Shelf) -> MemoryFiles:
    assert isinstance(shelf.filesystem, MemoryFiles)
    return shelf.filesystem


def assert_offline(log: Log, sentence: str) -> None:
    assert log.offline == sentence
    for refused in (
        lambda: fill(log, 1),
        log.flush,
        lambda: log.truncate_to(Offset(1)),
        lambda: log.save_producers(ProducerSnapshot(Offset(0), ())),
        lambda: log.save_epochs(()),
        lambda: log.advance_start(Offset(1), NOW),
        lambda: log.retain(NOW, below=Offset(1)),
    ):
        with pytest.raises(LogOffline) as raised:
            refused()
        assert str(raised.value) == sentence


@pytest.mark.parametrize("room", range(0, 101, 7))
def test_full_disk_keeps_whole_batches_only(room: int) -> None:
    shelf = memory_shelf()
    log = shelf.open(LogConfig())
    fill(log, 5)
    before = everything(log)
    files = files_of(shelf)
    files.capacity = files.used_bytes + room
    if room >= 100:
        fill(log, 1)
    else:
        with pytest.raises(LogOffline):
            fill(log, 1)
        assert_offline(
            log,
            f"orders-0: could not append to {FIRST}.log at offset 5: No space left on device",
        )
        assert log.end_offset == 5
        assert everything(log) == before
        assert files.size(shelf.path(FIRST + ".log")) == 500
    files.capacity = None
    shelf.restart()
    log = shelf.open(clean=False)
    assert log.offline is None
    fill(log, 1)
    assert bases(log) == list(range(7 if room >= 100 else 6))


def test_torn_write_that_cannot_be_taken_back_is_cut_by_recovery() -> None:
    shelf = memory_shelf()
    log = shelf.open(LogConfig())
    fill(log, 5)
    files = files_of(shelf)
    files.capacity = files.used_bytes + 33
    files.fail("truncate", ".log")
    with pytest.raises(LogOffline):
        fill(log, 1)
    assert bases(log) == list(range(5))
    files.capacity = None
    shelf.restart()
    log = shelf.open(clean=False)
    assert f"orders-0: cut 33 bytes after offset 4 in {FIRST}.log" in log.opened.repaired[-1]
    assert bases(log) == list(range(5))


def test_failed_write_is_not_tried_again() -> None:
    shelf = memory_shelf()
    log = shelf.open()
    fill(log, 5)
    files_of(shelf).fail("append", ".log")
    with pytest.raises(LogOffline):
        fill(log, 1)
    assert_offline(
        log, f"orders-0: could not append to {FIRST}.log at offset 5: Input/output error"
    )
    assert bases(log) == list(range(5))
    log.close()


def test_failed_sync_is_not_tried_again() -> None:
    """After it nobody knows what is on the disk; a second sync would say that all is well."""
    shelf = memory_shelf()
    log = shelf.open()
    fill(log, 5)
    files_of(shelf).fail("sync", ".log")
    with pytest.raises(LogOffline):
        log.flush()
    assert_offline(log, "orders-0: could not flush orders-0 at offset 5: Input/output error")
    assert log.recovery_point == 0
    assert bases(log) == list(range(5))


def test_segment_that_cannot_be_begun_takes_the_log_offline() -> None:
    shelf = memory_shelf()
    log = shelf.open()
    fill(log, 10)
    files_of(shelf).fail("open", f"{10:020d}.log")
    with pytest.raises(LogOffline):
        fill(log, 1)
    assert_offline(
        log,
        f"orders-0: could not begin a segment after {FIRST}.log at offset 10: Input/output error",
    )
    assert bases(log) == list(range(10))
    shelf.restart()
    assert bases(shelf.open(clean=False)) == list(range(10))


def test_batches_written_before_a_failed_roll_stay() -> None:
    """One append over two segments: the first part was written, and is there after recovery."""
    shelf = memory_shelf()
    log = shelf.open()
    fill(log, 8)
    files_of(shelf).fail("open", f"{10:020d}.log")
    with pytest.raises(LogOffline):
        lead(log, [sized_batch(100)] * 5)
    shelf.restart()
    assert bases(shelf.open(clean=False)) == list(range(10))


@pytest.mark.parametrize(
    ("operation", "part", "act"),
    [
        ("names", ".log", lambda log: log.advance_start(Offset(12), NOW)),
        ("truncate", ".log", lambda log: log.truncate_to(Offset(12))),
        ("write", "leader-epoch-checkpoint", lambda log: log.save_epochs(log.epochs)),
        ("write", ".snapshot", lambda log: log.save_producers(ProducerSnapshot(Offset(5), ()))),
        ("names", ".log", lambda log: log.retain(NOW + 10**12, below=Offset(25))),
    ],
)
def test_any_refused_change_takes_the_log_offline(
    operation: str, part: str, act: Callable[[Log], object]
) -> None:
    shelf = memory_shelf()
    log = shelf.open()
    fill(log, 25)
    files_of(shelf).fail(operation, part)
    with pytest.raises(LogOffline, match=r"orders-0: could not .* at offset .*: Input/outp"):
        act(log)
    assert log.offline is not None


def test_failed_read_is_told_and_does_not_stop_writes() -> None:
    shelf = memory_shelf()
    log = shelf.open()
    fill(log, 5)
    files_of(shelf).fail("pread", ".log")
    with pytest.raises(LogOffline, match="orders-0: could not read offset 2: Input/output error"):
        log.read(Offset(2), max_bytes=100, below=Offset(5))
    fill(log, 1)
    assert bases(log) == list(range(6))


def test_log_that_cannot_be_opened_says_so() -> None:
    shelf = memory_shelf()
    files_of(shelf).fail("open", ".log", error=errno.ENOSPC)
    with pytest.raises(LogOffline, match="orders-0: could not be opened: No space left on device"):
        shelf.open(SMALL)
