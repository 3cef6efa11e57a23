"""All checkers of a run, in one watcher."""

from __future__ import annotations

from typing import Final

from cotidal.node.effects import Effect
from cotidal.node.events import Event
from cotidal.sim.checkers.ghost import Ghost
from cotidal.sim.checkers.logs import LogChecker
from cotidal.sim.checkers.steps import StepChecker
from cotidal.sim.process import Process, Watcher
from cotidal.sim.workloads.history import History
from cotidal.sim.world import World

SWEEP_STEPS: Final = 400
"""Steps between two looks at all logs."""


class Watch(Watcher):
    def __init__(self, world: World, history: History, exempt: frozenset[str]) -> None:
        self.ghost = Ghost()
        self._steps = StepChecker(world, self.ghost, exempt)
        self._logs = LogChecker(world, self.ghost, self._steps, history, exempt)
        self._until_sweep = SWEEP_STEPS

    def on_stepped(self, process: Process, event: Event, effects: tuple[Effect, ...]) -> None:
        self._steps.look(process, event)
        self._until_sweep -= 1
        if self._until_sweep <= 0:
            self.sweep()

    def on_started(self, process: Process) -> None:
        self._logs.watch_cuts(process)

    def on_ended(self, process: Process, reason: str) -> None:
        """What it wrote since the last look counts, though it may be lost now."""
        self._logs.note_metadata_end(process)
        if reason != "stopped":
            self._logs.read_logs(process)
        self.ghost.forget_process(process)

    def sweep(self) -> None:
        self._until_sweep = SWEEP_STEPS
        self._logs.sweep()
