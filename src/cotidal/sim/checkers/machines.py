"""What the machines promise of themselves, asked of each node.

Every machine of the core says what must hold of its own state (``check``). A node asks for that
after some events only; here it is asked of whoever was stepped, every few steps, and of all nodes
with every sweep. An assertion that fails ends the run under the name that it carries.
"""

from __future__ import annotations

from typing import Final

from cotidal.core.cluster.image import check
from cotidal.invariants import BOUNDS_KEPT, LEADERS_ALONE_WAIT
from cotidal.node.hosting import Hosted
from cotidal.sim.checkers.window import (
    consumer_groups_of,
    hosted_by,
    image_of,
    quorum_machine_of,
    speculative_of,
)
from cotidal.sim.process import Process
from cotidal.sim.violation import Violation
from cotidal.values import Millis

STEPS: Final = 16
"""Of all steps, one in so many: what is wrong with a machine seldom mends itself."""
PARTITIONS_TOLD: Final = 5
"""Fewer than a node has: it has to choose."""


class MachineChecker:
    def __init__(self) -> None:
        self._until_look = STEPS

    def look(self, process: Process) -> None:
        """It has just been stepped."""
        self._until_look -= 1
        if self._until_look <= 0:
            self._until_look = STEPS
            quorum_machine_of(process).check()

    def sweep(self, process: Process, now: Millis) -> None:
        quorum_machine_of(process).check()
        check(image_of(process))
        speculative = speculative_of(process)
        if speculative is not None:
            check(speculative)
        for hosted in hosted_by(process).values():
            hosted.replica.check()
            hosted.replica.epochs.check()
            _look_who_waits(process, hosted)
        for group in consumer_groups_of(process):
            group.check()
        _look_at_vitals(process, now)


def _look_who_waits(process: Process, hosted: Hosted) -> None:
    waiting = len(hosted.until_written) + len(hosted.until_committed)
    if waiting and hosted.replica.leadership is None:
        told = f"{waiting} writes wait for {hosted.replica.partition}, a follower"
        raise Violation(LEADERS_ALONE_WAIT, f"on node {process.node_id} {told}")


def _look_at_vitals(process: Process, now: Millis) -> None:
    """What a node tells of itself to whoever watches it: it can, at any time."""
    told = process.node.vitals(now, partitions_max=PARTITIONS_TOLD)
    assert len(told.replicas) + told.unlisted == len(hosted_by(process))
    for bound, fill in told.fills.items():
        if not 0 <= fill <= 1:
            raise Violation(BOUNDS_KEPT, f"{bound} of node {process.node_id} is filled to {fill}")
