"""Obeys a schedule of faults, and heals everything when it is told to.

Each fault begins, lasts as long as its command says, and ends by itself. ``heal`` ends them all at
once: every node up, every link open, every disk as fast as before. A command that means nothing
when its time comes (its node is down already, its guard does not hold) is passed over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from cotidal.core.cluster.image import Image
from cotidal.core.machine import Entropy
from cotidal.sim import probes as seen
from cotidal.sim.agenda import MS, SECOND
from cotidal.sim.checkers.window import broker_epoch_of
from cotidal.sim.disk import DiskFault
from cotidal.sim.faults.schedule import MENDED, WHOLE, Command, Schedule
from cotidal.sim.lane import Speed
from cotidal.sim.network import HostId, Link
from cotidal.sim.probes import Probes
from cotidal.sim.process import Machine, Process
from cotidal.sim.sowing import sow
from cotidal.sim.world import World
from cotidal.values import NodeId, Uuid

START_RETRY_US: Final = 500 * MS
LOOK_US: Final = 50 * MS
SLOW_US: Final = 2 * MS
"""How slow a disk is that nobody slowed down."""


class Nemesis:
    def __init__(
        self, world: World, schedule: Schedule, probes: Probes, furthest: Callable[[], Image]
    ) -> None:
        """``furthest``: the latest committed image of any node."""
        self._world = world
        self._schedule = schedule
        self._probes = probes
        self._furthest = furthest
        self._active = False
        self._mended = True
        """Every ISR has been whole since a node last ended without being asked to."""
        self._strikes: dict[str, Callable[[Command], bool]] = {
            "kill": self._kill,
            "power": self._power,
            "wipe": self._wipe,
            "full": lambda command: self._break_disk(command, DiskFault.FULL),
            "io-error": lambda command: self._break_disk(command, DiskFault.IO_ERROR),
            "lie": self._lie,
            "stop": self._stop,
            "pause": self._pause,
            "break": self._break,
            "isolate": self._isolate,
            "sever": self._sever,
            "deafen": self._deafen,
            "flaky": self._flaky,
            "slow-link": self._slow_link,
            "slow-disk": self._slow_disk,
            "clock-jump": self._clock_jump,
        }
        self._apart: list[tuple[HostId, HostId]] = []
        self._slowed: list[tuple[HostId, HostId]] = []
        self._flaking: dict[HostId, Command] = {}
        """The latest command for each host whose answers are lost."""
        self._lying: dict[Machine, Command] = {}
        """The latest command for each whose disk lies."""
        self._broken: dict[Machine, None] = {}
        """Machines with a disk that fails."""

    def begin(self) -> None:
        self._active = True
        for command in self._schedule:
            self._later(command.at_ms, self._strike, command)
        if any(command.guard == MENDED for command in self._schedule):
            self._look()

    def heal(self) -> None:
        """No more faults, and the end of all that are under way."""
        self._active = False
        network = self._world.network
        for source, target in self._apart:
            network.unblock(source, target)
        for source, target in self._slowed:
            _quicken(network.link(source, target))
        for host in self._flaking:
            network.make_flaky(host, None)
        self._apart.clear()
        self._slowed.clear()
        self._flaking.clear()
        for machine in list(self._broken):
            self._replace_disk(machine)
        for machine in self._world.machines.values():
            machine.speed.slow_us = SLOW_US
            machine.lie(lies=False)
            machine.clock.wall_skew_ms = 0
            if machine.process is None:
                self._start(machine.node_id)
            elif machine.process.paused:
                machine.process.resume()

    # When

    def _strike(self, command: Command) -> None:
        if self._active and self._holds(command.guard) and self._strikes[command.fault](command):
            self._probes.see(f"fault: {command.fault}")
            self._world.trace.say(self._world.now, 0, f"fault: {command}")

    def _later(self, delay_ms: int, do: Callable[..., Any], *args: Any) -> None:
        self._world.agenda.after(delay_ms * MS, do, *args)

    def _luck(self, command: Command, *where: HostId) -> Entropy:
        """A command draws from nobody else's numbers, and nobody else from its."""
        return sow(self._world.seed, "fault", str(command), *where)

    # Guards

    def _holds(self, guard: str) -> bool:
        match guard:
            case "":
                return True
            case _ if guard == WHOLE:
                return self._whole()
            case _:
                return self._mended

    def _look(self) -> None:
        if self._active:
            self._mended = self._mended or self._whole()
            self._world.agenda.after(LOOK_US, self._look)

    def _whole(self) -> bool:
        """Every partition has all its replicas in the ISR, in their incarnations."""
        image = self._furthest()
        for machine in self._world.machines.values():
            if machine.process is None or machine.process.paused:
                return False
            if not machine.config.is_broker:
                continue
            broker = image.brokers.get(machine.node_id)
            if broker is None or broker.fenced:
                return False
            if broker_epoch_of(machine.process) != broker.epoch:
                return False
        return not any(
            len(told.isr) < len(told.replicas)
            for topic in image.topics.values()
            for told in topic.partitions.values()
        )

    # Nodes

    def _machine(self, command: Command) -> Machine:
        return self._nodes(command)[0]

    def _nodes(self, command: Command) -> list[Machine]:
        machines = list(self._world.machines.values())
        return [machines[(node - 1) % len(machines)] for node in command.nodes]

    def _start_again(self, node_id: NodeId) -> None:
        if self._active:  # heal has started it otherwise
            self._start(node_id)

    def _start(self, node_id: NodeId) -> None:
        if self._world.machines[node_id].process is None and not self._world.start(node_id):
            self._world.agenda.after(START_RETRY_US, self._start, node_id)

    def _kill(self, command: Command) -> bool:
        machine = self._machine(command)
        if machine.process is None:
            return False
        self._mended = False
        self._world.kill(machine.node_id)
        self._later(command.for_ms, self._start_again, machine.node_id)
        return True

    def _power(self, command: Command) -> bool:
        machine = self._machine(command)
        if machine.process is None:
            return False
        self._mended = False
        if machine.files.lies_told:
            self._probes.see(seen.LIED_TO)
        self._world.cut_power(machine.node_id, self._luck(command))
        self._later(command.for_ms, self._start_again, machine.node_id)
        return True

    def _wipe(self, command: Command) -> bool:
        machine = self._machine(command)
        if machine.process is None:
            return False
        self._mended = False
        self._world.kill(machine.node_id)
        machine.wipe(Uuid(self._luck(command).bytes16()))
        self._probes.see(seen.WIPED)
        self._later(command.for_ms, self._start_again, machine.node_id)
        return True

    def _break_disk(self, command: Command, fault: DiskFault) -> bool:
        machine = self._machine(command)
        if machine.process is None or machine in self._broken:
            return False
        logs = list(machine.process.disk.lanes)
        if not logs:
            return False
        self._broken[machine] = None
        chosen = logs[command.nodes[1] % len(logs)]
        machine.break_disk(fault, machine.log_directory(chosen))
        self._later(command.for_ms, self._replace_disk, machine)
        return True

    def _replace_disk(self, machine: Machine) -> None:
        """Nothing is lost; a log that was taken offline is opened again by a new process."""
        if machine in self._broken:
            del self._broken[machine]
            machine.mend_disk()
            if machine.process is not None:
                self._mended = False
                self._world.kill(machine.node_id)
            self._start(machine.node_id)

    def _stop(self, command: Command) -> bool:
        process = self._machine(command).process
        if process is None or process.paused:
            return False
        process.request_stop()
        self._world.agenda.after(30 * SECOND, self._lose_patience, process)
        self._await_end(process.machine, command.for_ms)
        return True

    def _await_end(self, machine: Machine, for_ms: int) -> None:
        if machine.process is not None:
            self._later(200, self._await_end, machine, for_ms)
        elif self._active:
            self._later(for_ms, self._start_again, machine.node_id)
        else:
            self._start(machine.node_id)

    def _lose_patience(self, process: Process) -> None:
        if process.alive:
            self._probes.see("a stop that took longer than 30 s")
            self._mended = False
            self._world.kill(process.node_id)

    def _pause(self, command: Command) -> bool:
        process = self._machine(command).process
        if process is None or process.paused:
            return False
        process.pause()
        self._later(command.for_ms, self._resume, process)
        return True

    def _resume(self, process: Process) -> None:
        if process.alive and process.paused:
            process.resume()

    # The network

    def _break(self, command: Command) -> bool:
        network = self._world.network
        connections = network.connections
        if connections:
            chosen = connections[command.nodes[0] % len(connections)]
            network.break_connection(chosen, self._luck(command))
        return bool(connections)

    def _isolate(self, command: Command) -> bool:
        alone = self._machine(command)
        others = [each for each in self._world.machines.values() if each is not alone]
        for other in others:
            self._part(command, alone.host, other.host)
            self._part(command, other.host, alone.host)
        return bool(others)

    def _sever(self, command: Command) -> bool:
        one, other = self._nodes(command)
        if one is other:
            return False
        self._part(command, one.host, other.host)
        self._part(command, other.host, one.host)
        return True

    def _deafen(self, command: Command) -> bool:
        deaf, unheard = self._nodes(command)
        if deaf is unheard:
            return False
        self._part(command, unheard.host, deaf.host)
        return True

    def _part(self, command: Command, source: HostId, target: HostId) -> None:
        self._world.network.block(source, target, self._luck(command, source, target))
        self._apart.append((source, target))
        self._later(command.for_ms, self._join, source, target)

    def _join(self, source: HostId, target: HostId) -> None:
        if (source, target) in self._apart:
            self._apart.remove((source, target))
            if (source, target) not in self._apart:
                self._world.network.unblock(source, target)

    def _slow_link(self, command: Command) -> bool:
        source, target = (machine.host for machine in self._nodes(command))
        if source == target:
            return False
        link = self._world.network.link(source, target)
        link.delay_us = link.usual_us + command.by_ms * MS
        self._slowed.append((source, target))
        self._later(command.for_ms, self._quicken, source, target)
        return True

    def _quicken(self, source: HostId, target: HostId) -> None:
        if (source, target) in self._slowed:
            self._slowed.remove((source, target))
            _quicken(self._world.network.link(source, target))

    def _flaky(self, command: Command) -> bool:
        host = self._machine(command).host
        self._flaking[host] = command
        self._world.network.make_flaky(host, self._luck(command))
        self._later(command.for_ms, self._steady, host, command)
        return True

    def _steady(self, host: HostId, command: Command) -> None:
        if self._flaking.get(host) is command:
            del self._flaking[host]
            self._world.network.make_flaky(host, None)

    # Machines

    def _slow_disk(self, command: Command) -> bool:
        speed = self._machine(command).speed
        speed.slow_us = command.by_ms * MS
        self._later(command.for_ms, self._mend_disk, speed)
        return True

    def _lie(self, command: Command) -> bool:
        machine = self._machine(command)
        self._lying[machine] = command
        machine.lie(lies=True)
        self._later(command.for_ms, self._be_true, machine, command)
        return True

    def _be_true(self, machine: Machine, command: Command) -> None:
        if self._lying.get(machine) is command:
            machine.lie(lies=False)

    def _mend_disk(self, speed: Speed) -> None:
        speed.slow_us = SLOW_US

    def _clock_jump(self, command: Command) -> bool:
        self._machine(command).clock.wall_skew_ms = command.by_ms
        return True


def _quicken(link: Link) -> None:
    link.delay_us = link.usual_us
