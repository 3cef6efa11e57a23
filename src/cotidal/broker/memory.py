"""How the process keeps and gives back memory. Process-wide: only ``run_broker`` changes this.

glibc maps large blocks afresh and unmaps them when freed, until it has learnt that they come again.
Higher thresholds keep them on the heap from the start: 1 MB requests cost 700 us of CPU where they
cost 815, fetches of 1 MB 20 % less. Thresholds of 4/16, 32/64 and 32/256 MB did not differ beyond
noise. After such load a node has 49 MB resident; ``give_back`` returns the heap's free pages when
it is idle: 33 MB. Elsewhere than on glibc all of this does nothing.

The garbage collector looks for cycles every 700 new objects by default. No request leaves a cycle
behind, so it looks less often (10 % of a small request's CPU, measured) and never at what a node is
made of.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import mmap
import sys
from typing import Final

from cotidal.broker.counters import Counters
from cotidal.limits import MALLOC_MMAP_THRESHOLD_BYTES, MALLOC_TRIM_THRESHOLD_BYTES, MIB

COLLECTOR_THRESHOLDS: Final = (20_000, 50, 1_000)
IDLE_LOOK_S: Final = 5.0
MUCH_BYTES: Final = 32 * MIB
LITTLE_BYTES: Final = 1 * MIB

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8


def tune_allocator() -> bool:
    """True when there was something to tune."""
    library = _glibc()
    if library is None:
        return False
    library.mallopt(_M_MMAP_THRESHOLD, MALLOC_MMAP_THRESHOLD_BYTES)
    library.mallopt(_M_TRIM_THRESHOLD, MALLOC_TRIM_THRESHOLD_BYTES)
    library.mallopt(_M_ARENA_MAX, 2)  # one for the loop, one for its worker threads
    return True


def tune_collector() -> None:
    """Call it once the node serves."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)


def give_back() -> bool:
    """Return free heap pages to the system; True if any were. Costs about a millisecond."""
    library = _glibc()
    return library is not None and bool(library.malloc_trim(0))


def resident_bytes() -> int | None:
    """Of this process; None where the system does not tell it this way."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE
    except (OSError, ValueError, IndexError):
        return None


class GiveBack:
    """Gives memory back when a busy node has become idle: one look every few seconds."""

    def __init__(self, loop: asyncio.AbstractEventLoop, counters: Counters) -> None:
        self._loop = loop
        self._counters = counters
        self._seen = 0
        self._kept = 0
        """Bytes moved since memory was last given back."""
        loop.call_later(IDLE_LOOK_S, self._look)

    def _look(self) -> None:
        counters = self._counters
        moved = counters.bytes_in + counters.bytes_out + counters.peer_bytes_in
        just_now = moved - self._seen
        self._seen = moved
        self._kept += just_now
        if self._kept > MUCH_BYTES and just_now < LITTLE_BYTES:
            self._kept = 0
            give_back()
        self._loop.call_later(IDLE_LOOK_S, self._look)


def _glibc() -> ctypes.CDLL | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        library = ctypes.CDLL(None)
        library.malloc_trim.argtypes = [ctypes.c_size_t]
        library.mallopt.argtypes = [ctypes.c_int, ctypes.c_int]
    except (OSError, AttributeError):  # musl has neither of them
        return None
    return library
