"""What processes use: memory and CPU time of a whole process tree, read from the kernel; and
memory that is in use, for those who are about to write."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

import psutil

PIECE_BYTES: Final = 8 << 20
FREE_BYTES_MAX: Final = 1 << 30
"""The kernel keeps some free in any case."""


class Memory(NamedTuple):
    """Of all processes together, in MB (10**6 bytes)."""

    resident_mb: float
    """Pages that several processes share are counted in each."""
    proportional_mb: float
    """Shared pages are split among their sharers (PSS): the honest sum. 0 where it is not known."""


def memory(pids: Iterable[int]) -> Memory:
    resident = proportional = 0
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            info = psutil.Process(pid).memory_full_info()
            resident += info.rss
            proportional += getattr(info, "pss", 0)
    return Memory(resident / 1e6, proportional / 1e6)


def cpu_seconds(pids: Iterable[int]) -> float:
    """User and kernel time since the processes began."""
    total = 0.0
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = psutil.Process(pid).cpu_times()
            total += times.user + times.system
    return total


def fill_memory(holes: Path) -> None:
    """Fill what is free with clean pages: of a file that is all holes, and is made if need be.

    So it is on a machine that has been up for a while: what is written takes the place of something
    that was read once. Free memory of a virtual machine is often not there at all: its host has
    taken it back, and gives it again page by page, which costs several times what it costs to fill
    them. Whoever writes after another one has deleted much would be measured by that.
    """
    size = psutil.virtual_memory().total
    piece = bytearray(PIECE_BYTES)
    with holes.open("ab+", buffering=0) as file:
        file.truncate(size)
        for place in range(0, size, PIECE_BYTES):
            if psutil.virtual_memory().free < FREE_BYTES_MAX:
                break
            os.preadv(file.fileno(), [piece], place)
