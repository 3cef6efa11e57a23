"""What is done to a cluster of real processes: the simulator's schedules, at a pace that they bear.

Drawn from a seed by sim/faults/schedule.py, so a seed names the same blows every time; when exactly
they fall among what the processes do is the machine's affair. Within what the promises tolerate:
kill -9 loses nothing that was written, and a disk is wiped only while every ISR is whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cotidal.sim.faults.schedule import Command, Schedule, draw_schedule
from cotidal.sim.plan import Plan
from cotidal.sim.plans import PLANS
from cotidal.sim.script import Script, write_script

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


def storm_schedule(seed: int, faults: int, *, controllers: int = 0) -> Schedule:
    """Enough for so many faults, though some will mean nothing when their time comes."""
    seconds = (faults + 10) * STORM.gap_ms * 2 // 1000
    return draw_schedule(seed, STORM._replace(seconds=seconds, controllers=controllers))


def as_simulated(seed: int, struck: Sequence[Command], *, controllers: int = 0) -> str:
    """The same blows at the same moments as a script of the simulator, to be seen and shrunk.

    They fall among other events there: what real processes did between two of them is not known.
    """
    last_ms = max((each.at_ms + each.for_ms for each in struck), default=0)
    plan = PLANS["calm"]._replace(
        controllers=controllers,
        partitions=STORM.partitions,
        settings=STORM.settings,
        seconds=last_ms // 1000 + STORM.gap_ms // 1000,
    )
    story = (f"What a storm of seed {seed} did to real processes, done to simulated ones.",)
    return write_script(Script(seed, plan, tuple(struck)), story)
