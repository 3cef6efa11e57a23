"""What processes use: memory and CPU time of a whole process tree, read from the kernel."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import NamedTuple

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
