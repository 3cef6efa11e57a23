"""Nobody is fenced for nothing: whoever lives, is connected and sends heartbeats takes part.

A session lasts seconds, so what was wrong with the broker, or with the controller that fences it,
is looked for in the last few of them. A connection that breaks, a slow disk and a slow link are no
reasons: the next heartbeat is in time all the same.
"""

from __future__ import annotations

from typing import Final

from cotidal.core.cluster.image import Partition
from cotidal.invariants import FENCED_FOR_A_REASON
from cotidal.node.lifecycle import Stage
from cotidal.sim.agenda import SECOND
from cotidal.sim.checkers.ghost import Ghost
from cotidal.sim.checkers.window import broker_epoch_of, leads_quorum, state_of
from cotidal.sim.process import Process
from cotidal.sim.violation import Violation
from cotidal.sim.world import World
from cotidal.values import NodeId, TopicPartition

GRACE_US: Final = 6 * SECOND
"""A session (3 s), on a clock that is 2 % slow, and as much again to find each other."""


class FenceChecker:
    def __init__(self, world: World, ghost: Ghost) -> None:
        self._world = world
        self._ghost = ghost

    def on_partition_changed(
        self, partition: TopicPartition, before: Partition, after: Partition
    ) -> None: ...

    def on_registered(self, node_id: NodeId) -> None: ...

    def on_unregistered(self, node_id: NodeId) -> None: ...

    def on_fenced(self, node_id: NodeId) -> None:
        machine = self._world.machines[node_id]
        process = machine.process
        registered = self._ghost.image.brokers[node_id].epoch
        if process is None or process.paused or broker_epoch_of(process) != registered:
            return
        if state_of(process).life.stage in (Stage.LEAVING, Stage.GONE):
            return
        if self._is_troubled(process):
            return
        leaders = [each for each in self._world.running if leads_quorum(each)]
        if any(each.paused or self._is_troubled(each) for each in leaders):
            return
        raise Violation(
            FENCED_FOR_A_REASON,
            f"broker {node_id} is fenced; nothing has been wrong with it, nor with the controller,"
            f" for {GRACE_US // SECOND} s",
        )

    def _is_troubled(self, process: Process) -> bool:
        since = self._world.network.undisturbed_since(process.machine.host)
        return self._world.now - max(since, process.started_us) < GRACE_US
