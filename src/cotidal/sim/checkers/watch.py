"""All checkers of a run, in one watcher."""

from __future__ import annotations

from typing import Final

from cotidal.node.effects import Effect
from cotidal.node.events import Event
from cotidal.sim.checkers.acks import AckChecker
from cotidal.sim.checkers.fences import FenceChecker
from cotidal.sim.checkers.ghost import Ghost
from cotidal.sim.checkers.keys import KeyChecker
from cotidal.sim.checkers.logs import LogChecker
from cotidal.sim.checkers.machines import MachineChecker
from cotidal.sim.checkers.metadata import MetadataChecker
from cotidal.sim.checkers.steps import StepChecker
from cotidal.sim.checkers.window import state_of
from cotidal.sim.probes import Probes
from cotidal.sim.process import POWER_LOST, Process, Watcher
from cotidal.sim.workloads.history import History
from cotidal.sim.world import World
from cotidal.values import NodeId, Uuid

SWEEP_STEPS: Final = 400
"""Steps between two looks at what is new in all logs."""
AUDIT_SWEEPS: Final = 5
"""Of so many looks, one is at everything from the beginning."""


class Watch(Watcher):
    def __init__(
        self, world: World, history: History, exempt: frozenset[str], probes: Probes
    ) -> None:
        self.ghost = Ghost()
        self.metadata = MetadataChecker(self.ghost, exempt)
        self.metadata.listeners.append(FenceChecker(world, self.ghost))
        self._steps = StepChecker(world, self.ghost, self.metadata, exempt)
        self._logs = LogChecker(world, self.ghost, self._steps, history, exempt, probes)
        self._keys = KeyChecker(world, self.ghost, self._steps, history, probes)
        self._acks = AckChecker()
        self._machines = MachineChecker()
        self._world = world
        self.metadata.listeners.append(self._logs)
        self._until_sweep = SWEEP_STEPS
        self._until_audit = AUDIT_SWEEPS
        self._directories: dict[NodeId, Uuid] = {}

    def on_stepped(self, process: Process, event: Event, effects: tuple[Effect, ...]) -> None:
        self._steps.look(process, event)
        self._acks.look(process, event, effects)
        self._machines.look(process)
        if state_of(process).stopping:
            self._logs.read_logs(process)  # its logs may be closed next
        self._until_sweep -= 1
        if self._until_sweep <= 0:
            self._until_sweep = SWEEP_STEPS
            self._until_audit -= 1
            if self._until_audit <= 0:
                self.audit()
            else:
                self.sweep()

    def on_started(self, process: Process) -> None:
        self._logs.watch_cuts(process)
        config = process.machine.config
        known = self._directories.setdefault(config.node_id, config.directory_id)
        if known != config.directory_id:  # another disk: nothing of the old one is left
            self._directories[config.node_id] = config.directory_id
            self.ghost.awaken(config.node_id)

    def on_ended(self, process: Process, reason: str) -> None:
        """What it wrote since the last look counts, though it may be lost now."""
        self._logs.note_metadata_end(process)
        if reason != "stopped":
            self._logs.read_logs(process)
        self.ghost.forget_process(process, keeps_disk=reason != POWER_LOST)

    def sweep(self) -> None:
        """What is new since the last one."""
        self._ask_machines()
        self._logs.sweep()
        self._keys.sweep()

    def audit(self) -> None:
        """Everything, from the beginning."""
        self._until_audit = AUDIT_SWEEPS
        self._ask_machines()
        self.metadata.look_at_image()
        self._logs.audit()
        self._keys.sweep()

    def _ask_machines(self) -> None:
        for process in self._world.running:
            now = process.machine.clock.monotonic(self._world.now)
            self._machines.sweep(process, now)
