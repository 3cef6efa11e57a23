"""How the C library keeps and gives back memory. Process-wide: only ``run_broker`` calls this.

glibc maps every block past 128 KB afresh and unmaps it when freed: a broker that takes and drops
1 MB requests then spends its time in page faults. Raising the thresholds keeps such blocks on the
heap; ``give_back`` returns the heap's free pages when the node is idle. Elsewhere than on glibc
all of this does nothing.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final

from cotidal.limits import MALLOC_MMAP_THRESHOLD_BYTES, MALLOC_TRIM_THRESHOLD_BYTES

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


def give_back() -> bool:
    """Return free heap pages to the system; True if any were. Costs about a millisecond."""
    library = _glibc()
    return library is not None and bool(library.malloc_trim(0))


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
