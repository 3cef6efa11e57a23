"""Strikes at random, within what the plan allows, and heals everything when it is told to.

Each fault begins, lasts for a drawn time, and ends by itself. ``heal`` ends them all at once: every
node up, every link open, every disk as fast as before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from cotidal.core.cluster.image import Image
from cotidal.sim.agenda import MS, SECOND
from cotidal.sim.checkers.window import broker_epoch_of
from cotidal.sim.network import HostId
from cotidal.sim.plan import Plan
from cotidal.sim.probes import Probes
from cotidal.sim.process import Machine, Process
from cotidal.sim.world import World
from cotidal.values import NodeId

DOWN_MIN_US: Final = 20 * MS
DOWN_SPREAD_US: Final = 6 * SECOND
PAUSE_SPREAD_US: Final = 12 * SECOND
APART_SPREAD_US: Final = 10 * SECOND
SLOW_LINK_US: Final = 600 * MS
SLOW_DISK_US: Final = 150 * MS
HOUR_MS: Final = 3_600_000
START_RETRY_US: Final = 500 * MS


class Nemesis:
    def __init__(
        self, world: World, plan: Plan, probes: Probes, furthest: Callable[[], Image]
    ) -> None:
        """``furthest``: the latest committed image of any node."""
        self._world = world
        self._plan = plan
        self._probes = probes
        self._furthest = furthest
        self._entropy = world.rooms.faults
        self._active = False
        self._bag = [name for name, weight in plan.faults.items() for _ in range(weight)]
        self._strikes: dict[str, Callable[[], bool]] = {
            "kill": self._kill,
            "kill-all": self._kill_all,
            "power": self._power,
            "power-whole": self._power_whole,
            "stop": self._stop,
            "pause": self._pause,
            "break": self._break,
            "isolate": self._isolate,
            "sever": self._sever,
            "deafen": self._deafen,
            "slow-link": self._slow_link,
            "slow-disk": self._slow_disk,
            "clock-jump": self._clock_jump,
        }
        self._apart: list[tuple[HostId, HostId]] = []
        self._slowed: list[tuple[HostId, HostId]] = []

    def begin(self) -> None:
        self._active = True
        if self._bag:
            self._plan_next()

    def heal(self) -> None:
        """No more faults, and the end of all that are under way."""
        self._active = False
        network = self._world.network
        for source, target in self._apart:
            network.unblock(source, target)
        for source, target in self._slowed:
            network.link(source, target).delay_us = network.delay_us
        self._apart.clear()
        self._slowed.clear()
        for machine in self._world.machines.values():
            machine.speed.slow_us = 2 * MS
            machine.clock.wall_skew_ms = 0
            if machine.process is None:
                self._start(machine.node_id)
            elif machine.process.paused:
                machine.process.resume()

    # When

    def _draw(self, bound: int) -> int:
        return self._entropy.below(bound)

    def _a_while(self, most_us: int) -> int:
        """Short more often than long: a cluster that is always broken shows little."""
        return DOWN_MIN_US + self._draw(1 + self._draw(most_us))

    def _plan_next(self) -> None:
        gap = self._plan.gap_ms * MS
        self._later(gap // 4 + self._draw(gap * 3 // 2), self._strike)

    def _strike(self) -> None:
        if self._active:
            name = self._bag[self._draw(len(self._bag))]
            if self._strikes[name]():
                self._probes.see(f"fault: {name}")
                self._say(name)
            self._plan_next()

    def _later(self, delay_us: int, do: Callable[..., Any], *args: Any) -> None:
        self._world.agenda.after(delay_us, do, *args)

    def _say(self, text: str) -> None:
        self._world.trace.say(self._world.now, 0, f"fault: {text}")

    # Nodes

    def _victim(self) -> Process | None:
        """Somebody to be taken down; None if as many are down as may be."""
        machines = list(self._world.machines.values())
        up = [each.process for each in machines if each.process and not each.process.paused]
        if not up or len(machines) - len(up) >= self._plan.down_max:
            return None
        return up[self._draw(len(up))]

    def _start_later(self, node_id: NodeId) -> None:
        self._later(self._a_while(DOWN_SPREAD_US), self._start_again, node_id)

    def _start_again(self, node_id: NodeId) -> None:
        if self._active:  # heal has started it otherwise
            self._start(node_id)

    def _start(self, node_id: NodeId) -> None:
        if self._world.machines[node_id].process is None and not self._world.start(node_id):
            self._later(START_RETRY_US, self._start, node_id)

    def _kill(self) -> bool:
        victim = self._victim()
        if victim is None:
            return False
        self._say(f"kill node {victim.node_id}")
        self._world.kill(victim.node_id)
        self._start_later(victim.node_id)
        return True

    def _kill_all(self) -> bool:
        for process in self._world.running:
            self._world.kill(process.node_id)
            self._start_later(process.node_id)
        return True

    def _power(self) -> bool:
        victim = self._victim()
        if victim is None:
            return False
        self._say(f"power cut at node {victim.node_id}")
        self._world.cut_power(victim.node_id)
        self._start_later(victim.node_id)
        return True

    def _power_whole(self) -> bool:
        """Only while every partition has all its replicas in the ISR, in their incarnations."""
        image = self._furthest()
        for machine in self._world.machines.values():
            broker = image.brokers.get(machine.node_id)
            if machine.process is None or broker is None or broker.fenced:
                return False
            if broker_epoch_of(machine.process) != broker.epoch:
                return False
        for topic in image.topics.values():
            if any(len(told.isr) < len(told.replicas) for told in topic.partitions.values()):
                return False
        return self._power()

    def _stop(self) -> bool:
        victim = self._victim()
        if victim is None:
            return False
        self._say(f"stop node {victim.node_id}")
        victim.request_stop()
        self._later(30 * SECOND, self._lose_patience, victim)
        self._await_end(victim.machine)
        return True

    def _await_end(self, machine: Machine) -> None:
        if machine.process is not None:
            self._later(200 * MS, self._await_end, machine)
        elif self._active:
            self._start_later(machine.node_id)
        else:
            self._start(machine.node_id)

    def _lose_patience(self, process: Process) -> None:
        if process.alive:
            self._probes.see("a stop that took longer than 30 s")
            self._world.kill(process.node_id)

    def _pause(self) -> bool:
        victim = self._victim()
        if victim is None:
            return False
        self._say(f"pause node {victim.node_id}")
        victim.pause()
        self._later(self._a_while(PAUSE_SPREAD_US), self._resume, victim)
        return True

    def _resume(self, process: Process) -> None:
        if process.alive and process.paused:
            process.resume()

    # The network

    def _break(self) -> bool:
        connections = self._world.network.connections
        for _ in range(1 + self._draw(3)):
            if connections:
                connection = connections[self._draw(len(connections))]
                self._world.network.break_connection(connection)
        return bool(connections)

    def _hosts(self) -> list[HostId]:
        return [machine.host for machine in self._world.machines.values()]

    def _isolate(self) -> bool:
        """One node hears nobody and is heard by nobody; clients may still reach it."""
        hosts = self._hosts()
        alone = hosts[self._draw(len(hosts))]
        for other in hosts:
            if other != alone:
                self._part(alone, other)
                self._part(other, alone)
        return len(hosts) > 1

    def _sever(self) -> bool:
        """Two nodes lose each other; both still see the third."""
        hosts = self._hosts()
        if len(hosts) < 2:
            return False
        one = hosts[self._draw(len(hosts))]
        other = hosts[(hosts.index(one) + 1 + self._draw(len(hosts) - 1)) % len(hosts)]
        self._part(one, other)
        self._part(other, one)
        return True

    def _deafen(self) -> bool:
        """One node is heard by some of the others, and does not hear them; or the reverse."""
        hosts = self._hosts()
        if len(hosts) < 2:
            return False
        one = hosts[self._draw(len(hosts))]
        inwards = self._draw(2) == 0
        for other in hosts:
            if other != one and self._draw(3):
                self._part(other, one) if inwards else self._part(one, other)
        return True

    def _part(self, source: HostId, target: HostId) -> None:
        self._world.network.block(source, target)
        self._apart.append((source, target))
        self._later(self._a_while(APART_SPREAD_US), self._join, source, target)

    def _join(self, source: HostId, target: HostId) -> None:
        if (source, target) in self._apart:
            self._apart.remove((source, target))
            if (source, target) not in self._apart:
                self._world.network.unblock(source, target)

    def _slow_link(self) -> bool:
        hosts = self._hosts()
        source = hosts[self._draw(len(hosts))]
        target = hosts[self._draw(len(hosts))]
        link = self._world.network.link(source, target)
        link.delay_us = self._world.network.delay_us + self._draw(SLOW_LINK_US)
        self._slowed.append((source, target))
        self._later(self._a_while(APART_SPREAD_US), self._quicken, source, target)
        return source != target

    def _quicken(self, source: HostId, target: HostId) -> None:
        if (source, target) in self._slowed:
            self._slowed.remove((source, target))
            network = self._world.network
            network.link(source, target).delay_us = network.delay_us

    # Machines

    def _machine(self) -> Machine:
        machines = list(self._world.machines.values())
        return machines[self._draw(len(machines))]

    def _slow_disk(self) -> bool:
        speed = self._machine().speed
        speed.slow_us = self._draw(SLOW_DISK_US)
        self._later(self._a_while(APART_SPREAD_US), self._mend_disk, speed)
        return True

    def _mend_disk(self, speed: Any) -> None:
        speed.slow_us = 2 * MS

    def _clock_jump(self) -> bool:
        self._machine().clock.wall_skew_ms = self._draw(2 * HOUR_MS) - HOUR_MS
        return True
