"""Obeys a schedule of faults on real processes; the twin of sim/faults/nemesis.py.

Everything that begins ends by itself, or when ``heal`` is called. A command that means nothing when
its time comes is passed over: its node is down already, it is the last one running, its guard does
not hold.
"""

from __future__ import annotations

import heapq
import shutil
import signal
from collections.abc import Callable
from itertools import count

from cotidal.broker.faults import NO_FAULTS, Faults, Pair, both_ways
from cotidal.broker.local import prepare
from cotidal.broker.storage import read_meta
from cotidal.log.files import OsFiles
from cotidal.sim.faults.schedule import Command, Schedule
from cotidal.sim.violation import Violation
from cotidal.testing.cluster import ProcessCluster

ENDED_BY_ITSELF = "a node ends only when it is told to"
STOP_PATIENCE_MS = 30_000
LOOK_MS = 20


class Nemesis:
    def __init__(
        self,
        cluster: ProcessCluster,
        schedule: Schedule,
        *,
        logs: list[str],
        whole: Callable[[], bool],
        on_strike: Callable[[Command], None],
    ) -> None:
        """``logs``: those that a disk may be too full for. ``whole``: every replica of everything
        is in sync. Times are those of ``tick``."""
        self._cluster = cluster
        self._schedule = list(reversed(schedule))
        self._logs = logs
        self._whole = whole
        self._on_strike = on_strike
        self._now = 0
        self._later: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self.struck = 0
        self._down: set[int] = set()
        self._paused: set[int] = set()
        self._delays: list[tuple[Pair, float]] = []
        self._full: list[tuple[int, str]] = []
        self._strikes: dict[str, Callable[[Command], bool]] = {
            "kill": self._kill,
            "stop": self._stop,
            "pause": self._pause,
            "wipe": self._wipe,
            "full": self._fill,
            "isolate": lambda command: self._hold(
                command, both_ways(self._node(command), self._others(self._node(command)))
            ),
            "sever": lambda command: self._hold(
                command, both_ways(self._node(command), [self._node(command, 1)])
            ),
            "deafen": lambda command: self._hold(
                command, [(self._node(command, 1), self._node(command))]
            ),
            "slow-link": self._slow,
        }

    @property
    def exhausted(self) -> bool:
        return not self._schedule

    @property
    def quiet(self) -> bool:
        """Nothing is being done to anybody."""
        return not (self._down or self._paused or self._delays or self._full)

    def tick(self, now_ms: int) -> None:
        self._now = now_ms
        while self._later and self._later[0][0] <= now_ms:
            heapq.heappop(self._later)[2]()
        while self._schedule and self._schedule[-1].at_ms <= now_ms:
            command = self._schedule.pop()
            if self._guarded(command) and self._strikes[command.fault](command):
                self.struck += 1
                self._on_strike(command)

    def heal(self) -> None:
        """The end of everything that is under way; nothing more begins."""
        self._schedule.clear()
        self._later.clear()
        self._delays.clear()
        full, self._full = self._full, []
        self._tell()
        for node in self._paused:
            self._cluster.resume(node)
        self._paused.clear()
        for node in {node for node, _ in full} - self._down:
            self._cluster.kill(node)
            self._down.add(node)
        for node in sorted(self._down):
            self._start_when_ended(node, self._now + STOP_PATIENCE_MS)

    def roll(self, node: int) -> None:
        """Stop a node in order and start it again, as for a new version."""
        self._down.add(node)
        self._cluster.signal(node, signal.SIGTERM)
        self._start_when_ended(node, self._now + STOP_PATIENCE_MS)

    def look(self) -> None:
        """Violation if a node has ended that nobody ended."""
        for node in self._cluster.processes:
            if node not in self._down and not self._cluster.is_running(node):
                said = self._cluster.said(4_000)
                raise Violation(ENDED_BY_ITSELF, f"node {node} ended by itself\n{said}")

    # When

    def _after(self, delay_ms: int, act: Callable[[], None]) -> None:
        heapq.heappush(self._later, (self._now + delay_ms, next(self._order), act))

    def _guarded(self, command: Command) -> bool:
        return not command.guard or (self.quiet and self._whole())

    def _node(self, command: Command, which: int = 0) -> int:
        nodes = self._cluster.processes
        return nodes[(command.nodes[which] - 1) % len(nodes)]

    def _others(self, node: int) -> list[int]:
        return [each for each in self._cluster.processes if each != node]

    # Processes

    def _may_fall(self, node: int) -> bool:
        """It is up, and not the last process: with that one the parent would end."""
        running = [each for each in self._cluster.processes if each not in self._down]
        return node in running and node not in self._paused and len(running) > 1

    def _kill(self, command: Command) -> bool:
        node = self._node(command)
        if not self._may_fall(node):
            return False
        self._down.add(node)
        self._cluster.kill(node)
        self._after(command.for_ms, lambda: self._start(node))
        return True

    def _wipe(self, command: Command) -> bool:
        node = self._node(command)
        if not self._kill(command):
            return False
        home = f"{self._cluster.data}/node-{node}"
        cluster_id = read_meta(OsFiles(), home).cluster_id
        shutil.rmtree(home)
        prepare(home, node_id=node, cluster_id=cluster_id)
        return True

    def _stop(self, command: Command) -> bool:
        node = self._node(command)
        if not self._may_fall(node):
            return False
        self._down.add(node)
        self._cluster.signal(node, signal.SIGTERM)
        patience = self._now + STOP_PATIENCE_MS
        self._after(command.for_ms, lambda: self._start_when_ended(node, patience))
        return True

    def _start_when_ended(self, node: int, patience_ms: int) -> None:
        if not self._cluster.is_running(node):
            self._start(node)
        else:
            if self._now >= patience_ms:
                self._cluster.kill(node)
            self._after(LOOK_MS, lambda: self._start_when_ended(node, patience_ms))

    def _start(self, node: int) -> None:
        self._cluster.restart(node, wait=False)
        self._after(LOOK_MS, lambda: self._await_start(node))

    def _await_start(self, node: int) -> None:
        """Its process id is known: from now on it may not end by itself."""
        if self._cluster.is_running(node):
            self._down.discard(node)
        else:
            self._after(LOOK_MS, lambda: self._await_start(node))

    def _pause(self, command: Command) -> bool:
        node = self._node(command)
        if not self._may_fall(node):
            return False
        self._paused.add(node)
        self._cluster.pause(node)
        self._after(command.for_ms, lambda: self._resume(node))
        return True

    def _resume(self, node: int) -> None:
        self._paused.discard(node)
        self._cluster.resume(node)

    # Links and disks

    def _hold(self, command: Command, pairs: list[Pair]) -> bool:
        return self._disturb(command, pairs, float("inf"))

    def _slow(self, command: Command) -> bool:
        pair = (self._node(command), self._node(command, 1))
        return self._disturb(command, [pair], command.by_ms / 1000)

    def _disturb(self, command: Command, pairs: list[Pair], seconds: float) -> bool:
        if any(source == target for source, target in pairs):
            return False
        added = [(pair, seconds) for pair in pairs]
        self._delays += added
        self._tell()
        self._after(command.for_ms, lambda: self._let_pass(added))
        return True

    def _let_pass(self, added: list[tuple[Pair, float]]) -> None:
        for each in added:
            self._delays.remove(each)
        self._tell()

    def _fill(self, command: Command) -> bool:
        node = self._cluster.nodes[(command.nodes[0] - 1) % len(self._cluster.nodes)]
        full = (node, self._logs[command.nodes[1] % len(self._logs)])
        if full in self._full or not self._may_fall(node):
            return False
        self._full.append(full)
        self._tell()
        self._after(command.for_ms, lambda: self._replace_disk(full))
        return True

    def _replace_disk(self, full: tuple[int, str]) -> None:
        """Nothing is lost; a log that went offline is opened again by a new process."""
        self._full.remove(full)
        self._tell()
        node = full[0]
        if self._may_fall(node):
            self._down.add(node)
            self._cluster.kill(node)
            self._start(node)

    def _tell(self) -> None:
        faults: Faults = NO_FAULTS
        for pair, seconds in self._delays:
            faults = faults.slowed([pair], max(seconds, faults.delays.get(pair, 0.0)))
        self._cluster.suffer(faults._replace(full=tuple(self._full)))
