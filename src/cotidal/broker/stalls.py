"""Whether the disk has kept the event loop waiting, or others on a busy machine have.

A call that takes long has not always waited: its thread may have lost its core in the middle. So
what the kernel counts for each thread is asked, too: how often it gave its core away by itself, and
how many blocks it had to read. Where the kernel does not tell (elsewhere than on Linux), every call
that takes long counts as a wait.
"""

from __future__ import annotations

from time import perf_counter
from typing import Final

try:
    from resource import RUSAGE_THREAD, getrusage
except ImportError:
    _known = False
else:
    _known = True

IS_KNOWN: Final = _known


def times_waited() -> int:
    """How often this thread has given its core away to wait for something."""
    return getrusage(RUSAGE_THREAD).ru_nvcsw if IS_KNOWN else 0


def blocks_read() -> int:
    """How many blocks this thread has had read from a disk."""
    return getrusage(RUSAGE_THREAD).ru_inblock if IS_KNOWN else 0


class Stopwatch:
    """Times one write: did it wait? Starting it takes 2 us."""

    __slots__ = ("_begun", "_waited")

    def __init__(self) -> None:
        self._waited = times_waited()
        self._begun = perf_counter()

    def has_waited(self, least_ms: float) -> bool:
        """It has taken longer than that, and not for want of a core."""
        if perf_counter() - self._begun <= least_ms / 1000:
            return False
        return not IS_KNOWN or times_waited() > self._waited


class Readings:
    """Times one read after another: has one met the disk? Costs nothing while they are quick."""

    __slots__ = ("_blocks",)

    def __init__(self) -> None:
        self._blocks = blocks_read()

    def has_met_the_disk(self, took_s: float, least_ms: float) -> bool:
        """One that took so long, longer than ``least_ms``, and blocks were read in the meantime."""
        if took_s <= least_ms / 1000:
            return False
        before, self._blocks = self._blocks, blocks_read()
        return not IS_KNOWN or self._blocks > before
