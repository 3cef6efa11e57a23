"""What is done to a cluster of real processes: the simulator's schedules, at a pace that they bear.

Drawn from a seed by sim/faults/schedule.py, so a seed names the same blows every time; when exactly
they fall among what the processes do is the machine's affair. Within what the promises tolerate:
kill -9 loses nothing that was written, and a disk is wiped only while every ISR is whole.
"""

from __future__ import annotations

from typing import Final

from cotidal.sim.faults.schedule import Schedule, draw_schedule
from cotidal.sim.plan import Plan

STORM: Final = Plan(
    "storm",
    "processes are killed, stopped and paused, links part and slow down, disks fill and are lost",
    {
        "kill": 6,
        "stop": 2,
        "pause": 3,
        "seesaw": 1,
        "isolate": 2,
        "sever": 2,
        "deafen": 2,
        "slow-link": 2,
        "full": 2,
        "wipe-whole": 2,
    },
    gap_ms=2_000,
    partitions=3,
    settings={
        "replica.lag.time.max.ms": "2000",
        "offsets.topic.num.partitions": "3",
        "transaction.state.log.num.partitions": "3",
    },
)


def storm_schedule(seed: int, faults: int) -> Schedule:
    """Enough for so many faults, though some will mean nothing when their time comes."""
    seconds = (faults + 10) * STORM.gap_ms * 2 // 1000
    return draw_schedule(seed, STORM._replace(seconds=seconds))
