"""Every life of a node, lived again: the same events at the same times, the same wishes.

A node decides by what it is told and by nothing else. Where lives are recorded (a plan says so), a
new node is taken through each of them when it is over, and must want what the first one wanted.
What is recorded and how it is lived again is a real node's own (node/recording.py).
"""

from __future__ import annotations

from cotidal.invariants import LIVES_REPEAT
from cotidal.node.recording import is_recording, replay
from cotidal.sim.process import Process, Watcher
from cotidal.sim.violation import Violation
from cotidal.sim.world import World


class LifeChecker(Watcher):
    def __init__(self, world: World) -> None:
        self._world = world
        self.repeated = 0
        """Lives."""

    def on_ended(self, process: Process, reason: str) -> None:
        self._repeat(process)

    def judge(self) -> None:
        """Of those that go on: so far."""
        for process in self._world.running:
            self._repeat(process)

    def _repeat(self, process: Process) -> None:
        lines = process.recorded
        if lines is None:
            return
        assert is_recording(lines[0])
        lived = replay(lines)
        self.repeated += 1
        if lived.difference is not None:
            step, event, recorded, wanted = lived.difference
            raise Violation(
                LIVES_REPEAT,
                f"node {process.node_id}, step {step}: {event} -> {'; '.join(recorded)}, and in its"
                f" second life {'; '.join(wanted)}",
            )
