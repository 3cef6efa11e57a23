"""What was appended last is served from memory, and is always what the file holds."""

from __future__ import annotations

import random

import pytest

from cotidal import limits
from cotidal.log.contract import LogConfig
from cotidal.log.log import Log
from cotidal.log.memory import MemoryFile
from cotidal.values import Offset
from tests.log.shelf import lead, memory_shelf, sized_batch

FIRST = f"{0:020d}.log"
CONFIG = LogConfig(index_interval_bytes=250, segment_bytes=9_000)


def read(log: Log, offset: int, max_bytes: int = 100_000) -> bytes:
    return bytes(log.read(Offset(offset), max_bytes=max_bytes, below=log.end_offset))


def read_from_file(log: Log, offset: int, max_bytes: int) -> bytes:
    active = log._active
    kept, active._tail = active._tail, b""
    try:
        return read(log, offset, max_bytes)
    finally:
        active._tail = kept


def _must_not(*asked: object) -> bytes:
    raise AssertionError("read from its file")


@pytest.mark.plain
def test_whoever_asks_for_what_was_appended_last_needs_no_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shelf = memory_shelf()
    log = shelf.open(CONFIG)
    lead(log, [sized_batch(100), sized_batch(120)])
    lead(log, [sized_batch(130), sized_batch(140)])
    held = shelf.bytes_of(FIRST)
    monkeypatch.setattr(MemoryFile, "pread", _must_not)
    assert read(log, 2) == held[220:]
    assert read(log, 3) == held[350:]
    assert read(log, 2, 135) == held[220:350]
    with pytest.raises(AssertionError, match="read from its file"):
        read(log, 1)


def test_what_is_large_is_left_to_the_file() -> None:
    log = memory_shelf().open(CONFIG)
    lead(log, [sized_batch(limits.LOG_TAIL_BYTES)])
    assert len(log._active._tail) == limits.LOG_TAIL_BYTES
    lead(log, [sized_batch(limits.LOG_TAIL_BYTES + 1)])
    assert log._active._tail == b""


@pytest.mark.parametrize("seed", range(20))
def test_memory_and_file_agree_whatever_is_appended_cut_and_read(seed: int) -> None:
    luck = random.Random(seed)
    log = memory_shelf().open(CONFIG)
    from_memory = 0
    for _ in range(300):
        match luck.randrange(8):
            case 0:
                before = log.end_offset
                log.truncate_to(Offset(luck.randint(max(0, before - 4), before)))
                assert log.end_offset == before or not log._active._tail
            case 1:
                lead(log, [sized_batch(luck.choice((100, limits.LOG_TAIL_BYTES + 1)))])
            case _:
                lead(
                    log,
                    [sized_batch(luck.choice((100, 200, 300))) for _ in range(luck.randint(1, 3))],
                )
        if log.end_offset:
            first = luck.randint(max(0, log.end_offset - 4), log.end_offset - 1)
            most = luck.choice((1, 250, 10_000))
            assert read(log, first, most) == read_from_file(log, first, most)
            from_memory += bool(log._active._tail)
    assert from_memory > 50
