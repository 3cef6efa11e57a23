"""Compacts logs in a process of its own, which shares no interpreter with the event loop.

A broker starts it when there is something to compact, gives it one log after another, and lets it
go when there is nothing more (``Cleaner``). The two talk in pickles: jobs go in at its standard
input, what became of them comes out at its standard output. It lives as long as that input is open,
so it does not outlive its broker, however that one ends, and is in the way of no later one.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import traceback
from queue import SimpleQueue
from typing import BinaryIO, Final, NamedTuple

from cotidal.broker.pace import Pace, Stopped
from cotidal.log import cleaning
from cotidal.log.failure import LogError
from cotidal.log.files import OsFiles
from cotidal.values import WallMillis

NICE: Final = 15
"""Its priority: whoever answers clients comes first, and on a busy machine it still gets on."""

_PROGRAM: Final = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer);"
    " from cotidal.broker.cleaner import main; main()"
)
"""It finds the modules that its broker finds, and looks for none where that was started."""


class Job(NamedTuple):
    plan: cleaning.Cleaning
    keys_max: int
    now: WallMillis
    bytes_per_second: float


class Ended(NamedTuple):
    """What became of a job."""

    outcome: cleaning.Cleaned | Exception
    done_bytes: int
    """Read, in both walks."""


class Cleaner:
    """The process, as its broker sees it. ``stop`` may be called from any thread."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._lock = threading.Lock()

    def clean(self, job: Job) -> Ended:
        """Have it done. Blocks until it is; Stopped if it is not to be, OSError if the process
        fails: then nothing that was made is left."""
        assert isinstance(job.plan.filesystem, OsFiles), "no other process sees any other files"
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump(job, process.stdin)
            process.stdin.flush()
            ended: Ended = pickle.load(process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            status = self.let_go()
            cleaning.discard(job.plan)
            if self._stopped:
                raise Stopped from None
            raise ChildProcessError(f"its process ended with status {status}") from None
        return ended

    def let_go(self) -> int | None:
        """It has nothing more to do: it ends. How it did, if there was one."""
        process, self._process = self._process, None
        if process is None:
            return None
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):  # it was gone before what it was sent
                pipe.close()
        return process.wait()

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            process = self._process
        if process is not None:
            process.kill()

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._stopped:
                raise Stopped
            if self._process is None:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-c", _PROGRAM],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
                assert self._process.stdin is not None
                pickle.dump(sys.path, self._process.stdin)  # and sent with the first job
            return self._process


# The process itself ------------------------------------------------------------------------------


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: its broker hears it too
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.nice(NICE)
    jobs: SimpleQueue[Job] = SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, jobs), daemon=True).start()
    while True:
        ended = _done(jobs.get())
        pickle.dump(ended, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _listen(source: BinaryIO, jobs: SimpleQueue[Job]) -> None:
    """Also while a log is compacted: the end of the input is the end of us, at once."""
    try:
        while True:
            jobs.put(pickle.load(source))
    finally:
        os._exit(0)


def _done(job: Job) -> Ended:
    pace = Pace(job.bytes_per_second, rests=False)
    outcome: cleaning.Cleaned | Exception
    try:
        outcome = cleaning.run(
            job.plan, keys_max=job.keys_max, now_wall=job.now, breathe=pace.breathe
        )
    except (LogError, OSError) as refused:
        outcome = refused
    except Exception:
        outcome = RuntimeError(f"a compaction failed:\n{traceback.format_exc()}")
    return Ended(outcome, pace.done_bytes)
