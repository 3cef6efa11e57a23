"""How fast a log is compacted (``python -m bench.compaction``), and who waits for it meanwhile.

    MB/s              bytes of records (not compressed) per second of one cleaning by a process of
                      its own, as a broker has it done, from no process and no map of keys to new
                      segments in their place; read twice, written once, on real files
    MB per core-s     the same within this process, by the time that the thread had a core: on a
                      busy machine this tells
    longest wait      of a thread of this process for its interpreter, asked for every ms, meanwhile

Uses some 400 MB of the temporary directory, and gives them back.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from bench.wire import TOPIC_ID
from cotidal.broker.cleaner import Cleaner, Job
from cotidal.log import cleaning
from cotidal.log.compaction import CompactionRules
from cotidal.log.contract import LogConfig
from cotidal.log.files import OsFiles
from cotidal.log.log import Log
from cotidal.messages.batch import Placed
from cotidal.values import LeaderEpoch, Offset, WallMillis
from cotidal.wire.batch import read_batches
from cotidal.wire.compression import Compression
from cotidal.wire.records import Record, build_batch

LOG_BYTES: Final = 100 << 20
BATCH_BYTES: Final = 64 << 10
CONFIG: Final = LogConfig(
    segment_bytes=16 << 20, compacted=True, compaction=CompactionRules(min_dirty_ratio=0.0)
)
GOAL_MB_PER_S: Final = 50
KEYS_MAX: Final = 1 << 30
UNTHROTTLED: Final = 1e15


class Case(NamedTuple):
    name: str
    value_bytes: int
    keys: int
    codec: Compression = Compression.NONE


CASES: Final = (
    Case("1 KB records, 1 of 10 stays", 1024, 10_000),
    Case("1 KB records, all stay", 1024, 1 << 30),
    Case("1 KB records in zstd, 1 of 10 stays", 1024, 10_000, Compression.ZSTD),
    Case("100 B records, 1 of 10 stays", 100, 100_000),
)


def main() -> int:
    heads = ("MB/s", "MB per core-s", "longest wait")
    print(" " * 36 + "".join(f"{head:>15}" for head in heads) + "   left")
    for case in CASES:
        apart = _measure(case, _clean_apart)
        here = _measure(case, _clean_here)
        print(
            f"{case.name:36}{apart.speed:15.0f}{here.speed_on_core:15.0f}"
            f"{apart.longest_wait * 1e3:12.1f} ms {apart.left:6.0%}",
            flush=True,
        )
    print(f"goal: {GOAL_MB_PER_S} MB/s for 1 KB records")
    return 0


class Measured(NamedTuple):
    speed: float
    speed_on_core: float
    longest_wait: float
    left: float


def _measure(case: Case, clean: Callable[[cleaning.Cleaning], cleaning.Cleaned]) -> Measured:
    with tempfile.TemporaryDirectory(prefix="cotidal-bench-compaction-") as work:
        log = _filled(work, case)
        before = log.size_bytes
        waits = _Waits()
        begun, begun_on_core = time.perf_counter(), time.thread_time()
        plan = log.begin_cleaning(_now(), below=log.end_offset)
        assert plan is not None
        log.end_cleaning(plan, clean(plan), _now())
        took, on_core = time.perf_counter() - begun, time.thread_time() - begun_on_core
        longest = waits.stop()
        left = log.size_bytes / before
        log.close()
    return Measured(LOG_BYTES / took / 1e6, LOG_BYTES / on_core / 1e6, longest, left)


def _clean_apart(plan: cleaning.Cleaning) -> cleaning.Cleaned:
    cleaner = Cleaner()
    ended = cleaner.clean(Job(plan, KEYS_MAX, _now(), UNTHROTTLED))
    cleaner.let_go()
    if isinstance(ended.outcome, Exception):
        raise ended.outcome
    return ended.outcome


def _clean_here(plan: cleaning.Cleaning) -> cleaning.Cleaned:
    return cleaning.run(plan, keys_max=KEYS_MAX, now_wall=_now(), breathe=lambda _: None)


class _Waits:
    """A thread that wakes every millisecond and sees how late it is."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._longest = 0.0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> float:
        self._stopped.set()
        self._thread.join()
        return self._longest

    def _run(self) -> None:
        while not self._stopped.is_set():
            due = time.perf_counter() + 0.001
            time.sleep(0.001)
            self._longest = max(self._longest, time.perf_counter() - due)


def _filled(directory: str, case: Case) -> Log:
    log = Log.open(
        OsFiles(), f"{directory}/bench-0", CONFIG, topic_id=TOPIC_ID, clean=True, now_wall=_now()
    )
    number = 0
    per_batch = max(1, BATCH_BYTES // case.value_bytes)
    value = bytes(range(256)) * (case.value_bytes // 256 + 1)
    written = 0
    while written < LOG_BYTES:
        records = [
            Record(b"key-%d" % ((number + at) % case.keys), value[: case.value_bytes], timestamp=1)
            for at in range(per_batch)
        ]
        number += per_batch
        written += per_batch * case.value_bytes
        batches = read_batches(build_batch(records, compression=case.codec))
        log.append([Placed(Offset(log.end_offset), LeaderEpoch(1), batches)], _now())
    log.roll(_now())
    log.flush()
    return log


def _now() -> WallMillis:
    return WallMillis(time.time_ns() // 1_000_000)


if __name__ == "__main__":
    sys.exit(main())
