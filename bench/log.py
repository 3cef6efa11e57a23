"""Microseconds per call of the log on real files (``python -m bench.log``), no sockets, no fsync.

Beside each write and read stands the system call alone on the same file system: what is left is
what Python costs. Uses some 500 MB of the temporary directory, and gives them back.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from bench.timing import Task, main
from bench.wire import TOPIC_ID, batch
from cotidal.log.contract import LogConfig
from cotidal.log.files import OsFiles
from cotidal.log.log import Log
from cotidal.messages.batch import Placed
from cotidal.values import LeaderEpoch, Offset, WallMillis
from cotidal.wire.batch import read_batches

SIZES: Final = ((100, 1 << 30), (16_384, 500), (1 << 20, 10))
"""Bytes of a batch's one record, and the most calls a round."""
BEHIND_BATCHES: Final = 2000
RECOVER_BATCHES: Final = 100


def tasks() -> Iterator[Task]:
    with tempfile.TemporaryDirectory(prefix="cotidal-bench-log-") as work:
        directory = Path(work)
        for size, calls_max in SIZES:
            yield from _append(directory, size, calls_max)
        yield from _append_together(directory)
        yield from _read_tail(directory)
        yield from _read_behind(directory)
        yield from _open(directory)


def _new(directory: Path, name: str, *, clean: bool = True) -> Log:
    return Log.open(
        OsFiles(),
        str(directory / name),
        LogConfig(),
        topic_id=TOPIC_ID,
        clean=clean,
        now_wall=_now(),
    )


def _now() -> WallMillis:
    return WallMillis(time.time_ns() // 1_000_000)


def _add(log: Log, data: bytes, count: int = 1) -> None:
    """As a leader: each entry gets the next offset."""
    batches = read_batches(data)
    end = log.end_offset
    entries = [Placed(Offset(end + n), LeaderEpoch(1), batches) for n in range(count)]
    log.append(entries, _now())


def _append(directory: Path, size: int, calls_max: int) -> Iterator[Task]:
    data = batch(size)
    batches, now = read_batches(data), _now()
    log = _new(directory, f"append{size}-0")
    aim = 6.0 if size == 100 else None

    def append() -> None:
        log.append((Placed(log.end_offset, LeaderEpoch(1), batches),), now)

    yield Task(f"append, one batch of {size} B", append, aim, calls_max)
    log.close()
    bare = os.open(directory / f"bare{size}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    pieces: list[bytes | memoryview] = [data[:16], memoryview(data)[16:]]
    yield Task(
        "  the system call alone (writev)", partial(os.writev, bare, pieces), None, calls_max
    )
    os.close(bare)


def _append_together(directory: Path) -> Iterator[Task]:
    log, data = _new(directory, "together-0"), batch(100)
    yield Task("append, 100 batches of 100 B at once", lambda: _add(log, data, 100))
    log.close()


def _read_tail(directory: Path) -> Iterator[Task]:
    log = _new(directory, "tail-0")
    for _ in range(1000):
        _add(log, batch(100))
    last, end = Offset(log.end_offset - 1), log.end_offset
    yield Task(
        "read at the tail, one batch of 100 B",
        lambda: log.read(last, max_bytes=1 << 20, below=end),
        6.0,
    )
    log.close()
    bare = os.open(directory / "bare100", os.O_RDONLY)
    yield Task("  the system call alone (pread)", lambda: os.pread(bare, 170, 1700))
    os.close(bare)


def _read_behind(directory: Path) -> Iterator[Task]:
    """A consumer that reads on and on, 1 MB at a time, batches of 16 KB."""
    log = _new(directory, "behind-0")
    for _ in range(BEHIND_BATCHES):
        _add(log, batch(16_384))
    step = (1 << 20) // len(batch(16_384))
    place = 0

    def read_on() -> None:
        nonlocal place
        if place + step > BEHIND_BATCHES:
            place = 0
        log.read(Offset(place), max_bytes=1 << 20, below=log.end_offset)
        place += step

    yield Task("read on behind the tail, 1 MB of 16 KB batches", read_on)
    log.close()
    bare = os.open(directory / "behind-0" / f"{0:020d}.log", os.O_RDONLY)
    yield Task("  the system call alone (pread)", lambda: os.pread(bare, 1 << 20, 1 << 20))
    os.close(bare)


def _open(directory: Path) -> Iterator[Task]:
    log = _new(directory, "open-0")
    for _ in range(RECOVER_BATCHES):
        _add(log, batch(1 << 20))
    log.close()
    yield Task("open after a clean stop, 100 MB", lambda: _new(directory, "open-0").close())
    yield Task(
        "open after a crash, 100 MB in 1 MB batches",
        lambda: _new(directory, "open-0", clean=False).close(),
    )


if __name__ == "__main__":
    sys.exit(main("python -m bench.log", __doc__, tasks))
