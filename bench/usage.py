"""What processes use: memory and CPU time of a whole process tree, read from the kernel; and
memory that has been used before, for those who are about to fill it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterable
from typing import Final, NamedTuple

import psutil


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


_TOUCH: Final = """
import mmap, sys
size = int(sys.argv[1])
memory = mmap.mmap(-1, size)
for place in range(0, size, mmap.PAGESIZE):
    memory[place] = 1
"""


def warm_pages(size_bytes: int) -> None:
    """Have the machine's free memory, up to so much of it, used by somebody who gives it back.

    A virtual machine gets a page from its host when it first uses it, and pays for that several
    times what it costs to fill it. Whom that meets is chance, and should not be.
    """
    size = min(size_bytes, psutil.virtual_memory().available // 2)
    subprocess.run([sys.executable, "-c", _TOUCH, str(size)], check=True)
